#include "config.h"

#include "common/base/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER_LEN 4
#define READ_CHUNK 65536
/* Room for one descriptor more than a message may carry, so that we see and close it. */
#define SEEN_FDS (FDS_MAX + 1)

union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(SEEN_FDS * sizeof(int))];
};

/* Puts descriptors into the message's control part. */
static void attach_fds(struct msghdr *m, union control *c, const int *fds, size_t n)
{
    *c = (union control){0};
    m->msg_control = c->space;
    m->msg_controllen = CMSG_SPACE(n * sizeof *fds);
    struct cmsghdr *h = CMSG_FIRSTHDR(m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(n * sizeof *fds);
    memcpy(CMSG_DATA(h), fds, n * sizeof *fds);
}

/* After a failed send: 0 to try again. A blocking socket gives EAGAIN only after its own
 * SO_SNDTIMEO. */
static int wait_to_send(int fd, struct err *e)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (errno == EINTR)
        return 0;
    if (errno == EPIPE || errno == ECONNRESET)
        return err_set(e, ERR_CANCELLED, "the peer has closed the connection");
    if (errno != EAGAIN)
        return err_errno(e, "cannot send");
    if (!(fcntl(fd, F_GETFL) & O_NONBLOCK))
        return err_set(e, ERR_TIMEOUT, "the peer does not read");
    if (poll(&p, 1, -1) < 0 && errno != EINTR)
        return err_errno(e, "cannot wait for the peer");
    return 0;
}

/* A message that is being sent. Points into itself and to the caller's data. */
struct outgoing {
    unsigned char header[HEADER_LEN];
    struct iovec parts[2]; /* not sent yet */
    struct msghdr m;
    union control c;
};

static int outgoing_init(struct outgoing *o, const void *data, size_t len, int pass_fd,
                         struct err *e)
{
    if (len > UINT32_MAX)
        return err_set(e, ERR_LIMIT, "the message is too long");
    for (int i = 0; i < HEADER_LEN; i++)
        o->header[i] = (unsigned char)(len >> (8 * (HEADER_LEN - 1 - i)));
    o->parts[0] = (struct iovec){o->header, sizeof o->header};
    o->parts[1] = (struct iovec){(void *)(uintptr_t)data, len};
    o->m = (struct msghdr){.msg_iov = o->parts, .msg_iovlen = 2};
    if (pass_fd >= 0)
        attach_fds(&o->m, &o->c, &pass_fd, 1);
    return 0;
}

static size_t outgoing_left(const struct outgoing *o)
{
    return o->parts[0].iov_len + o->parts[1].iov_len;
}

/* n bytes were sent, and the descriptor with the first of them. */
static void outgoing_went(struct outgoing *o, size_t n)
{
    o->m.msg_control = NULL;
    o->m.msg_controllen = 0;
    for (int i = 0; i < 2; i++) {
        size_t part = n < o->parts[i].iov_len ? n : o->parts[i].iov_len;
        if (part == 0)
            continue; /* a message without bytes has no address to add to */
        o->parts[i].iov_base = (char *)o->parts[i].iov_base + part;
        o->parts[i].iov_len -= part;
        n -= part;
    }
}

int sock_send_message(int fd, const void *data, size_t len, int pass_fd, struct err *e)
{
    struct outgoing o;
    if (outgoing_init(&o, data, len, pass_fd, e) < 0)
        return -1;
    while (outgoing_left(&o) > 0) {
        ssize_t n = sendmsg(fd, &o.m, MSG_NOSIGNAL);
        if (n >= 0)
            outgoing_went(&o, (size_t)n);
        else if (wait_to_send(fd, e) < 0)
            return -1;
    }
    return 0;
}

int sock_post_message(int fd, const void *data, size_t len, int pass_fd, struct err *e)
{
    struct outgoing o;
    if (outgoing_init(&o, data, len, pass_fd, e) < 0)
        return -1;
    ssize_t n;
    do
        n = sendmsg(fd, &o.m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
        return err_set(e, ERR_CANCELLED, "the peer has closed the connection");
    if (n < 0 && errno != EAGAIN)
        return err_errno(e, "cannot send");
    if (n < 0 || (size_t)n < outgoing_left(&o))
        return err_set(e, ERR_BUSY, "the peer does not read");
    return 0;
}

ssize_t sock_send_some(int fd, const void *data, size_t len, const struct fds *ride)
{
    struct iovec part = {(void *)(uintptr_t)data, len};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    union control c;

    if (ride->n > 0)
        attach_fds(&m, &c, ride->at, ride->n);
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Moves passed descriptors into got; one too many is closed and counted as a fault (-1). */
static int collect_fds(struct msghdr *m, struct fds *got)
{
    int rc = m->msg_flags & MSG_CTRUNC ? -1 : 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (!fds_add(got, fd))
                rc = -1;
        }
    }
    return rc;
}

