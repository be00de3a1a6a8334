#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SOON deadline_in_ms(2000)

struct ends {
    int a, b, fds_before;
};

static int setup(void **state)
{
    static struct ends ends;
    int pair[2];
    ends.fds_before = unit_count_fds();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ends.a = pair[0];
    ends.b = pair[1];
    *state = &ends;
    return 0;
}

static int teardown(void **state)
{
    struct ends *ends = *state;
    auto_close_fd(&ends->a);
    auto_close_fd(&ends->b);
    return unit_count_fds() == ends->fds_before ? 0 : -1;
}

static void messages_arrive_whole_and_in_order(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(100);
    int passed = 99;
    assert_works(sock_send_message(ends->a, "first", 5, -1, &e), e);
    assert_works(sock_send_message(ends->a, NULL, 0, -1, &e), e);
    assert_works(sock_send_message(ends->a, "th\0rd", 5, -1, &e), e);
    assert_works(sock_recv_message(ends->b, &got, &passed, SOON, &e), e);
    assert_string_equal(buf_str(&got), "first");
    assert_int_equal(passed, -1);
    assert_works(sock_recv_message(ends->b, &got, NULL, SOON, &e), e);
    assert_int_equal(got.len, 0);
    assert_works(sock_recv_message(ends->b, &got, NULL, DEADLINE_NEVER, &e), e);
    assert_int_equal(got.len, 5);
    assert_memory_equal(got.data, "th\0rd", 5);
}

static void the_length_is_four_bytes_big_endian(void **state)
{
    struct ends *ends = *state;
    struct err e;
    char raw[8] = "";
    assert_works(sock_send_message(ends->a, "abc", 3, -1, &e), e);
    unit_read_full(ends->b, raw, 7);
    assert_memory_equal(raw, "\0\0\0\3abc", 7);
}

static void a_descriptor_travels_with_its_message(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(100);
    int fds[2], passed = -1, none = 99;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    AUTO_FD int reader = fds[0];
    AUTO_FD int writer = fds[1];
    assert_works(sock_send_message(ends->a, "one", 3, writer, &e), e);
    assert_works(sock_send_message(ends->a, "two", 3, -1, &e), e);
    assert_works(sock_recv_message(ends->b, &got, &passed, SOON, &e), e);
    AUTO_FD int mine = passed;
    assert_true(mine >= 0 && mine != writer);
    assert_int_equal(fcntl(mine, F_GETFD), FD_CLOEXEC);
    assert_works(fdio_write_all(mine, "x", 1, &e), e);
    char c = 0;
    unit_read_full(reader, &c, 1);
    assert_int_equal(c, 'x');
    assert_works(sock_recv_message(ends->b, &got, &none, SOON, &e), e);
    assert_string_equal(buf_str(&got), "two");
    assert_int_equal(none, -1);
}

static void as_many_travel_together_as_the_receiver_has_room_for(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_FDS struct fds ride = FDS_INIT(FDS_MAX);
    for (int i = 0; i < FDS_MAX; i++) {
        int fds[2];
        char mark = (char)('a' + i);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(write(fds[1], &mark, 1), 1);
        close(fds[1]);
        fds_add(&ride, fds[0]);
    }
    struct sock_inbox inbox = SOCK_INBOX_INIT(100);
    inbox.passed.max = FDS_MAX;
    assert_int_equal(sock_send_some(ends->a, "\0\0\0\3abc", 7, &ride), 7);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_string_equal(buf_str(&inbox.message), "abc");
    assert_int_equal(inbox.passed.n, FDS_MAX);
    for (int i = 0; i < FDS_MAX; i++) {
        char mark = 0;
        assert_int_equal(fcntl(inbox.passed.at[i], F_GETFD), FD_CLOEXEC);
        unit_read_full(inbox.passed.at[i], &mark, 1);
        assert_int_equal(mark, 'a' + i);
    }
    sock_inbox_clear(&inbox);
    inbox.passed.max = FDS_MAX - 1;
    assert_int_equal(sock_send_some(ends->a, "\0\0\0\3abc", 7, &ride), 7);
    assert_fails(sock_inbox_take(&inbox, ends->b, &e), ERR_PROTOCOL, e);
    sock_inbox_clear(&inbox); /* teardown counts what stays open */
}

static void an_unwanted_descriptor_is_closed(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(2);
    int passed = 99;
    /* teardown counts what stays open */
    assert_works(sock_send_message(ends->a, "x", 1, STDERR_FILENO, &e), e);
    assert_works(sock_recv_message(ends->b, &got, NULL, SOON, &e), e);
    assert_works(sock_send_message(ends->a, "too long", 8, STDERR_FILENO, &e), e);
    assert_fails(sock_recv_message(ends->b, &got, &passed, SOON, &e), ERR_LIMIT, e);
    assert_int_equal(passed, -1);
}

