/*
 * An event loop: calls a function for each descriptor that is ready. A process waits in it
 * (loop_wait), or polls loop.fd among other descriptors and calls loop_dispatch when it is
 * readable.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"

#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_BATCH 64 /* events that are fetched from the kernel at once */

/* owner is the loop's, item the watch's; events as in epoll_ctl(2). There may be nothing to do:
 * another handler of the same batch may have read the descriptor. */
typedef void loop_handler(void *owner, void *item, uint32_t events);

/* One watched descriptor. Its address must not change until loop_remove. */
struct loop_watch {
    int fd; /* -1: not watched; stays the caller's */
    loop_handler *ready;
    void *item;
};

#define LOOP_WATCH_INIT ((struct loop_watch){.fd = -1})

struct loop {
    int fd; /* readable while something is due; -1: not initialized */
    void *owner;
    struct epoll_event batch[LOOP_BATCH];
    int next, n; /* of batch: what has not been dispatched yet */
};

#define LOOP_INIT ((struct loop){.fd = -1})

/* Clear it with loop_clear, also after a failure; owner is passed to every handler. */
int loop_init(struct loop *l, void *owner, struct err *e);
/* Watches need not be removed before. */
void loop_clear(struct loop *l);

int loop_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_handler *ready,
             void *item, struct err *e);
/* Other events from now on. */
int loop_change(struct loop *l, struct loop_watch *w, uint32_t events, struct err *e);
/*
 * Call it before fd is closed: a copy in another process would keep the descriptor in the set.
 * Idempotent, and safe inside a handler: events of w that were fetched but not dispatched are
 * dropped, so w may be freed at once.
 */
void loop_remove(struct loop *l, struct loop_watch *w);

/*
 * Each calls handlers, and returns how many; -1: the kernel's call failed. loop_dispatch does not
 * wait; the others wait until something is due, a signal comes (0) or d has passed (0).
 * loop_wait_one dispatches one event and keeps the rest of its batch for the next call.
 * while_waiting is the signal mask during the wait; NULL: no other than before. Handlers may call
 * them, too.
 */
int loop_dispatch(struct loop *l, struct err *e);
int loop_wait(struct loop *l, struct deadline d, const sigset_t *while_waiting, struct err *e);
int loop_wait_one(struct loop *l, struct deadline d, struct err *e);
