/*
 * Connections that wait for answers about a run or of a persistent sandbox. They are non-blocking;
 * each has a queue of its own for what its peer has not taken yet.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/sock.h"
#include "common/records/output.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define WAITERS_MAX       32
#define WAITER_TIMEOUT_MS 10000 /* a peer that takes nothing for this long is dropped */

enum waiter_kind {
    WAITER_CALLER, /* the run's own client */
    WAITER_POLL,   /* a get_run */
    WAITER_CANCEL, /* a cancel_run */
};

struct awaited_run;

struct waiter {
    int fd;              /* -1: closed; waiters_reap frees it */
    struct waiters *all; /* that it is among */
    struct loop_watch watch;
    enum waiter_kind kind;
    const struct awaited_run *run; /* that it waits for; NULL: for something else */
    bool live;                     /* gets pieces of output as they come */
    bool since_given;              /* a poll that gets the output from since on */
    bool to_end;                   /* it does not wait for new output, but for the end */
    bool body_due;                 /* its next message is the body of a call */
    bool answered;                 /* its last message is in out */
    const struct output *output;   /* for live and since_given; borrowed */
    uint64_t since;                /* offset in the output */
    size_t new_max;                /* of the output from there on */
    uint64_t output_sent;          /* live: the output up to here has been sent */
    struct deadline rest_by;       /* live: when a line without its end is sent; a poll: when it is
                                      answered with what is new; never: there is nothing */
    struct deadline answer_by;     /* when it is answered, whatever there is */
    struct deadline give_up; /* when it is dropped unless it takes something; never: out is empty */
    struct buf out;          /* framed messages */
    size_t sent;             /* bytes of out that its peer has taken */
    struct fds passed;       /* go along with the next byte */
    struct sock_inbox inbox;
};

struct waiters {
    struct loop *loop;         /* borrowed */
    loop_handler *ready;       /* called with the waiter as item */
    struct deadline output_at; /* when output is sent next; never: there is none to send */
    struct deadline output_not_before;
    size_t n;
    struct waiter *items[WAITERS_MAX];
};

void waiters_init(struct waiters *ws, struct loop *loop, loop_handler *ready);
/* Takes fd over. NULL: there are too many; fd stays the caller's. */
struct waiter *waiters_add(struct waiters *ws, int fd, enum waiter_kind kind);
/* The ring has grown. */
void waiters_on_output(struct waiters *ws, const struct output *output);
/* Sends output that is due, and closes waiters that take nothing. Returns when to call it again. */
struct deadline waiters_tend(struct waiters *ws);
/* Frees those that are closed. */
void waiters_reap(struct waiters *ws);
/* Closes and frees all. */
void waiters_clear(struct waiters *ws);

/* Sends a message; what is not taken at once is queued. Does nothing for a waiter that is closed or
 * answered. */
void waiter_send(struct waiter *r, const json_t *message);
/* The same with its last message: the connection is closed when that is taken. */
void waiter_answer(struct waiter *r, const json_t *message);
/* The same with descriptors. They are taken over if its queue is empty, else left alone. */
void waiter_answer_with_fds(struct waiter *r, const json_t *message, struct fds *fds);

/* The rest of the output for a live waiter that has taken all before it. */
void waiter_send_rest(struct waiter *r);

enum waiter_event { WAITER_NOTHING, WAITER_BODY, WAITER_CANCELS, WAITER_LEFT };
/* Sends what is queued and receives. WAITER_BODY: the body is in inbox.message. WAITER_LEFT: the
 * end of the connection, or nonsense; the waiter is closed. */
enum waiter_event waiter_on_event(struct waiter *r, uint32_t events);

/* Ends the connection now. */
void waiter_close(struct waiter *r);

/* An error for a connection that is not among them; takes fd over. */
void waiter_refuse(int fd, const struct err *problem);