static void send_raw_with_fds(int fd, const void *data, size_t len, size_t n_fds)
{
    char space[CMSG_SPACE((FDS_MAX + 8) * sizeof(int))] __attribute__((aligned(8))) = {0};
    struct iovec part = {(void *)(uintptr_t)data, len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space};
    m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    int zeros[FDS_MAX + 8] = {0};
    memcpy(CMSG_DATA(h), zeros, n_fds * sizeof(int));
    assert_int_equal(sendmsg(fd, &m, 0), (ssize_t)len);
}

static void more_than_one_descriptor_is_a_fault_and_leaks_none(void **state)
{
    struct ends *ends = *state;
    struct err e;
    for (size_t n = 2; n <= FDS_MAX + 4; n += 3) {
        int pair[2], passed = 99;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        AUTO_FD int a = pair[0];
        AUTO_FD int b = pair[1];
        AUTO_BUF struct buf got = BUF_INIT(100);
        send_raw_with_fds(a, "\0\0\0\1x", 5, n);
        assert_fails(sock_recv_message(b, &got, &passed, SOON, &e), ERR_PROTOCOL, e);
        assert_int_equal(passed, -1);
    }
    /* one with the length, another with the body */
    AUTO_BUF struct buf got = BUF_INIT(100);
    int passed = 99;
    send_raw_with_fds(ends->a, "\0\0\0\2x", 5, 1);
    send_raw_with_fds(ends->a, "y", 1, 1);
    assert_fails(sock_recv_message(ends->b, &got, &passed, SOON, &e), ERR_PROTOCOL, e);
    assert_int_equal(passed, -1);
}

static void exactly_max_is_received_and_one_more_is_a_limit(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(5);
    assert_works(sock_send_message(ends->a, "12345", 5, -1, &e), e);
    assert_works(sock_recv_message(ends->b, &got, NULL, SOON, &e), e);
    assert_string_equal(buf_str(&got), "12345");
    assert_works(sock_send_message(ends->a, "123456", 6, -1, &e), e);
    assert_fails(sock_recv_message(ends->b, &got, NULL, SOON, &e), ERR_LIMIT, e);
}

static void a_promised_length_takes_no_memory(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(1u << 31);
    assert_works(fdio_write_all(ends->a,
                                "\x7f\xff\xff\xff"
                                "abc",
                                7, &e),
                 e);
    auto_close_fd(&ends->a);
    assert_fails(sock_recv_message(ends->b, &got, NULL, SOON, &e), ERR_PROTOCOL, e);
    assert_true(got.cap < 1 << 20);
}

static void the_end_between_messages_differs_from_the_end_inside(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        enum err_kind kind;
    } rows[] = {{"", 0, ERR_CANCELLED},
                {"\0\0", 2, ERR_PROTOCOL},
                {"\0\0\0\5", 4, ERR_PROTOCOL},
                {"\0\0\0\5abcd", 8, ERR_PROTOCOL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        AUTO_FD int a = pair[0];
        AUTO_FD int b = pair[1];
        AUTO_BUF struct buf got = BUF_INIT(100);
        assert_works(fdio_write_all(a, rows[i].bytes, rows[i].len, &e), e);
        auto_close_fd(&a);
        assert_fails(sock_recv_message(b, &got, NULL, SOON, &e), rows[i].kind, e);
    }
}

static void a_silent_or_slow_peer_ends_at_the_deadline(void **state)
{
    struct ends *ends = *state;
    struct err e;
    AUTO_BUF struct buf got = BUF_INIT(100);
    int64_t start = clock_mono_ms();
    assert_fails(sock_recv_message(ends->b, &got, NULL, deadline_in_ms(40), &e), ERR_TIMEOUT, e);
    assert_works(fdio_write_all(ends->a, "\0\0\0\5ab", 6, &e), e);
    assert_fails(sock_recv_message(ends->b, &got, NULL, deadline_in_ms(40), &e), ERR_TIMEOUT, e);
    int64_t took = clock_mono_ms() - start;
    assert_true(took >= 75 && took < 20000);
}

static void a_large_message_passes_in_pieces_both_blocking_and_not(void **state)
{
    struct ends *ends = *state;
    struct err e;
    const size_t len = 3 << 20;
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        if (nonblocking)
            assert_works(fdio_set_nonblocking(ends->a, &e), e);
        pid_t pid = fork();
        if (pid == 0) {
            AUTO_FREE char *data = mem_alloc(len);
            memset(data, 'd', len);
            data[0] = 'a';
            data[len - 1] = 'z';
            _exit(sock_send_message(ends->a, data, len, STDERR_FILENO, &e) < 0);
        }
        AUTO_BUF struct buf got = BUF_INIT(len);
        int passed = -1, status = -1;
        assert_works(sock_recv_message(ends->b, &got, &passed, SOON, &e), e);
        AUTO_FD int mine = passed;
        assert_true(mine >= 0);
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        assert_int_equal(got.len, len);
        assert_int_equal(got.data[0], 'a');
        assert_int_equal(got.data[len - 1], 'z');
    }
}

