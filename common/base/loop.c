#include "config.h"

#include "common/base/loop.h"

#include "common/base/auto.h"
#include "common/base/purpose.h"

#include <errno.h>
#include <stdbool.h>

int loop_init(struct loop *l, void *owner, struct err *e)
{
    *l = (struct loop){.fd = epoll_create1(EPOLL_CLOEXEC), .owner = owner};
    return l->fd < 0 ? err_errno(e, "epoll_create1") : 0;
}

void loop_clear(struct loop *l)
{
    auto_close_fd(&l->fd);
    l->next = l->n = 0;
}

int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_handler *ready,
             void *item, struct err *e)
{
    struct epoll_event event = {.events = events, .data.ptr = w};

    *w = (struct loop_watch){.fd = fd, .ready = ready, .item = item};
    if (epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    w->fd = -1;
    return err_errno(e, "epoll_ctl");
}

int loop_change(struct loop *l, struct loop_watch *w, uint32_t events, struct err *e)
{
    struct epoll_event event = {.events = events, .data.ptr = w};

    return epoll_ctl(l->fd, EPOLL_CTL_MOD, w->fd, &event) < 0 ? err_errno(e, "epoll_ctl") : 0;
}

void loop_remove(struct loop *l, struct loop_watch *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(l->fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->fd = -1;
    for (int i = l->next; i < l->n; i++)
        if (l->batch[i].data.ptr == w)
            l->batch[i].data.ptr = NULL;
}

static int loop_fetch(struct loop *l, int timeout_ms, const sigset_t *while_waiting, struct err *e)
{
    if (l->next < l->n)
        return 0;
    if (timeout_ms != 0)
        purpose_count();
    int n = epoll_pwait(l->fd, l->batch, LOOP_BATCH, timeout_ms, while_waiting);
    if (n < 0 && errno != EINTR)
        return err_errno(e, "epoll_wait");
    l->next = 0;
    l->n = n < 0 ? 0 : n;
    return 0;
}

/* false: the batch holds nothing more. */
static bool loop_dispatch_next(struct loop *l)
{
    while (l->next < l->n) {
        const struct epoll_event *event = &l->batch[l->next++];
        const struct loop_watch *w = event->data.ptr;

        if (!w)
            continue;
        w->ready(l->owner, w->item, event->events);
        return true;
    }
    return false;
}

int loop_wait(struct loop *l, struct deadline d, const sigset_t *while_waiting, struct err *e)
{
    int n = 0;

    if (loop_fetch(l, deadline_poll_ms(d), while_waiting, e) < 0)
        return -1;
    while (loop_dispatch_next(l))
        n++;
    return n;
}

int loop_dispatch(struct loop *l, struct err *e)
{
    return loop_wait(l, (struct deadline){.at_ms = 0}, NULL, e);
}

int loop_wait_one(struct loop *l, struct deadline d, struct err *e)
{
    if (loop_dispatch_next(l))
        return 1;
    return loop_fetch(l, deadline_poll_ms(d), NULL, e) < 0 ? -1 : loop_dispatch_next(l);
}
