/* Whom the broker's main loop hears: a descriptor and who is told. Private to common/broker. */
#ifndef SANDCGI_SCHEDULER_WATCH_H
#define SANDCGI_SCHEDULER_WATCH_H

#include "common/base/err.h"

#include <stdint.h>

struct broker;

struct watch {
    int fd; /* -1: nobody is watched */
    void (*ready)(struct broker *b, void *item, uint32_t events);
    void *item;
};

#define WATCH_INIT                                                                                 \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* events as in epoll_ctl(2). w stays where it is until watch_end. */
int watch_begin(int epoll_fd, struct watch *w, int fd, uint32_t events,
                void (*ready)(struct broker *b, void *item, uint32_t events), void *item,
                struct err *e);
/* Before fd is closed: a copy of it in another process would keep it in the set. Idempotent. */
void watch_end(int epoll_fd, struct watch *w);

#endif
