#include "config.h"

#include "common/base/acceptor.h"

#include "common/base/log.h"
#include "common/base/sock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH    64 /* connections that are taken before others are served */
#define PAUSE_MS 500

static void on_error(struct acceptor *a, int error)
{
    if (error == EINTR || error == EAGAIN || error == ECONNABORTED || error == EPROTO)
        return;
    if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) {
        err_set(&a->failure, ERR_IO, "no connection can be accepted: %s", strerror(error));
    } else {
        log_error("no connection can be accepted now: %s", strerror(error));
        a->again = deadline_in_ms(PAUSE_MS);
    }
    loop_remove(a->loop, &a->watch);
}

static void on_ready(void *owner, void *item, uint32_t events)
{
    struct acceptor *a = item;

    (void)events;
    for (int i = 0; i < BATCH; i++) {
        int fd = a->over ? sock_accept_over(a->fd)
                         : accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            on_error(a, errno);
            return;
        }
        a->take(owner, fd);
    }
}

int acceptor_open(struct acceptor *a, struct loop *loop, struct err *e)
{
    a->loop = loop;
    return loop_add(loop, &a->watch, a->fd, EPOLLIN, on_ready, a, e);
}

void acceptor_tick(struct acceptor *a)
{
    if (!deadline_passed(a->again))
        return;
    a->again = DEADLINE_NEVER;
    acceptor_open(a, a->loop, &a->failure);
}

void acceptor_close(struct acceptor *a)
{
    if (a->loop)
        loop_remove(a->loop, &a->watch);
    a->again = DEADLINE_NEVER;
}
