#include "config.h"

#include "fcgi/hub/events.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_WAIT_MS      1000 /* after an event was dropped */
#define RECEIVE_BUFFER  (1 << 20)
#define EVENT_DEPTH_MAX 4

static int set_address(struct sockaddr_un *a, const char *path, struct err *e)
{
    size_t len = strlen(path);

    if (len == 0 || len >= sizeof a->sun_path)
        return err_set(e, ERR_INVALID, "events.sock: the path must have 1 to %zu characters",
                       sizeof a->sun_path - 1);
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(a->sun_path, path, len + 1);
    return 0;
}

void event_sender_init(struct event_sender *s, const char *path, int timeout_ms)
{
    struct err e = ERR_INIT;

    *s = (struct event_sender){
        .fd = -1, .timeout_ms = timeout_ms, .no_wait_until = deadline_in_ms(0)};
    if (set_address(&s->to, path, &e) == 0)
        s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void event_sender_clear(struct event_sender *s)
{
    auto_close_fd(&s->fd);
}

void event_sender_use(struct event_sender *s, int take_fd)
{
    auto_close_fd(&s->fd);
    s->fd = take_fd;
    s->to.sun_family = AF_UNSPEC;
}

/* False: the hub's queue is full. Without a hub the event is done with. */
static bool try_send(const struct event_sender *s, const struct buf *text)
{
    const struct sockaddr *to = s->to.sun_family ? (const struct sockaddr *)&s->to : NULL;
    ssize_t n;

    do
        n = sendto(s->fd, text->data, text->len, MSG_NOSIGNAL | MSG_DONTWAIT, to,
                   to ? sizeof s->to : 0);
    while (n < 0 && errno == EINTR);
    return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

/*
 * The kernel queues few datagrams (net.unix.max_dgram_qlen), fewer than the files that a run may
 * change. An unconnected socket cannot be polled for room: it is tried every millisecond.
 */
static bool event_send(struct event_sender *s, const struct buf *text)
{
    bool may_wait = deadline_passed(s->no_wait_until);

    for (int ms = may_wait ? s->timeout_ms : 0;; ms--) {
        if (try_send(s, text))
            return true;
        if (ms <= 0)
            break;
        poll(NULL, 0, 1);
    }
    s->no_wait_until = deadline_in_ms(NO_WAIT_MS);
    return !may_wait; /* logged once */
}

bool event_sender_try(struct event_sender *s, const struct mcp_event *event)
{
    AUTO_BUF struct buf text = BUF_INIT(MCP_EVENT_MAX);

    if (s->fd < 0)
        return true;
    json_auto_t *object = mcp_event_encode(event);
    if (object && json_write(object, &text) == 0)
        return event_send(s, &text);
    log_warn("event dropped: over %d bytes", MCP_EVENT_MAX);
    return true;
}

void event_sender_publish(void *ctx, const struct mcp_event *event)
{
    if (!event_sender_try(ctx, event))
        log_warn("event dropped, perhaps followed by others: the hub's queue is full");
}

/* Removes the socket file of a process that has ended; any other file is an error. */
static int remove_stale(const struct sockaddr_un *a, struct err *e)
{
    struct stat st;

    if (lstat(a->sun_path, &st) < 0)
        return errno == ENOENT ? 0 : err_errno(e, "cannot stat %s", a->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, ERR_INVALID, "%s exists and is not a socket", a->sun_path);
    AUTO_FD int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return err_errno(e, "cannot create a socket");
    if (connect(probe, (const struct sockaddr *)a, sizeof *a) == 0)
        return err_set(e, ERR_BUSY, "%s is in use by another process", a->sun_path);
    if (errno != ECONNREFUSED)
        return err_errno(e, "cannot find out whether %s is in use", a->sun_path);
    if (unlink(a->sun_path) < 0 && errno != ENOENT)
        return err_errno(e, "cannot remove the stale socket %s", a->sun_path);
    return 0;
}

int events_listen(const char *path, const struct account *workers, struct err *e)
{
    struct sockaddr_un a;
    int size = RECEIVE_BUFFER;

    if (set_address(&a, path, e) < 0 || remove_stale(&a, e) < 0)
        return -1;
    AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(e, "cannot create a socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    shutdown(fd, SHUT_WR); /* else a hub that is taken over could send to every socket's path */
    mode_t before = umask(0177);
    int rc = bind(fd, (const struct sockaddr *)&a, sizeof a);
    umask(before);
    if (rc < 0)
        return err_errno(e, "cannot bind to %s", a.sun_path);
    if (geteuid() == 0 && lchown(a.sun_path, workers->uid, workers->gid) < 0) {
        err_errno(e, "cannot set the owner of %s", a.sun_path);
        unlink(a.sun_path);
        return -1;
    }
    return TAKE_FD(fd);
}

json_t *events_receive(int fd, struct mcp_event *out)
{
    char text[MCP_EVENT_MAX];

    for (;;) {
        struct err e = ERR_INIT;
        ssize_t n = recv(fd, text, sizeof text, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return NULL;
        json_t *object = (size_t)n <= sizeof text ? json_parse(text, (size_t)n, EVENT_DEPTH_MAX, &e)
                                                  : NULL;
        if (object && mcp_event_decode(object, out) == 0)
            return object;
        json_decref(object);
        log_warn("events.sock: received a datagram that is not an event");
    }
}

json_t *events_next(const int fds[2], struct mcp_event *out)
{
    const bool waits = recv(fds[0], NULL, 0, MSG_PEEK | MSG_DONTWAIT) >= 0;
    json_t *object = events_receive(fds[1], out);

    return object || !waits ? object : events_receive(fds[0], out);
}
