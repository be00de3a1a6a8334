#include "config.h"

#include "common/scheduler/watch.h"

#include <stddef.h>
#include <sys/epoll.h>

int watch_begin(int epoll_fd, struct watch *w, int fd, uint32_t events,
                void (*ready)(struct broker *b, void *item, uint32_t events), void *item,
                struct err *e)
{
    struct epoll_event event = {.events = events, .data.ptr = w};
    *w = (struct watch){.fd = fd, .ready = ready, .item = item};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        w->fd = -1;
        return err_errno(e, "epoll_ctl");
    }
    return 0;
}

void watch_end(int epoll_fd, struct watch *w)
{
    if (w->fd >= 0)
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
}