static void sending_to_a_peer_that_left_is_cancelled_without_a_signal(void **state)
{
    struct ends *ends = *state;
    struct err e;
    auto_close_fd(&ends->b);
    assert_fails(sock_send_message(ends->a, "x", 1, -1, &e), ERR_CANCELLED, e);
}

static void a_send_timeout_of_the_socket_is_a_timeout(void **state)
{
    struct ends *ends = *state;
    struct err e;
    const size_t len = 3 << 20;
    AUTO_FREE char *data = mem_alloc(len);
    struct timeval soon = {.tv_usec = 40000};
    assert_int_equal(setsockopt(ends->a, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
    assert_fails(sock_send_message(ends->a, data, len, -1, &e), ERR_TIMEOUT, e);
}

static void an_inbox_takes_a_message_as_it_comes_and_nothing_behind_it(void **state)
{
    static const char stream[] = "\0\0\0\3abc\0\0\0\0\0\0\0\2de";
    struct ends *ends = *state;
    struct sock_inbox inbox = SOCK_INBOX_INIT(8);
    struct err e;

    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(write(ends->a, stream + i, 1), 1);
        assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 0);
    }
    assert_int_equal(write(ends->a, stream + 6, sizeof stream - 1 - 6), sizeof stream - 1 - 6);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_string_equal(buf_str(&inbox.message), "abc");
    /* What follows is still there for the next reader. */
    char left[16];
    assert_int_equal(recv(ends->b, left, sizeof left, MSG_PEEK), 10);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_int_equal(inbox.message.len, 0);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_string_equal(buf_str(&inbox.message), "de");
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 0);
    auto_close_fd(&ends->a);
    assert_fails(sock_inbox_take(&inbox, ends->b, &e), ERR_CANCELLED, e);
    sock_inbox_clear(&inbox);
}

static void an_inbox_has_bounds_and_keeps_one_descriptor(void **state)
{
    struct ends *ends = *state;
    struct sock_inbox inbox = SOCK_INBOX_INIT(8);
    struct err e;
    AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_works(sock_post_message(ends->a, "x", 1, null, &e), e);
    assert_works(sock_post_message(ends->a, "y", 1, -1, &e), e);
    assert_works(sock_post_message(ends->a, "123456789", 9, -1, &e), e);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_int_equal(inbox.passed.n, 1);
    assert_int_equal(sock_inbox_take(&inbox, ends->b, &e), 1);
    assert_int_equal(inbox.passed.n, 0);
    assert_fails(sock_inbox_take(&inbox, ends->b, &e), ERR_LIMIT, e);
    sock_inbox_clear(&inbox);
}

static void a_message_is_posted_whole_or_refused(void **state)
{
    struct ends *ends = *state;
    struct err e = ERR_INIT;
    AUTO_FREE char *big = mem_alloc(65536);
    int rc;

    for (int i = 0; (rc = sock_post_message(ends->a, big, 65536, -1, &e)) == 0; i++)
        assert_true(i < 1000);
    assert_int_equal(e.kind, ERR_BUSY);
    auto_close_fd(&ends->b);
    assert_fails(sock_post_message(ends->a, "x", 1, -1, &e), ERR_CANCELLED, e);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    CASE(messages_arrive_whole_and_in_order),
    CASE(an_inbox_takes_a_message_as_it_comes_and_nothing_behind_it),
    CASE(an_inbox_has_bounds_and_keeps_one_descriptor),
    CASE(a_message_is_posted_whole_or_refused),
    CASE(the_length_is_four_bytes_big_endian),
    CASE(a_descriptor_travels_with_its_message),
    CASE(as_many_travel_together_as_the_receiver_has_room_for),
    CASE(an_unwanted_descriptor_is_closed),
    CASE(more_than_one_descriptor_is_a_fault_and_leaks_none),
    CASE(exactly_max_is_received_and_one_more_is_a_limit),
    CASE(a_promised_length_takes_no_memory),
    CASE(the_end_between_messages_differs_from_the_end_inside),
    CASE(a_silent_or_slow_peer_ends_at_the_deadline),
    CASE(a_large_message_passes_in_pieces_both_blocking_and_not),
    CASE(sending_to_a_peer_that_left_is_cancelled_without_a_signal),
    CASE(a_send_timeout_of_the_socket_is_a_timeout),
};
UNIT_TESTS(tests)
