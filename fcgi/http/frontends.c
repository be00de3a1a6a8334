/* The front ends that hand requests to http_serve: CGI, and the FastCGI workers. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "fcgi/commands.h"
#include "fcgi/http/http.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#define CHUNK_MAX    (1 << 20) /* libfcgi takes lengths as int */
#define IO_TIMEOUT_S 30        /* for a web server that stalls in the middle of a record */

/* ---- CGI ---- */

bool cgi_detected(void)
{
    return getenv("GATEWAY_INTERFACE") && getenv("REQUEST_METHOD");
}

static const char *cgi_param(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static long cgi_read(void *ctx, char *data, size_t len)
{
    ssize_t n;

    (void)ctx;
    do
        n = read(STDIN_FILENO, data, len);
    while (n < 0 && errno == EINTR);
    return n;
}

static int cgi_write(void *ctx, const char *data, size_t len)
{
    struct err e = ERR_INIT;

    (void)ctx;
    return fdio_write_all(STDOUT_FILENO, data, len, &e);
}

void cgi_serve(const struct app *app)
{
    http_serve(app, &(struct http_source){.param = cgi_param,
                                          .read = cgi_read,
                                          .write = cgi_write,
                                          .cancel_fd = STDOUT_FILENO});
}

/* ---- FastCGI ---- */

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

static int fastcgi_write(void *ctx, const char *data, size_t len)
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
static void fastcgi_hang_up(void *ctx)
{
    FCGX_Request *request = ctx;
    FCGX_FClose(request->err);
    FCGX_FClose(request->out);
}

static void fastcgi_serve_one(const struct app *app, FCGX_Request *request)
{
    const struct timeval timeout = {.tv_sec = IO_TIMEOUT_S};
    int fd = request->ipcFd;

    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    http_serve(app, &(struct http_source){.param = fastcgi_param,
                                          .read = fastcgi_read,
                                          .write = fastcgi_write,
                                          .hang_up = fastcgi_hang_up,
                                          .ctx = request,
                                          .cancel_fd = fd});
    FCGX_Finish_r(request);
}

/* -1: the socket is unusable. */
static int on_accept_error(int error, struct err *e)
{
    switch (error) {
    case EINTR:
    case EAGAIN: /* another worker has accepted the connection */
    case ECONNABORTED:
    case EPROTO:
        return 0;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        log_error("accept: %s; retrying in a second", strerror(error));
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        return 0;
    default:
        return err_set(e, ERR_IO, "accept on the FastCGI socket: %s", strerror(error));
    }
}

int fastcgi_serve(const struct app *app, int listen_fd, struct err *e)
{
    /* EPOLLEXCLUSIVE wakes one of the workers for a connection, poll(2) would wake all. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE};
    AUTO_FD int watch_fd = epoll_create1(EPOLL_CLOEXEC);
    FCGX_Request request;
    sigset_t while_waiting;

    if (watch_fd < 0 || epoll_ctl(watch_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
        return err_errno(e, "epoll");
    if (FCGX_Init() != 0 || FCGX_InitRequest(&request, listen_fd, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        return err_set(e, ERR_INTERNAL, "cannot initialize libfcgi");
    if (stop_prepare(&while_waiting, e) < 0)
        return -1;
    while (!stop_requested()) {
        if (epoll_pwait(watch_fd, &event, 1, -1, &while_waiting) < 0)
            continue;
        int rc = FCGX_Accept_r(&request);
        if (rc == 0)
            fastcgi_serve_one(app, &request);
        else if (on_accept_error(-rc, e) < 0)
            return -1;
    }
    return 0;
}
