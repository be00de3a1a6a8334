/*
 * The stream of a persistent sandbox (runners/README.md): records to its stdin,
 * frames from its stdout, both {tag, length as 32 bits big-endian, payload}, the payload with the
 * command's id, 32 bits big-endian, in front. Frames are written by a container and so are hostile.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PSANDBOX_FRAME_MAX  65536                 /* payload of one frame */
#define PSANDBOX_RECORD_MAX ((size_t)1024 * 1024) /* payload of one record */

/*
 * Takes the frame at the beginning of data apart. Returns its length with *out filled (out->data
 * points into data), 0 when it is not all there, -1 ERR_PROTOCOL when it never will be one.
 */
ssize_t psandbox_frame_take(const char *data, size_t len, struct engine_psandbox_event *out,
                            struct err *e);

/* Appends the records that start a command. ERR_INVALID, ERR_LIMIT; then out is as before. */
int psandbox_write_command(uint32_t id, const struct engine_command *command, struct buf *out,
                           struct err *e);
/* Appends records with tag for id that carry data of any length, at least one. */
void psandbox_write(char tag, uint32_t id, const void *data, size_t len, struct buf *out);
