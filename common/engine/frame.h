/*
 * The engine's multiplexed output (Docker Engine API, "Stream format" of attach without a TTY):
 * frames with a head of {stream, 0, 0, 0, length as 32 bits big-endian}.
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

#define DOCKER_FRAME_HEAD 8

/* Gets payload as it arrives. */
struct frame_sink {
    void (*output)(void *ctx, enum engine_stream stream, const char *data, size_t len);
    void *ctx;
};

/* All zero is the state before the first byte. */
struct docker_frame {
    char head[DOCKER_FRAME_HEAD];
    size_t have;   /* of the head */
    uint32_t left; /* payload bytes of the current frame that are still to come */
    enum engine_stream stream;
};

/* -1 ERR_PROTOCOL on a stream other than 1 (stdout) and 2 (stderr) or padding that is not zero:
 * push no more. */
int docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                      const struct frame_sink *sink, struct err *e);
