/* What a program printed, for a model that pays for each word. */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>

/*
 * Appends valid UTF-8 without what would steer a terminal; over room bytes its head and its tail,
 * with a line about the rest between them. Returns the length of the head, 0: all is there.
 *
 * brief: as a person at a terminal sees it, and shorter: a line that was drawn over in its last
 * state, equal lines once with their number, of a traceback of Python the program's own frames and
 * its exceptions.
 */
size_t printed_add(struct buf *out, const char *text, size_t len, size_t room, bool brief);
