/*
 * Texts that are not UTF-8: which encoding they probably have, and what they say. The encodings are
 * those that people's files come in: UTF-16, Windows-1252 (with Latin-1), Windows-1251, Shift_JIS,
 * GBK; names in zip files also IBM437.
 */
#pragma once

#include "common/base/buf.h"

#include <stddef.h>

/* Opens libc's converters, which are files: before a process gives up opening these. An encoding
 * that libc has not is not guessed. */
void charset_prepare(void);

/* Of a text's beginning; NULL: it is UTF-8, or no text. */
const char *charset_of_text(const char *s, size_t len);
/* Of a file's name without NUL; never NULL where there is any converter. */
const char *charset_of_name(const char *s, size_t len);

/* Appends s in UTF-8, U+FFFD for what is malformed; a byte order mark in front is left out. Returns
 * how many bytes were taken: less than len when the last character is cut off. */
size_t charset_decode(const char *charset, const char *s, size_t len, struct buf *out);
