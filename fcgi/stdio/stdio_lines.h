/* A stream of bytes as lines, with a limit of their length. */
#pragma once

#include "common/base/buf.h"

#include <stddef.h>
#include <sys/types.h>

struct stdio_lines {
    struct buf in;
    size_t max;    /* bytes of a line, without its end */
    size_t next;   /* where in in the next line begins, */
    size_t looked; /* and up to where there is no end of it */
    bool skipping; /* in the rest of a line that was too long */
};

void stdio_lines_init(struct stdio_lines *l, size_t max);
void stdio_lines_clear(struct stdio_lines *l);

/* Reads once, as read(2). What stdio_lines_next returned before is void then. */
ssize_t stdio_lines_read(struct stdio_lines *l, int fd);

/* 1: *out_line is the next one, without its end, *out_len bytes; 0: none is whole yet; -1, once for
 * each: a line is over max, and is left out. */
int stdio_lines_next(struct stdio_lines *l, const char **out_line, size_t *out_len);
