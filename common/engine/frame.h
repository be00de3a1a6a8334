/*
 * Frames: a head whose last four bytes are the payload's length (big-endian), then the payload. The
 * engine's output and the entry program's frames in it are such streams.
 *
 * A push parser: bytes go in as they arrive, in any portions, and payload goes straight to the
 * consumer. It allocates nothing, whatever length is claimed.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_MAX 8

/* All zero is the state before the first byte. */
struct frame_reader {
    char head[FRAME_HEAD_MAX];
    size_t have;   /* of the head */
    uint32_t left; /* payload bytes of the current frame that are still to come */
};

enum frame_push {
    FRAME_BROKEN = -1, /* e says why; push no more */
    FRAME_MORE = 0,
    FRAME_STOP = 1, /* the consumer wants no more */
};

/* Any answer but FRAME_MORE ends the push. */
struct frame_handler {
    size_t head_len;
    /* The head in the reader is complete. */
    enum frame_push (*head)(void *ctx, struct err *e);
    /* Payload as it arrives; len > 0, data valid during the call only. */
    enum frame_push (*payload)(void *ctx, const char *data, size_t len, struct err *e);
};

enum frame_push frame_push(struct frame_reader *r, const struct frame_handler *handler, void *ctx,
                           const char *data, size_t len, struct err *e);

/* 32 bits, big-endian. */
uint32_t frame_u32(const char *from);
void frame_add_u32(struct buf *out, size_t value);

/*
 * The engine's multiplexed output (Docker Engine API, "Stream format" of attach without a TTY): the
 * head is {stream, 0, 0, 0, length}.
 */
struct docker_frame {
    struct frame_reader reader;
    enum engine_stream stream; /* of the current frame */
};

struct docker_frame_out {
    enum frame_push (*payload)(void *ctx, enum engine_stream stream, const char *data, size_t len,
                               struct err *e);
    void *ctx;
};

/* ERR_PROTOCOL on a stream other than 1 (stdout) and 2 (stderr) or padding that is not zero. */
enum frame_push docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                                  const struct docker_frame_out *out, struct err *e);
