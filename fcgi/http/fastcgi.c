#include "config.h"

#include "fcgi/http/fastcgi.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/purpose.h"
#include "common/protocol/client_call.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define CHUNK_MAX    (1 << 20) /* libfcgi takes lengths as int */
#define IO_TIMEOUT_S 30        /* for a web server that stalls in the middle of a record */

static const char *fastcgi_param(void *ctx, const char *name)
{
    FCGX_Request *request = ctx;
    return FCGX_GetParam(name, request->envp);
}

static long fastcgi_read(void *ctx, char *data, size_t len)
{
    FCGX_Request *request = ctx;
    int n = FCGX_GetStr(data, len > CHUNK_MAX ? CHUNK_MAX : (int)len, request->in);
    return FCGX_GetError(request->in) ? -1 : n;
}

static uint64_t sent_bytes; /* of the request that this worker serves */

static int fastcgi_write(void *ctx, const char *data, size_t len)
{
    FCGX_Request *request = ctx;
    sent_bytes += len;
    while (len > 0) {
        int n = len > CHUNK_MAX ? CHUNK_MAX : (int)len;
        if (FCGX_PutStr(data, n, request->out) != n)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return FCGX_FFlush(request->out);
}

/* Tells the web server that the answer is complete. The request's parameters stay until
 * FCGX_Finish_r. */
static void fastcgi_hang_up(void *ctx)
{
    FCGX_Request *request = ctx;
    FCGX_FClose(request->err);
    FCGX_FClose(request->out);
}

static void serve_one(FCGX_Request *request, fastcgi_server *serve, const void *ctx)
{
    const struct timeval timeout = {.tv_sec = IO_TIMEOUT_S};
    int fd = request->ipcFd;

    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    sent_bytes = 0;
    serve(ctx, &(struct http_source){.param = fastcgi_param,
                                     .read = fastcgi_read,
                                     .write = fastcgi_write,
                                     .hang_up = fastcgi_hang_up,
                                     .ctx = request,
                                     .sent = &sent_bytes,
                                     .cancel_fd = fd});
}

/* -1: the socket is unusable. */
static int on_accept_error(int error, struct err *e)
{
    /* EAGAIN: another worker has accepted the connection. */
    if (error == EINTR || error == EAGAIN || error == ECONNABORTED || error == EPROTO)
        return 0;
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
        return err_set(e, ERR_IO, "accept on the FastCGI socket: %s", strerror(error));
    log_error("accept: %s; retrying in a second", strerror(error));
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    return 0;
}

/* The listening socket's queue of waiting workers. */
struct queue {
    int watch_fd, listen_fd;
    bool joined;
};

/* EPOLLEXCLUSIVE wakes one of the workers for a connection, poll(2) would wake all. */
static int queue_join(struct queue *q)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};

    q->joined = q->joined || epoll_ctl(q->watch_fd, EPOLL_CTL_ADD, q->listen_fd, &event) == 0;
    return q->joined ? 0 : -1;
}

/* For the time of a long call: each connection passes those that are in the queue and do not wait.
 * After a short one its place in front matters more, as connections go to the same few workers. */
static void queue_leave(void *ctx)
{
    struct queue *q = ctx;

    if (q->joined)
        q->joined = epoll_ctl(q->watch_fd, EPOLL_CTL_DEL, q->listen_fd, NULL) < 0;
}

int fastcgi_loop(int listen_fd, const struct call_place *place, fastcgi_server *serve,
                 const void *ctx, struct err *e)
{
    AUTO_FD int watch_fd = epoll_create1(EPOLL_CLOEXEC);
    struct queue queue = {.watch_fd = watch_fd, .listen_fd = listen_fd};
    struct epoll_event event;
    FCGX_Request request;
    sigset_t while_waiting;

    if (FCGX_Init() != 0 || FCGX_InitRequest(&request, listen_fd, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        return err_set(e, ERR_INTERNAL, "cannot initialize libfcgi");
    if (stop_prepare(&while_waiting, e) < 0)
        return -1;
    client_on_long_call(queue_leave, &queue);
    while (!stop_requested() || calls_are_last(place)) {
        if (queue_join(&queue) < 0)
            return err_errno(e, "epoll");
        if (!stop_requested() && epoll_pwait(watch_fd, &event, 1, -1, &while_waiting) < 0)
            continue;
        call_begin(place);
        int rc = FCGX_Accept_r(&request);
        if (rc == 0)
            serve_one(&request, serve, ctx);
        call_end(place); /* before the connection ends, which others may wait for */
        if (rc == 0)
            FCGX_Finish_r(&request);
        else if (calls_are_last(place))
            break; /* the queue is empty */
        else if (on_accept_error(-rc, e) < 0)
            return -1;
        purpose_count();
    }
    return 0;
}
