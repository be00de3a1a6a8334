/*
 * The protocol of containers (label sandbox.protocol=2), both directions; runners/README.md
 * describes it for authors of images.
 *
 * Records go to the container's stdin, frames come from its stdout: {tag, length as 32 bits
 * big-endian, payload}, the payload with the id of a command, 32 bits big-endian, in front; 0 is
 * the container's. Frames are written by a container and so are hostile.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENTRY_FRAME_MAX  ((size_t)65536)           /* payload of one frame behind the id */
#define ENTRY_RECORD_MAX ((size_t)2 * 1024 * 1024) /* payload of one record */

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
/* Appends records with tag for id that carry data of any length, at least one. */
void entry_write(char tag, uint32_t id, const void *data, size_t len, struct buf *out);
