/*
 * What the engine says in the protocol of containers (label sandbox.protocol), and what it hears;
 * runners/protocol.md describes it for authors of images.
 *
 * Frames come from a container's stdout, and so are hostile. They look like the records that go to
 * its stdin (common/protocol/entry_record.h); the id 0 is the container's.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENTRY_FRAME_MAX ((size_t)65536) /* payload of one frame behind the id */

/*
 * Takes the frame at the beginning of data apart. Returns its length with *out filled (out->data
 * points into data), 0 when it is not all there, -1 ERR_PROTOCOL when it never will be one.
 */
ssize_t entry_frame_take(const char *data, size_t len, struct engine_event *out, struct err *e);

/* Appends the records that start a command. ERR_INVALID, ERR_LIMIT; then out is as before. */
int entry_write_command(uint32_t id, const struct engine_command *command, struct buf *out,
                        struct err *e);
/* Appends the record that has names preloaded. ERR_LIMIT. */
int entry_write_preload(const char *names, struct buf *out, struct err *e);
