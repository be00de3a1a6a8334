#include "config.h"

#include "common/base/buf.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAP 64

void buf_clear(struct buf *b)
{
    free(b->data);
    *b = (struct buf){.max = b->max};
}

void buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

/* Makes room for n more bytes and the NUL: doubles the capacity, up to max. */
static bool make_room(struct buf *b, size_t n)
{
    if (b->failed || b->max >= PTRDIFF_MAX || n > b->max - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return true;
    size_t cap = b->cap ? b->cap : FIRST_CAP;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    if (cap > b->max + 1)
        cap = b->max + 1;
    b->data = mem_resize(b->data, cap, 1);
    b->cap = cap;
    b->data[b->len] = '\0';
    return true;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
    if (!make_room(b, len))
        return;
    if (len > 0)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_add_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    va_list measure;
    va_copy(measure, ap);
    int n = vsnprintf(NULL, 0, fmt, measure);
    va_end(measure);
    if (n < 0) {
        b->failed = true;
        return;
    }
    if (!make_room(b, (size_t)n))
        return;
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void buf_drop_front(struct buf *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0)
        return;
    b->len -= n;
    memmove(b->data, b->data + n, b->len + 1);
}

char *buf_reserve(struct buf *b, size_t n)
{
    return make_room(b, n) ? b->data + b->len : NULL;
}

void buf_grew(struct buf *b, size_t n)
{
    if (n == 0)
        return;
    assert(b->data && n < b->cap - b->len);
    b->len += n;
    b->data[b->len] = '\0';
}

const char *buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

char *buf_take(struct buf *b)
{
    char *data = b->data ? TAKE_PTR(b->data) : mem_strdup("");
    buf_clear(b);
    return data;
}

void u32_put(void *to, uint32_t value)
{
    unsigned char *bytes = to;

    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
}

uint32_t u32_get(const void *from)
{
    const unsigned char *bytes = from;

    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

void buf_add_u32(struct buf *b, uint32_t value)
{
    char bytes[4];

    u32_put(bytes, value);
    buf_add(b, bytes, sizeof bytes);
}
