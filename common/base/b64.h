/*
 * Base64 (RFC 4648 section 4), strict: padding required, no blanks or line breaks, no text after
 * the padding, leftover bits zero, so that every value has exactly one spelling.
 */
#pragma once

#include "common/base/buf.h"

#include <stddef.h>

/* Bytes that len characters decode to at most. */
#define B64_DECODED_MAX(len) ((len) / 4 * 3)
/* Characters that len bytes encode to, without a NUL. */
#define B64_ENCODED_LEN(len) (((len) + 2) / 3 * 4)

/* Appends the decoded bytes to out; -1: the text is not strict base64, out's new part undefined. */
int b64_decode(const char *text, size_t len, struct buf *out);
void b64_encode(const void *data, size_t len, struct buf *out);

/* The same with the letters of URLs (section 5: - and _), and without padding. */
int b64url_decode(const char *text, size_t len, struct buf *out);
void b64url_encode(const void *data, size_t len, struct buf *out);
