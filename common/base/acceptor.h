/*
 * Takes connections for a server with a loop: from a listening socket, or from a pair over which
 * they are handed (sock_accept_over). Without descriptors or memory it pauses: else the loop would
 * turn without end.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"

#include <stdbool.h>

struct acceptor {
    int fd; /* borrowed */
    bool over;
    void (*take)(void *owner, int take_fd); /* owner: the loop's */
    struct loop *loop;                      /* borrowed; NULL: it is not open */
    struct loop_watch watch;
    struct deadline again; /* when it goes on after a pause; never: there is none */
    struct err failure;    /* why no connection will come any more */
};

#define ACCEPTOR_INIT(a_fd, a_over, a_take)                                                        \
    ((struct acceptor){.fd = (a_fd),                                                               \
                       .over = (a_over),                                                           \
                       .take = (a_take),                                                           \
                       .watch = LOOP_WATCH_INIT,                                                   \
                       .again = DEADLINE_NEVER})

int acceptor_open(struct acceptor *a, struct loop *loop, struct err *e);
/* Goes on when a pause is over; to be called after each turn of a loop that waits until a->again.
 */
void acceptor_tick(struct acceptor *a);
void acceptor_close(struct acceptor *a);
