/* Media types of files: by the name's extension for the well-known ones, by the first bytes for the
 * rest. A library that guesses more reads what a hostile program wrote. */
#pragma once

#include <stddef.h>

/*
 * The media type of a file called name (any bytes, folders allowed) whose first head_len bytes are
 * head; at most 64 KiB of them are looked at, and only when the extension is unknown. head NULL: by
 * name only. UTF-8 without control characters is text/plain. Never NULL: at last it is
 * application/octet-stream.
 */
const char *media_type(const char *name, const void *head, size_t head_len);
