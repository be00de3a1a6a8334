#include "config.h"

#include "common/base/fdio.h"
#include "common/base/sock.h"
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

static char folder[PATH_MAX], path[PATH_MAX + 20];

static int setup(void **state)
{
    (void)state;
    unit_make_folder(folder);
    snprintf(path, sizeof path, "%s/s", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void a_listening_socket_has_its_mode_and_answers(void **state)
{
    (void)state;
    struct err e;
    struct stat st;
    const struct sock_owner owner = {(uid_t)-1, getgid(), 0602};
    mode_t before = umask(022);
    AUTO_FD int fd = sock_listen(path, &owner, &e);
    assert_true(fd >= 0);
    assert_int_equal(umask(before), 022);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0602);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(sock_is_listening(fd));

    AUTO_FD int client = sock_connect_unix(path, &e);
    assert_true(client >= 0);
    assert_int_equal(fcntl(client, F_GETFD), FD_CLOEXEC);
    assert_false(fcntl(client, F_GETFL) & O_NONBLOCK);
    assert_false(sock_is_listening(client));
}

static void without_an_owner_the_mode_is_0660(void **state)
{
    (void)state;
    struct err e;
    struct stat st;
    AUTO_FD int fd = sock_listen(path, NULL, &e);
    assert_true(fd >= 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
}

static void a_stale_socket_file_is_replaced(void **state)
{
    (void)state;
    struct err e;
    int first = sock_listen(path, NULL, &e);
    assert_true(first >= 0);
    close(first);
    assert_fails(sock_connect_unix(path, &e), ERR_UNAVAILABLE, e);
    AUTO_FD int second = sock_listen(path, NULL, &e);
    assert_true(second >= 0);
    AUTO_FD int client = sock_connect_unix(path, &e);
    assert_true(client >= 0);
}

static void a_socket_with_a_listener_is_left_alone(void **state)
{
    (void)state;
    struct err e;
    AUTO_FD int first = sock_listen(path, NULL, &e);
    assert_true(first >= 0);
    assert_fails(sock_listen(path, NULL, &e), ERR_BUSY, e);
    AUTO_FD int client = sock_connect_unix(path, &e);
    assert_true(client >= 0);
}

static void a_connection_can_be_handed_over(void **state)
{
    struct err e = ERR_INIT;
    int pair[2];
    char byte = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(sock_accept_over(pair[0]), -1);
    assert_int_equal(errno, EAGAIN);
    AUTO_FD int ours = sock_connect_over(pair[1], &e);
    assert_works(ours, e);
    AUTO_FD int theirs = sock_accept_over(pair[0]);
    assert_true(theirs >= 0);
    assert_int_equal(fcntl(theirs, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(ours, "x", 1), 1);
    assert_int_equal(read(theirs, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(pair[0]);
    assert_int_equal(sock_connect_over(pair[1], &e), -1);
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    close(pair[1]);
}

static void without_room_a_connection_waits(void **state)
{
    const struct timeval brief = {.tv_usec = 50000};
    struct rlimit before, none;
    struct err e = ERR_INIT;
    int pair[2], n = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief), 0);
    for (int fd; (fd = sock_connect_over(pair[1], &e)) >= 0; n++)
        close(fd);
    assert_int_equal(e.kind, ERR_TIMEOUT);
    assert_in_range(n, 50, 100000);
    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){.rlim_cur = STDERR_FILENO + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int without_room = sock_accept_over(pair[0]), error = errno;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(without_room, -1);
    assert_int_equal(error, EMFILE);
    for (int fd; (fd = sock_accept_over(pair[0])) >= 0; n--)
        close(fd);
    assert_int_equal(n, 0);
    close(pair[0]);
    close(pair[1]);
}

static void a_full_queue_counts_as_a_listener_and_does_not_block(void **state)
{
    (void)state;
    struct err e;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%.100s", path);
    AUTO_FD int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(busy, (const struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(busy, 0), 0);
    AUTO_FD int client = sock_connect_unix(path, &e);
    assert_true(client >= 0);
    assert_fails(sock_listen(path, NULL, &e), ERR_BUSY, e);
}

static void a_file_that_is_not_a_socket_is_left_alone(void **state)
{
    (void)state;
    struct err e;
    struct stat st;
    unit_write_file(path, "precious", 8);
    assert_fails(sock_listen(path, NULL, &e), ERR_INVALID, e);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 8);
    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_fails(sock_listen(path, NULL, &e), ERR_INVALID, e);
}

static void addresses_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "localhost:9000",
                                      "9000",
                                      ":9000",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "127.0.0.1:0",
                                      "127.0.0.1:65536",
                                      "127.0.0.1:+80",
                                      "::1:9000",
                                      "[127.0.0.1]:9000",
                                      "[::1:9000",
                                      "[]:9000",
                                      "1.2.3.4.5:9000",
                                      "unix:x"};
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(sock_listen(bad[i], NULL, &e), ERR_INVALID, e);
    char deep[200];
    memset(deep, 'd', sizeof deep);
    deep[0] = '/';
    deep[sizeof deep - 1] = '\0';
    assert_fails(sock_listen(deep, NULL, &e), ERR_INVALID, e);
    assert_fails(sock_connect_unix(deep, &e), ERR_INVALID, e);
    assert_fails(sock_listen("/nonexistent/s", NULL, &e), ERR_IO, e);
}

static void a_tcp_address_listens_and_is_busy_the_second_time(void **state)
{
    (void)state;
    struct err e;
    char address[40];
    AUTO_FD int fd = -1;
    unsigned port = 20000 + (unsigned)getpid() % 20000;
    for (int tries = 0; fd < 0 && tries < 50; tries++) {
        snprintf(address, sizeof address, "127.0.0.1:%u", ++port);
        fd = sock_listen(address, NULL, &e);
    }
    assert_true(fd >= 0);
    assert_true(sock_is_listening(fd));
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_fails(sock_listen(address, NULL, &e), ERR_BUSY, e);
}

static void other_descriptors_do_not_listen(void **state)
{
    (void)state;
    AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_false(sock_is_listening(null));
    assert_false(sock_is_listening(-1));
}

static void connecting_without_a_listener_says_unavailable(void **state)
{
    (void)state;
    struct err e;
    assert_fails(sock_connect_unix(path, &e), ERR_UNAVAILABLE, e);
    assert_contains(e.text, path);
}

static void the_peer_is_known_by_uid_and_pid(void **state)
{
    (void)state;
    struct err e;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    AUTO_FD int a = pair[0];
    AUTO_FD int b = pair[1];
    uid_t uid = (uid_t)-1;
    pid_t pid = -1;
    assert_works(sock_peer(a, &uid, &pid, &e), e);
    assert_int_equal(uid, getuid());
    assert_int_equal(pid, getpid());
    assert_works(sock_peer(b, NULL, NULL, &e), e);
    AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_fails(sock_peer(null, &uid, &pid, &e), ERR_IO, e);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(a_listening_socket_has_its_mode_and_answers),
    CASE(without_an_owner_the_mode_is_0660),
    CASE(a_stale_socket_file_is_replaced),
    CASE(a_socket_with_a_listener_is_left_alone),
    CASE(a_full_queue_counts_as_a_listener_and_does_not_block),
    CASE(a_connection_can_be_handed_over),
    CASE(without_room_a_connection_waits),
    CASE(a_file_that_is_not_a_socket_is_left_alone),
    CASE(addresses_that_cannot_be_are_refused),
    CASE(a_tcp_address_listens_and_is_busy_the_second_time),
    CASE(other_descriptors_do_not_listen),
    CASE(connecting_without_a_listener_says_unavailable),
    CASE(the_peer_is_known_by_uid_and_pid),
};
UNIT_TESTS(tests)
