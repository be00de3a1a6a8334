#include "config.h"

#include "fcgi/stdio/stdio_lines.h"

#include <string.h>

#define READ_CHUNK 65536

void stdio_lines_init(struct stdio_lines *l, size_t max)
{
    *l = (struct stdio_lines){.in = BUF_INIT(max + 2 * READ_CHUNK), .max = max};
}

void stdio_lines_clear(struct stdio_lines *l)
{
    buf_clear(&l->in);
}

ssize_t stdio_lines_read(struct stdio_lines *l, int fd)
{
    size_t rest = l->in.len - l->next;

    if (rest > 0)
        buf_drop_front(&l->in, l->next);
    else
        buf_clear(&l->in); /* a long line's memory is given back */
    l->looked -= l->next;
    l->next = 0;
    ssize_t n = read(fd, buf_reserve(&l->in, READ_CHUNK), READ_CHUNK);
    if (n > 0)
        buf_grew(&l->in, (size_t)n);
    return n;
}

/* What has come of a line that is too long. */
static int skip(struct stdio_lines *l)
{
    bool known = l->skipping;

    l->next = l->looked = l->in.len;
    l->skipping = true;
    return known ? 0 : -1;
}

int stdio_lines_next(struct stdio_lines *l, const char **out_line, size_t *out_len)
{
    const char *data = l->in.data, *end;

    while (l->looked < l->in.len && (end = memchr(data + l->looked, '\n', l->in.len - l->looked))) {
        bool skipped = l->skipping;
        *out_line = data + l->next;
        *out_len = (size_t)(end - *out_line);
        l->next = l->looked = (size_t)(end - data) + 1;
        l->skipping = false;
        if (!skipped)
            return *out_len > l->max ? -1 : 1;
    }
    l->looked = l->in.len;
    return l->in.len - l->next > l->max ? skip(l) : 0;
}
