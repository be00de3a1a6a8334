#include "config.h"

#include "tests/unit/unit.h"

#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void a_descriptor_closes_at_the_end_of_its_scope(void **state)
{
    (void)state;
    int number;
    {
        AUTO_FD int fd = open_null();
        number = fd;
    }
    assert_int_equal(fcntl(number, F_GETFD), -1);
}

static void a_taken_descriptor_stays_open(void **state)
{
    (void)state;
    int kept;
    {
        AUTO_FD int fd = open_null();
        kept = TAKE_FD(fd);
        assert_int_equal(fd, -1);
    }
    assert_int_equal(fcntl(kept, F_GETFD), FD_CLOEXEC);
    auto_close_fd(&kept);
    assert_int_equal(kept, -1);
}

static void a_taken_pointer_is_not_freed(void **state)
{
    (void)state;
    char *kept;
    {
        AUTO_FREE char *text = mem_strdup("kept");
        kept = TAKE_PTR(text);
        assert_null(text);
    }
    assert_string_equal(kept, "kept");
    free(kept);
}

static void closing_keeps_errno(void **state)
{
    (void)state;
    int none = -1, bad = 100000;
    errno = ENOTDIR;
    auto_close_fd(&none);
    assert_int_equal(errno, ENOTDIR);
    auto_close_fd(&bad); /* close says EBADF */
    assert_int_equal(errno, ENOTDIR);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_descriptor_closes_at_the_end_of_its_scope),
    cmocka_unit_test(a_taken_descriptor_stays_open),
    cmocka_unit_test(a_taken_pointer_is_not_freed),
    cmocka_unit_test(closing_keeps_errno),
};
UNIT_TESTS(tests)
