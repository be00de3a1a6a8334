/* What the housekeeper does without an engine. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/broker/host_watch.h"
#include "common/broker/housekeeper.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

static void leave(struct fixture *f, const char *path)
{
    AUTO_FD int fd = openat(f->root.fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
}

/* Only the kernel sets a file's time of change: the clock is put forward instead. */
static void what_killed_processes_left_in_staging_goes_after_an_hour(void **state)
{
    struct fixture *f = *state;

    leave(f, ".staging/0123456789abcdef0123456789abcdef");
    assert_int_equal(mkdirat(f->root.fd, ".staging/folder", 0700), 0);
    housekeeper_sweep_files(&f->root, clock_unix_s() + 3500);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 2);
    housekeeper_sweep_files(&f->root, clock_unix_s() + 3700);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void a_clock_that_is_set_is_noticed_and_one_that_runs_is_not(void **state)
{
    const int64_t day = 86400, now = 1800000000;
    struct host_watch w = {0};

    (void)state;
    assert_int_equal(host_watch_clock(&w, now, 1000), 0);
    assert_int_equal(host_watch_clock(&w, now + 5, 1005), 0);
    assert_int_equal(host_watch_clock(&w, now + 10 + HOST_CLOCK_STEP_S - 1, 1010), 0);
    assert_int_equal(host_watch_clock(&w, now + 2 * day, 1000 + day), day - HOST_CLOCK_STEP_S + 1);
    assert_int_equal(host_watch_clock(&w, now, 1001 + day), -2 * day - 1);
    assert_int_equal(host_watch_clock(&w, now + 5, 1006 + day), 0);
}

static size_t count_warnings(const char *words)
{
    char lines[LOG_RECENT][LOG_RECENT_MAX];
    size_t n = log_recent(lines), found = 0;

    for (size_t i = 0; i < n; i++)
        found += strstr(lines[i], words) != NULL;
    return found;
}

static void a_root_that_was_opened_or_closed_is_told_once(void **state)
{
    struct fixture *f = *state;
    const gid_t web_gid = fixture_gid(); /* 0 would mean none */
    struct host_watch w = {0};

    log_share();
    assert_int_equal(chown(f->path, (uid_t)-1, web_gid), 0);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(chmod(f->path, 0710), 0);
        host_watch_look(&w, &f->root, web_gid);
        assert_int_equal(count_warnings("SANDBOX_ROOT"), 2 * times);
        assert_int_equal(chmod(f->path, 0700), 0);
        host_watch_look(&w, &f->root, web_gid);
        host_watch_look(&w, &f->root, web_gid);
        assert_int_equal(count_warnings("the web server cannot serve files"), 1 + times);
        assert_int_equal(chmod(f->path, 0710), 0);
        host_watch_look(&w, &f->root, web_gid);
        assert_int_equal(chmod(f->path, 0711), 0);
        host_watch_look(&w, &f->root, web_gid);
        assert_int_equal(count_warnings("it is open to other accounts"), 1 + times);
    }
    log_unshare();
}

static void a_root_of_another_account_and_a_clock_of_the_past_are_told_once(void **state)
{
    struct fixture *f = *state;
    const struct timespec later[2] = {{.tv_sec = clock_unix_s() + 86400},
                                      {.tv_sec = clock_unix_s() + 86400}};
    struct host_watch w = {0};

    log_share();
    assert_int_equal(utimensat(AT_FDCWD, f->path, later, 0), 0);
    const bool foreign = geteuid() == 0 && chown(f->path, 12345, (gid_t)-1) == 0;
    for (int times = 0; times < 2; times++)
        host_watch_look(&w, &f->root, 0);
    assert_int_equal(count_warnings("after what the clock says is now"), 1);
    assert_int_equal(count_warnings("belongs to the user 12345, who can open it"), foreign);
    assert_int_equal(chown(f->path, geteuid(), (gid_t)-1), 0);
    log_unshare();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_killed_processes_left_in_staging_goes_after_an_hour,
                                    fixture_setup, fixture_teardown),
    cmocka_unit_test(a_clock_that_is_set_is_noticed_and_one_that_runs_is_not),
    cmocka_unit_test_setup_teardown(a_root_of_another_account_and_a_clock_of_the_past_are_told_once,
                                    fixture_setup, fixture_teardown),
    cmocka_unit_test_setup_teardown(a_root_that_was_opened_or_closed_is_told_once, fixture_setup,
                                    fixture_teardown),
};
UNIT_TESTS(tests)
