/*
 * The conversation with a started container over its attach stream: input goes in while output
 * comes out, until the program's end, the deadline or a cancellation. One poll loop; memory does
 * not grow with what the program prints.
 */
#ifndef SANDCGI_ENGINE_DOCKER_TALK_H
#define SANDCGI_ENGINE_DOCKER_TALK_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/engine/docker_frame.h"
#include "common/engine/docker_stream.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"

#include <stdbool.h>
#include <stddef.h>

#define TALK_READ_BYTES    65536
#define TALK_COMPLAINT_MAX 400

enum talk_end {
    TALK_GOING_ON,
    TALK_REPORTED, /* entry.report tells how the program ended */
    TALK_ENDED,    /* the stream ended without a report (plain images: always) */
    TALK_DEADLINE,
    TALK_CANCELLED,
    TALK_STOPPED, /* the sink wants no more */
    TALK_GARBLED, /* what came is not the protocol; why says what */
};

struct talk {
    struct docker_stream *stream;   /* borrowed */
    const struct engine_sink *sink; /* borrowed */
    int protocol;
    const char *input; /* borrowed: what the container's stdin gets */
    size_t input_len, sent;
    bool input_over;

    struct docker_frame frames;
    struct entry_frame entry;
    struct buf complaint; /* what the entry program itself said on stderr, its beginning */
    struct err why;
    char *chunk; /* TALK_READ_BYTES */
};

/* input is borrowed until talk_clear. Plain images (protocol 0) see the end of stdin after it; for
 * others it stays open. */
void talk_init(struct talk *t, struct docker_stream *stream, int protocol,
               const struct engine_sink *sink, const char *input, size_t input_len);
void talk_clear(struct talk *t);

/* Talks to the end. cancel_fd -1: none. Output that had arrived by the deadline is still delivered,
 * within a bound. */
enum talk_end talk_run(struct talk *t, int cancel_fd, struct deadline d);

#endif
