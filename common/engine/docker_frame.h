/*
 * Takes the engine's multiplexed output apart (Docker Engine API, "Stream format" of attach without
 * a TTY): an 8-byte header {stream, 0, 0, 0, length as 32 bits big-endian}, then that much payload.
 * A push parser: bytes go in as they arrive, in any portions; payload goes straight to the
 * consumer. It allocates nothing, whatever length is claimed.
 */
#ifndef SANDCGI_ENGINE_DOCKER_FRAME_H
#define SANDCGI_ENGINE_DOCKER_FRAME_H

#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOCKER_FRAME_HEAD 8

/* All zero is the state before the first byte. */
struct docker_frame {
    unsigned char head[DOCKER_FRAME_HEAD];
    size_t head_have;
    uint32_t left; /* payload bytes of the current frame that are still to come */
    enum engine_stream stream;
};

/* What both demultiplexers answer to a push. */
enum frame_push {
    FRAME_BROKEN = -1, /* e says why; push no more */
    FRAME_MORE = 0,
    FRAME_STOP = 1, /* the consumer wants no more */
};

/* Payload as it arrives; len > 0, data valid during the call only. Its answer other than FRAME_MORE
 * ends the push. */
struct docker_frame_out {
    enum frame_push (*payload)(void *ctx, enum engine_stream stream, const char *data, size_t len,
                               struct err *e);
    void *ctx;
};

/* ERR_PROTOCOL on a stream other than 1 (stdout) and 2 (stderr) or padding that is not zero. */
enum frame_push docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                                  const struct docker_frame_out *out, struct err *e);

#endif
