/* A program as models write it, without what surrounds it in a chat. */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Takes off a byte order mark and a Markdown fence around all of code, and in a shell's program the
 * CR of each line's end. False: there is none of these, and out is as it was.
 */
bool code_text_mend(const char *code, size_t len, bool shell, struct buf *out);
