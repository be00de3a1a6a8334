#include "config.h"

#include "fcgi/http/fastcgi.h"

#include "common/base/log.h"
#include "fcgi/http/http.h"
#include "fcgi/process/stop.h"

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

static const char *param(void *ctx, const char *name)
{
    FCGX_Request *request = ctx;
    return FCGX_GetParam(name, request->envp);
}

static long read_some(void *ctx, char *data, size_t len)
{
    FCGX_Request *request = ctx;
    int n = FCGX_GetStr(data, len > CHUNK_MAX ? CHUNK_MAX : (int)len, request->in);
    return FCGX_GetError(request->in) ? -1 : n;
}

static int write_all(void *ctx, const char *data, size_t len)
{
    FCGX_Request *request = ctx;
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
static void hang_up(void *ctx)
{
    FCGX_Request *request = ctx;
    FCGX_FClose(request->err);
    FCGX_FClose(request->out);
}

static void prepare_connection(int fd)
{
    const struct timeval timeout = {.tv_sec = IO_TIMEOUT_S};
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
}

static void serve_one(const struct app *app, FCGX_Request *request)
{
    prepare_connection(request->ipcFd);
    const struct http_source source = {.param = param,
                                       .read = read_some,
                                       .write = write_all,
                                       .hang_up = hang_up,
                                       .ctx = request,
                                       .cancel_fd = request->ipcFd};
    http_serve(app, &source);
    FCGX_Finish_r(request);
}

/* What a failed accept means: -1 give up, 0 go on. */
static int accept_failed(int error, struct err *e)
{
    switch (error) {
    case EINTR:
    case EAGAIN: /* a sibling was quicker */
    case ECONNABORTED:
    case EPROTO:
        return 0;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        log_error("accept: %s; trying again in a second", strerror(error));
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        return 0;
    default:
        return err_set(e, ERR_IO, "accept on the FastCGI socket: %s", strerror(error));
    }
}

/* All workers wait on one socket; EPOLLEXCLUSIVE wakes one of them for a connection, poll would
 * wake all. */
static int watch(int listen_fd, struct err *e)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    AUTO_FD int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        return err_errno(e, "epoll");
    return TAKE_FD(fd);
}

int fastcgi_serve(const struct app *app, int listen_fd, struct err *e)
{
    FCGX_Request request;
    sigset_t while_waiting;

    if (FCGX_Init() != 0 || FCGX_InitRequest(&request, listen_fd, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        return err_set(e, ERR_INTERNAL, "libfcgi does not start");
    AUTO_FD int watch_fd = watch(listen_fd, e);
    if (watch_fd < 0 || stop_prepare(&while_waiting, e) < 0)
        return -1;
    while (!stop_requested()) {
        struct epoll_event event;
        if (epoll_pwait(watch_fd, &event, 1, -1, &while_waiting) < 0)
            continue;
        int rc = FCGX_Accept_r(&request);
        if (rc == 0)
            serve_one(app, &request);
        else if (accept_failed(-rc, e) < 0)
            return -1;
    }
    return 0;
}
