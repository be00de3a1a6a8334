/*
 * A growing byte buffer with a mandatory maximum.
 *
 * data is NULL or has a NUL at data[len], which is not counted. An append beyond max sets failed,
 * and later appends do nothing, so a series of appends needs one check (buf_ok) at its end.
 */
#pragma once

#include "common/base/auto.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max; /* bytes of content, without the NUL */
    bool failed;
};

#define BUF_INIT(max_bytes) ((struct buf){.max = (max_bytes)})
#define AUTO_BUF            AUTO(buf_clear)

/* Frees the content; the buffer is empty and usable again with the same max. */
void buf_clear(struct buf *b);
/* Empties it, keeps the memory, resets failed. */
void buf_reset(struct buf *b);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_add_char(struct buf *b, char c);
void buf_add_str(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Drops the first n bytes (n <= len). */
void buf_drop_front(struct buf *b, size_t n);

/* Room for at least n more bytes at data + len, to be followed by buf_grew; NULL (failed) over max.
 */
char *buf_reserve(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);

/* The content as a C string, "" when empty; valid until the next change. */
const char *buf_str(const struct buf *b);
/* Hands the memory to the caller (never NULL); the buffer is empty afterwards. */
char *buf_take(struct buf *b);

static inline bool buf_ok(const struct buf *b)
{
    return !b->failed;
}

/* Numbers of 32 bits as they stand in messages: big-endian. */
void buf_add_u32(struct buf *b, uint32_t value);
void u32_put(void *to, uint32_t value);
uint32_t u32_get(const void *from);