int sock_recv_some(int fd, void *to, size_t len, struct fds *got, size_t *out_n, struct err *e)
{
    union control c;
    struct iovec part = {to, len};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = c.space,
                       .msg_controllen = sizeof c.space};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *out_n = 0;
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n < 0 && errno == ECONNRESET)
        return 1;
    if (n < 0)
        return err_errno(e, "cannot receive");
    if (collect_fds(&m, got) < 0)
        return err_set(e, ERR_PROTOCOL, "a message carries too many descriptors");
    *out_n = (size_t)n;
    return 1;
}

/* Room for the next bytes, at most *out_len of them; never beyond the message. */
static void *inbox_room(struct sock_inbox *b, size_t *out_len)
{
    if (b->n_header < HEADER_LEN) {
        *out_len = HEADER_LEN - b->n_header;
        return b->header + b->n_header;
    }
    size_t left = b->len - b->message.len;
    *out_len = left < READ_CHUNK ? left : READ_CHUNK;
    return buf_reserve(&b->message, *out_len);
}

static int inbox_grew(struct sock_inbox *b, size_t n, struct err *e)
{
    if (n == 0)
        return b->n_header == 0 ? err_set(e, ERR_CANCELLED, "the peer has closed the connection")
                                : err_set(e, ERR_PROTOCOL, "the stream ended inside a message");
    if (b->n_header == HEADER_LEN) {
        buf_grew(&b->message, n);
        return 0;
    }
    b->n_header += n;
    if (b->n_header == HEADER_LEN)
        for (int i = 0; i < HEADER_LEN; i++)
            b->len = b->len << 8 | b->header[i];
    if (b->len > b->message.max)
        return err_set(e, ERR_LIMIT, "the message is over %zu bytes", b->message.max);
    return 0;
}

static bool inbox_whole(const struct sock_inbox *b)
{
    return b->n_header == HEADER_LEN && b->message.len == b->len;
}

int sock_inbox_take(struct sock_inbox *b, int fd, struct err *e)
{
    if (inbox_whole(b)) {
        buf_reset(&b->message);
        fds_clear(&b->passed);
        b->n_header = b->len = 0;
    }
    while (!inbox_whole(b)) {
        size_t len, n;
        void *to = inbox_room(b, &len);
        int came = sock_recv_some(fd, to, len, &b->passed, &n, e);
        if (came <= 0)
            return came;
        if (inbox_grew(b, n, e) < 0)
            return -1;
    }
    return 1;
}

void sock_inbox_clear(struct sock_inbox *b)
{
    buf_clear(&b->message);
    fds_clear(&b->passed);
    b->n_header = b->len = 0;
}

/* Waits with poll, so that blocking sockets keep the deadline, too. */
int sock_recv_message(int fd, struct buf *out, int *out_fd, struct deadline d, struct err *e)
{
    struct sock_inbox inbox = {.message = *out, .passed = FDS_INIT(1)};
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int came;
    buf_reset(&inbox.message);
    while ((came = sock_inbox_take(&inbox, fd, e)) == 0) {
        int ready = poll(&p, 1, deadline_poll_ms(d));
        if (ready < 0 && errno != EINTR)
            came = err_errno(e, "cannot wait for a message");
        else if (ready == 0 && deadline_passed(d))
            came = err_set(e, ERR_TIMEOUT, "no message came in time");
        if (came < 0)
            break;
    }
    *out = inbox.message;
    if (out_fd)
        *out_fd = came < 0 ? -1 : fds_take(&inbox.passed);
    fds_clear(&inbox.passed);
    return came < 0 ? -1 : 0;
}

/* ---- connections over a pair ---- */

static int connect_over(int over,
                        int (*send)(int fd, const void *data, size_t len, int pass_fd,
                                    struct err *e),
                        struct err *e)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int ours = pair[0], theirs = pair[1];
    if (send(over, NULL, 0, theirs, e) == 0)
        return TAKE_FD(ours);
    return e->kind == ERR_CANCELLED
               ? err_set(e, ERR_UNAVAILABLE, "no process accepts connections over the pair")
               : -1;
}

int sock_connect_over(int over, struct err *e)
{
    return connect_over(over, sock_send_message, e);
}

/* A message on such a pair is whole or not there: no part of it is sent. */
int sock_connect_over_now(int over, struct err *e)
{
    return connect_over(over, sock_post_message, e);
}

/* A descriptor for which there is no room would be lost, so room is looked for first. */
int sock_accept_over(int over)
{
    AUTO_FDS struct fds handed = FDS_INIT(1);
    struct err e = ERR_INIT;
    char header[4];
    size_t n;
    int room = fcntl(over, F_DUPFD_CLOEXEC, 0);

    if (room < 0)
        return -1;
    close(room);
    sock_recv_some(over, header, sizeof header, &handed, &n, &e);
    errno = EAGAIN; /* also for a message without a connection */
    return fds_take(&handed);
}
