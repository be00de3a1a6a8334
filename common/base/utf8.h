/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* The length of the character at s (1 to 4); 0: it is malformed or cut off, or len is 0. */
size_t utf8_char_len(const char *s, size_t len);

bool utf8_valid(const char *s, size_t len);

/* Appends s to out with U+FFFD for each malformed part. Returns the number of replacements. */
size_t utf8_repair(const char *s, size_t len, struct buf *out);

/* The longest prefix of s of at most max bytes that does not cut a character. */
size_t utf8_cut(const char *s, size_t len, size_t max);

/* For a part of a longer text: the bytes at its start that continue a character before it, */
size_t utf8_lost_start(const char *s, size_t len);
/* and its length without an incomplete character at its end. */
size_t utf8_whole_len(const char *s, size_t len);
