/*
 * Patterns for the names of files, matched in one pass over the name: no pattern makes a name cost
 * more than its length.
 *
 *   *       any characters but '/', also none
 *   **      any characters, also none; at the start of a part and before a '/': any folders, or
 *           none
 *   ?       one character but '/'
 *   [a-c_]  one of these ASCII characters; [!…] or [^…]: any other, never '/'
 *   \x      x itself
 *
 * Everything else stands for itself; a leading dot is nothing special. A pattern without '/' is
 * for the last part of a name, wherever it is; one with '/' for the whole name. Bytes that are not
 * UTF-8 are matched by stars only.
 */
#ifndef SANDCGI_BASE_GLOB_H
#define SANDCGI_BASE_GLOB_H

#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define GLOB_MAX   255 /* bytes of a pattern */
#define GLOB_WORDS 4

/* A set of places in the pattern. */
struct glob_set {
    uint64_t bits[GLOB_WORDS];
};

struct glob {
    struct glob_set takes[256]; /* by byte: the places that step on */
    struct glob_set stays[256]; /* and those that stay where they are */
    struct glob_set skips1;     /* places that may be passed over: one on, */
    struct glob_set skips3;     /* three on */
    unsigned n;                 /* the place behind the last: matched */
    bool whole;                 /* of the whole name, not its last part */
};

/* ERR_INVALID beginning with field: empty, longer than GLOB_MAX, an open bracket, a range that ends
 * before it begins, other than ASCII in brackets, a backslash at the end. */
int glob_compile(const char *field, const char *pattern, struct glob *out, struct err *e);

bool glob_matches(const struct glob *g, const char *name);

#endif
