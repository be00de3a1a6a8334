/* What the housekeeper does without an engine. */
#include "config.h"

#include "common/base/clock.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_killed_processes_left_in_staging_goes_after_an_hour,
                                        fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
