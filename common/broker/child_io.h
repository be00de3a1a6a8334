/*
 * The channels between the main process and the children that own a container: their messages come
 * out as events (child_io_next), which the main loop applies. Whatever is sent never blocks.
 */
#pragma once

#include "common/base/loop.h"
#include "common/protocol/wire.h"
#include "common/scheduler/children.h"

#include <jansson.h>

enum child_event_kind {
    CHILD_READY,      /* its container has come as far as tier */
    CHILD_TOOK_RUN,   /* it has read its run: no other can serve it any more */
    CHILD_STARTED,    /* its container is up, which was not when its run came */
    CHILD_DOUBTED,    /* its used container could not be wiped */
    CHILD_HAS_ENDED,  /* the program is over, or the sandbox is closed; the process goes on a little
                       */
    CHILD_TELLS_RUNS, /* of a persistent sandbox: the runs in it that have not ended */
    CHILD_LEFT,       /* the channel has ended, and is closed */
};

struct child_event {
    enum child_event_kind kind;
    struct child *child;
    enum engine_tier tier; /* CHILD_READY, with the next */
    uint64_t memory_bytes; /* 0: not known */
    bool reusable;         /* CHILD_HAS_ENDED: it was orderly */
    json_t *runs;          /* CHILD_TELLS_RUNS: struct child's calls; the reader's */
    size_t n_dealt;        /* with them: calls handed to it that began or were refused */
    int64_t ran_ms; /* with both: how long programs ran of which no message has told before */
};

struct child_link; /* one channel; struct child's link */

struct child_io {
    struct loop *loop; /* borrowed */
    struct child_link *first;
    size_t n_readable; /* channels that may hold messages */
    bool has_cut;      /* a channel to a child that is to come back; its reader's to reset */
};

/* The channel to a child; fd is taken, also on failure. A reader of events is told by the loop. */
int child_io_open(struct child_io *io, struct child *child, int take_fd, struct err *e);
/* Closes the channel, if there is one: a container that waits for a run ends by itself then. */
void child_io_close(struct child_io *io, struct child *child);
/* The same, and the row's state is CHILD_ENDED. */
void child_io_release(struct child_io *io, struct child *child);

/* The next event; false: nothing has come. The child's row may be removed before the next call, its
 * channel closed first. */
bool child_io_next(struct child_io *io, struct child_event *out);
/* The same of one child, whether or not the loop has told of it. */
bool child_io_next_of(struct child_io *io, struct child *child, struct child_event *out);
/* From now on child_io_next reads what all children have sent by now. */
void child_io_poll(struct child_io *io);

/* Orders. A part of one may have been sent when it fails, as for a peer that does not read: the
 * channel is closed then, and a persistent sandbox is reattaching.
 *
 * {"do":"hand",…} with the connection, which stays the caller's; -1: it chooses another child. */
int child_io_hand(struct child *child, const struct handed_call *call, struct err *e);
/* {"do":what}. */
int child_io_tell(struct child *child, const char *what, struct err *e);
/* A persistent sandbox ends when nothing runs in it, for that reason; NULL: the server stops. */
int child_io_end(struct child *child, const char *why, struct err *e);
