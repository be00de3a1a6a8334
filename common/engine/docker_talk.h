/*
 * The attach stream of a started container. A warm container sends little (talk_look); with a
 * program (talk_run) input goes in while output comes out, until the program's end, the deadline or
 * a cancellation. One poll loop; memory does not grow with what the
 * program prints.
 */
#ifndef SANDCGI_ENGINE_DOCKER_TALK_H
#define SANDCGI_ENGINE_DOCKER_TALK_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/engine/docker_stream.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"
#include "common/engine/frame.h"

#include <stdbool.h>
#include <stddef.h>

#define TALK_READ_BYTES    65536
#define TALK_COMPLAINT_MAX 400
#define TALK_WARM_MAX      ((size_t)64 * 1024) /* bytes that a warm container may send in all */

enum talk_end {
    TALK_GOING_ON,
    TALK_REPORTED, /* entry.report says how the program ended */
    TALK_ENDED,    /* the stream ended without a report (plain images: always) */
    TALK_LOST,     /* the connection broke before a byte of the program was handed over */
    TALK_DEADLINE,
    TALK_CANCELLED,
    TALK_STOPPED, /* the sink wants no more */
    TALK_GARBLED, /* the container broke the protocol; why says how */
};

struct talk {
    struct docker_stream *stream; /* owned; NULL: not connected */
    int protocol;
    struct buf input;  /* what the container's stdin gets */
    size_t sent;       /* of it */
    size_t program_at; /* where the program begins in it */
    bool lost;         /* nothing of the program went out, nor will */
    bool input_over;
    bool handed; /* what comes from now on is the program's */

    const struct engine_sink *sink; /* borrowed; NULL while no program is handed over */
    struct buf *raw;   /* borrowed; not NULL: gets the entry program's stdout as it is */
    size_t warm_bytes; /* received before a program was handed over */
    struct docker_frame frames;
    struct entry_frame entry;
    struct buf complaint; /* the beginning of the entry program's own stderr */
    struct err why;
};

void talk_init(struct talk *t, struct docker_stream *take_stream, int protocol);
/* Hangs up and forgets everything; fine on one that is all zero. */
void talk_clear(struct talk *t);
/* Closes the connection; what was received is kept. */
void talk_hang_up(struct talk *t);

/* Sends what the connection takes of input now. */
void talk_send(struct talk *t);
/* Receives one portion and passes it on. *out_more: there may be another at once. */
enum talk_end talk_receive(struct talk *t, bool *out_more);

/* Takes in what a warm container sent, and sends what input still holds, without blocking:
 * TALK_GOING_ON, TALK_ENDED or TALK_GARBLED. */
enum talk_end talk_look(struct talk *t);

/* Appends program to input and lets its output go to sink (borrowed until talk_clear) from now on.
 * ERR_LIMIT. */
int talk_hand_over(struct talk *t, const struct engine_program *program,
                   const struct engine_sink *sink, struct err *e);
/* Has a warm container import names. ERR_LIMIT. */
int talk_preload(struct talk *t, const char *names, struct err *e);

/* Talks to the end of a program that was handed over. Plain images (protocol 0) see the end of
 * stdin behind their code; for others it stays open. Output that had arrived by the deadline is
 * still delivered, within a bound. */
enum talk_end talk_run(struct talk *t, struct docker_attend *attend, struct deadline d);

#endif
