#include "config.h"

#include "common/base/fdio.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
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
    assert_works(fdio_read_full(reader, got, 5, &e), e);
    assert_string_equal(got, "hello");
}

static void an_early_end_is_a_fault_of_the_peer(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int reader = -1;
    AUTO_FD int writer = -1;
    char got[10];
    make_pipe(&reader, &writer);
    assert_works(fdio_write_all(writer, "abc", 3, &e), e);
    auto_close_fd(&writer);
    assert_fails(fdio_read_full(reader, got, 10, &e), ERR_PROTOCOL, e);
    assert_contains(e.text, "7 bytes");
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

static void a_file_is_replaced_as_a_whole_with_its_mode(void **state)
{
    (void)state;
    struct err e;
    struct stat st;
    AUTO_BUF struct buf text = BUF_INIT(100);
    mode_t before = umask(077);
    assert_works(fdio_write_file(file, "old content", 11, 0600, &e), e);
    AUTO_FD int old = open(file, O_RDONLY | O_CLOEXEC);
    assert_works(fdio_write_file(file, "new", 3, 0644, &e), e);
    umask(before);
    assert_works(fdio_read_file(file, &text, &e), e);
    assert_string_equal(buf_str(&text), "new");
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    buf_reset(&text);
    assert_works(fdio_read_to_end(old, &text, &e), e);
    assert_string_equal(buf_str(&text), "old content");
}

static void a_failed_write_leaves_nothing_behind(void **state)
{
    (void)state;
    struct err e;
    /* A folder in the way: the rename fails after the temporary file was made. */
    assert_int_equal(mkdir(file, 0700), 0);
    assert_fails(fdio_write_file(file, "x", 1, 0600, &e), ERR_IO, e);
    assert_contains(e.text, file);
    assert_int_equal(rmdir(file), 0);
    assert_fails(fdio_write_file("/nonexistent/f", "x", 1, 0600, &e), ERR_IO, e);
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
    assert_works(fdio_write_file(file, "abc", 3, 0600, &e), e);
    assert_fails(fdio_read_file(file, &text, &e), ERR_LIMIT, e);
    assert_contains(e.text, file);
}

static void a_relative_name_without_a_folder_works(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(folder), 0);
    assert_works(fdio_write_file("f", "x", 1, 0600, &e), e);
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(access(file, R_OK), 0);
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
    assert_works(fdio_write_file(file, "x", 1, 0600, &e), e);
    assert_works(fdio_read_file(file, &text, &e), e);
    assert_fails(fdio_read_file("/nonexistent", &text, &e), ERR_NOT_FOUND, e);
    assert_int_equal(unit_count_fds(), before);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_written_reads_back),
        CASE(an_early_end_is_a_fault_of_the_peer),
        CASE(non_blocking_descriptors_are_waited_for),
        CASE(reading_to_the_end_accepts_exactly_max_and_no_more),
        CASE(a_closed_peer_is_an_error_and_no_signal),
        CASE(a_file_is_replaced_as_a_whole_with_its_mode),
        CASE(a_failed_write_leaves_nothing_behind),
        CASE(reading_names_the_file_and_tells_missing_from_refused),
        CASE(a_relative_name_without_a_folder_works),
        CASE(closed_standard_descriptors_are_filled),
        CASE(nothing_stays_open),
    };
    return RUN_TESTS(tests);
}
