#include "config.h"

#include "common/base/auto.h"

#include "tests/unit/unit.h"

#include <fcntl.h>

static int new_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void what_has_no_room_is_closed(void **state)
{
    AUTO_FDS struct fds f = FDS_INIT(2);
    int fd[] = {new_fd(), new_fd(), new_fd()};

    (void)state;
    assert_true(fds_add(&f, fd[0]));
    assert_true(fds_add(&f, fd[1]));
    assert_false(fds_add(&f, fd[2]));
    assert_int_equal(f.n, 2);
    assert_true(is_open(fd[0]) && is_open(fd[1]) && !is_open(fd[2]));
}

static void they_are_taken_in_their_order(void **state)
{
    AUTO_FDS struct fds f = FDS_INIT(FDS_MAX);
    int a = new_fd(), b = new_fd();

    (void)state;
    fds_add(&f, a);
    fds_add(&f, b);
    AUTO_FD int first = fds_take(&f);
    AUTO_FD int second = fds_take(&f);
    assert_int_equal(first, a);
    assert_int_equal(second, b);
    assert_int_equal(fds_take(&f), -1);
}

static void they_move_as_far_as_there_is_room(void **state)
{
    struct fds from = FDS_INIT(FDS_MAX), to = FDS_INIT(2);
    int fd[] = {new_fd(), new_fd(), new_fd()};

    (void)state;
    fds_add(&to, fd[0]);
    fds_add(&from, fd[1]);
    fds_add(&from, fd[2]);
    fds_move(&to, &from);
    assert_int_equal(from.n, 0);
    assert_int_equal(to.n, 2);
    assert_int_equal(to.at[1], fd[1]);
    assert_false(is_open(fd[2]));
    fds_clear(&to);
    assert_int_equal(to.n, 0);
    assert_false(is_open(fd[0]) || is_open(fd[1]));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_has_no_room_is_closed),
    cmocka_unit_test(they_are_taken_in_their_order),
    cmocka_unit_test(they_move_as_far_as_there_is_room),
};
UNIT_TESTS(tests)
