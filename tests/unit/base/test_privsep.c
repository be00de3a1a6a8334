/* What a process keeps that gives up all it does not need. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/privsep.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit status of a child that does this. */
static int status_of(int (*child)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(child());
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static bool same_file(int a, const struct stat *b)
{
    struct stat st;

    return fstat(a, &st) == 0 && st.st_dev == b->st_dev && st.st_ino == b->st_ino;
}

/* What replaces a standard descriptor is one of those that are to be replaced. */
static int keep_some(void)
{
    struct stat first, second, null;
    int p[2], q[2];

    if (pipe(p) < 0 || pipe(q) < 0 || dup2(p[0], 1) < 0 || dup2(q[0], 0) < 0 ||
        fstat(1, &first) < 0 || fstat(0, &second) < 0 || stat("/dev/null", &null) < 0)
        return 10;
    const int fds[] = {1, 0, -1, 1};
    if (privsep_keep_fds(fds, ARRAY_LEN(fds)) < 0)
        return 11;
    if (!same_file(0, &first) || !same_file(1, &second) || !same_file(2, &null) ||
        !same_file(3, &first))
        return 12;
    for (int fd = 4; fd < 64; fd++)
        if (is_open(fd))
            return 13;
    return fcntl(0, F_GETFD) & FD_CLOEXEC ? 14 : 0;
}

static void only_the_descriptors_named_are_kept(void **state)
{
    (void)state;
    assert_int_equal(status_of(keep_some), 0);
}

static int keep_too_many(void)
{
    const int fds[PRIVSEP_FDS_MAX + 1] = {0};

    return privsep_keep_fds(fds, ARRAY_LEN(fds)) < 0 ? 0 : 1;
}

static int keep_a_closed_one(void)
{
    const int fds[] = {0, 1000};

    return privsep_keep_fds(fds, ARRAY_LEN(fds)) < 0 ? 0 : 1;
}

static void descriptors_that_cannot_be_kept_are_told(void **state)
{
    (void)state;
    assert_int_equal(status_of(keep_too_many), 0);
    assert_int_equal(status_of(keep_a_closed_one), 0);
}

static int drop(void)
{
    uid_t was = geteuid(), r, e, s;
    struct rlimit core;
    int death = 0;

    if (privsep_drop_rights() < 0 || getresuid(&r, &e, &s) < 0 ||
        getrlimit(RLIMIT_CORE, &core) < 0 || prctl(PR_GET_PDEATHSIG, &death) < 0)
        return 10;
    if (was == 0 && (r != 65534 || e != 65534 || s != 65534 || getgroups(0, NULL) != 0 ||
                     getegid() != 65534 || setuid(0) == 0))
        return 11;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE) != 0)
        return 12;
    return core.rlim_max == 0 && death == SIGKILL ? 0 : 13;
}

static void rights_are_given_up_for_good(void **state)
{
    (void)state;
    assert_int_equal(status_of(drop), 0);
}

static int bound(void)
{
    static const struct privsep_limit limits[] = {{RLIMIT_FSIZE, 1000}, {RLIMIT_NOFILE, 17}};
    struct rlimit size, files;

    if (privsep_bound(limits, ARRAY_LEN(limits)) < 0 || getrlimit(RLIMIT_FSIZE, &size) < 0 ||
        getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 10;
    return size.rlim_cur == 1000 && size.rlim_max == 1000 && files.rlim_max == 17 ? 0 : 11;
}

static void limits_hold(void **state)
{
    (void)state;
    assert_int_equal(status_of(bound), 0);
}

static int die_with_another(void)
{
    privsep_die_with(getpid());
    return 1;
}

static int die_with_the_parent(void)
{
    int death = 0;

    privsep_die_with(getppid());
    return prctl(PR_GET_PDEATHSIG, &death) == 0 && death == SIGKILL ? 0 : 1;
}

static void a_process_whose_parent_has_gone_ends(void **state)
{
    (void)state;
    assert_int_equal(status_of(die_with_another), 0);
    assert_int_equal(status_of(die_with_the_parent), 0);
}

/* ---- this program, started anew ---- */

extern char **environ;

static int wait_started(void)
{
    return pause();
}

static int say_started(void)
{
    struct err e = ERR_INIT;
    struct sigaction pipe_action;

    sigaction(SIGPIPE, NULL, &pipe_action);
    bool bad = *environ || is_open(4) || pipe_action.sa_handler != SIG_DFL;
    const char *word = bad ? "bad" : "good";
    return fdio_write_all(3, word, strlen(word), &e) < 0;
}

UNIT_COMMAND("privsep-say", say_started)
UNIT_COMMAND("privsep-wait", wait_started)

static void a_program_started_anew_has_only_what_it_is_given(void **state)
{
    AUTO_BUF struct buf word = BUF_INIT(100);
    struct err e;
    int p[2], status;

    (void)state;
    assert_int_equal(pipe(p), 0);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    const int fds[] = {-1, -1, STDERR_FILENO, p[1]};
    pid_t pid = privsep_start("privsep-say", fds, ARRAY_LEN(fds), &e);
    assert_true(pid > 0);
    close(p[1]);
    assert_works(fdio_read_to_end(p[0], &word, &e), e);
    assert_string_equal(buf_str(&word), "good");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(p[0]);
}

static void an_end_leaves_no_process(void **state)
{
    const int fds[] = {-1, -1, STDERR_FILENO};
    struct err e;

    (void)state;
    pid_t pid = privsep_start("privsep-wait", fds, ARRAY_LEN(fds), &e);
    assert_true(pid > 0);
    privsep_end(pid);
    assert_int_equal(waitpid(pid, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_descriptors_named_are_kept),
    cmocka_unit_test(descriptors_that_cannot_be_kept_are_told),
    cmocka_unit_test(rights_are_given_up_for_good),
    cmocka_unit_test(limits_hold),
    cmocka_unit_test(a_process_whose_parent_has_gone_ends),
    cmocka_unit_test(a_program_started_anew_has_only_what_it_is_given),
    cmocka_unit_test(an_end_leaves_no_process),
};
UNIT_TESTS(tests)
