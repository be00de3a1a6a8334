#include "config.h"

#include "common/base/fdio.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[PATH_MAX], file[PATH_MAX + 20];

static int setup(void **state)
{
    (void)state;
    unit_make_folder(folder);
    snprintf(file, sizeof file, "%s/f", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder); /* fails when a temporary file was left */
}

static void make_pipe(int *out_reader, int *out_writer)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    *out_reader = fds[0];
    *out_writer = fds[1];
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int reader = -1;
    AUTO_FD int writer = -1;
    char got[6] = "";
    make_pipe(&reader, &writer);
    assert_works(fdio_write_all(writer, "hello!", 6, &e), e);
    assert_works(fdio_write_all(writer, NULL, 0, &e), e);
    unit_read_full(reader, got, 5);
    assert_string_equal(got, "hello");
}

/* A child feeds slowly and in odd pieces while this side is non-blocking. */
static void non_blocking_descriptors_are_waited_for(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int reader = -1;
    AUTO_FD int writer = -1;
    make_pipe(&reader, &writer);
    assert_works(fdio_set_nonblocking(reader, &e), e);
    assert_works(fdio_set_nonblocking(writer, &e), e);
    const size_t len = 1 << 20;
    pid_t pid = fork();
    if (pid == 0) {
        AUTO_FREE char *data = calloc(1, len);
        poll(NULL, 0, 30);
        _exit(fdio_write_all(writer, data, len, &e) < 0);
    }
    auto_close_fd(&writer);
    AUTO_BUF struct buf all = BUF_INIT(len);
    assert_works(fdio_read_to_end(reader, &all, &e), e);
    assert_int_equal(all.len, len);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void reading_to_the_end_accepts_exactly_max_and_no_more(void **state)
{
    (void)state;
    struct err e;
    for (size_t len = 99; len <= 101; len++) {
        AUTO_FD int reader = -1;
        AUTO_FD int writer = -1;
        char data[200] = "";
        AUTO_BUF struct buf all = BUF_INIT(100);
        make_pipe(&reader, &writer);
        assert_works(fdio_write_all(writer, data, len, &e), e);
        auto_close_fd(&writer);
        if (len > 100) {
            assert_fails(fdio_read_to_end(reader, &all, &e), ERR_LIMIT, e);
        } else {
            assert_works(fdio_read_to_end(reader, &all, &e), e);
            assert_int_equal(all.len, len);
        }
    }
}

static void a_closed_peer_is_an_error_and_no_signal(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int reader = -1;
    AUTO_FD int writer = -1;
    make_pipe(&reader, &writer);
    auto_close_fd(&reader);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    assert_fails(fdio_write_all(writer, "x", 1, &e), ERR_IO, e);
}

static void reading_names_the_file_and_tells_missing_from_refused(void **state)
{
    (void)state;
    struct err e;
    AUTO_BUF struct buf text = BUF_INIT(2);
    assert_fails(fdio_read_file(file, &text, &e), ERR_NOT_FOUND, e);
    assert_contains(e.text, file);
    assert_fails(fdio_read_file(folder, &text, &e), ERR_IO, e);
    assert_contains(e.text, folder);
    unit_write_file(file, "abc", 3);
    assert_fails(fdio_read_file(file, &text, &e), ERR_LIMIT, e);
    assert_contains(e.text, file);
}

static void closed_standard_descriptors_are_filled(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        close(STDIN_FILENO);
        close(STDERR_FILENO);
        fdio_fill_standard();
        int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
        _exit(next > 2 && fcntl(0, F_GETFD) == 0 && fcntl(2, F_GETFD) == 0 ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void nothing_stays_open(void **state)
{
    (void)state;
    struct err e;
    AUTO_BUF struct buf text = BUF_INIT(100);
    int before = unit_count_fds();
    unit_write_file(file, "x", 1);
    assert_works(fdio_read_file(file, &text, &e), e);
    assert_fails(fdio_read_file("/nonexistent", &text, &e), ERR_NOT_FOUND, e);
    assert_int_equal(unit_count_fds(), before);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* In a process without root: that of a container may not be able to do more either. */
static void the_limit_of_descriptors_rises_as_far_as_it_may(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {50, 100};
        bool low = setrlimit(RLIMIT_NOFILE, &limit) == 0 && (geteuid() != 0 || setuid(65534) == 0);
        fdio_allow(40);
        getrlimit(RLIMIT_NOFILE, &limit);
        low = low && limit.rlim_cur == 50;
        fdio_allow(1000);
        getrlimit(RLIMIT_NOFILE, &limit);
        _exit(!(low && limit.rlim_cur == 100 && limit.rlim_max == 100));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static const struct CMUnitTest tests[] = {
    CASE(what_is_written_reads_back),
    CASE(non_blocking_descriptors_are_waited_for),
    CASE(reading_to_the_end_accepts_exactly_max_and_no_more),
    CASE(a_closed_peer_is_an_error_and_no_signal),
    CASE(reading_names_the_file_and_tells_missing_from_refused),
    CASE(closed_standard_descriptors_are_filled),
    CASE(the_limit_of_descriptors_rises_as_far_as_it_may),
    CASE(nothing_stays_open),
};
UNIT_TESTS(tests)
