/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef SANDCGI_BASE_UTF8_H
#define SANDCGI_BASE_UTF8_H

#include "common/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* The length of the well-formed character that s begins with (1 to 4), 0 when it is broken, cut off
 * or len is 0. */
size_t utf8_char_len(const char *s, size_t len);

bool utf8_valid(const char *s, size_t len);

/* Appends s to out with every maximal broken part replaced by U+FFFD. Returns how many were
 * replaced. */
size_t utf8_repair(const char *s, size_t len, struct buf *out);

/* The longest prefix of s of at most max bytes that does not cut a character. */
size_t utf8_cut(const char *s, size_t len, size_t max);

/* For pieces of a longer text: how many bytes at the start are the rest of a character whose
 * beginning is not here, */
size_t utf8_lost_start(const char *s, size_t len);
/* and the length without a character at the end whose rest is not here. */
size_t utf8_whole_len(const char *s, size_t len);

#endif
