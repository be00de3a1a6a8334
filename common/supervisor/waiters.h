/*
 * Connections that wait for word of a run: non-blocking, each with what it has not taken yet.
 * Private to common/broker.
 */
#ifndef SANDCGI_SUPERVISOR_WAITERS_H
#define SANDCGI_SUPERVISOR_WAITERS_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "common/records/output_ring.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define WAITERS_MAX       32
#define WAITER_PATIENCE_S 10 /* for one that does not take what it is sent */

enum waiter_kind {
    WAITER_CALLER, /* the run's own client */
    WAITER_POLL,   /* a get_run */
    WAITER_CANCEL, /* a cancel_run */
};

struct waiter {
    int fd;       /* -1: it is gone and waits for waiters_reap */
    int epoll_fd; /* borrowed */
    enum waiter_kind kind;
    bool live;                 /* wants pieces of output as they come */
    bool since_given;          /* wants to know what is new */
    bool answered;             /* has its last message, once it has taken it */
    uint64_t since;            /* from there */
    uint64_t told;             /* live: the output up to here has been sent */
    struct deadline rest_by;   /* live: when a line without its end is sent; else: when it hears
                                  what is new; never: there is nothing */
    struct deadline answer_by; /* when it wants an answer, whatever there is */
    struct deadline gives_up;  /* when it has to have taken something; never: it owes nothing */
    struct buf out;            /* what it has not taken yet */
    size_t sent;               /* bytes of out that it has taken */
    struct fds ride;           /* go along with the next byte */
    struct sock_inbox inbox;   /* what it says */
};

struct waiters {
    int epoll_fd; /* borrowed; told of each with its address as data */
    size_t n;
    struct waiter *items[WAITERS_MAX];
};

/* Takes fd over. NULL: there are too many; fd stays the caller's. */
struct waiter *waiters_add(struct waiters *rs, int fd, enum waiter_kind kind);
/* Forgets those that are gone. */
void waiters_reap(struct waiters *rs);
/* Ends all. */
void waiters_clear(struct waiters *rs);

/* Sends a message; what is not taken at once waits. A waiter that is gone takes no notice. */
void waiter_tell(struct waiter *r, const json_t *message);
/* The same with its last message: the connection ends when that is taken. */
void waiter_answer(struct waiter *r, const json_t *message);
/* The same with descriptors, which are taken over when it has taken all that it was told before;
 * else they stay where they are. */
void waiter_answer_with_fds(struct waiter *r, const json_t *message, struct fds *fds);
/* Sends more of what waits. */
void waiter_flush(struct waiter *r);

enum waiter_word { WAITER_SAYS_NOTHING, WAITER_SAYS_CANCEL, WAITER_LEFT };
/* Takes in what it says. WAITER_LEFT: its end has come, or nonsense. */
enum waiter_word waiter_hear(struct waiter *r);

/* Ends the connection now. */
void waiter_close(struct waiter *r);

/* A last message for a connection that is not among them; takes fd over. */
void waiter_refuse(int fd, const json_t *message);

#endif
