/* Media types of files: by the name's extension for the well-known ones, by content (libmagic) for
 * the rest. */
#pragma once

#include <stddef.h>

/*
 * The media type of a file called name (any bytes, folders allowed) whose first head_len bytes are
 * head; at most 64 KiB of them are looked at, and only when the extension is unknown. head NULL: by
 * name only. Never NULL: at last it is application/octet-stream. The result is a literal or lives
 * until the next call. Not for threads.
 */
const char *media_type(const char *name, const void *head, size_t head_len);
