/*
 * Patterns for file names, matched in one pass: the time depends on the length of the name only.
 *
 *   *       any characters but '/', also none
 *   **      any characters, also none; at the start of a part and before a '/': any folders, or
 *           none
 *   ?       one character but '/'
 *   [a-c_]  one of these ASCII characters; [!…] or [^…]: any other, never '/'
 *   \x      x itself
 *
 * Other characters stand for themselves; a leading dot is not special. A pattern without '/' is
 * matched against the last part of a name, one with '/' against the whole name. Only stars match
 * bytes that are not UTF-8.
 */
#pragma once

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
    struct glob_set takes[256]; /* by byte: the places that move on */
    struct glob_set stays[256]; /* and those that stay where they are */
    struct glob_set skips1;     /* places from which one may be skipped, */
    struct glob_set skips3;     /* or three */
    unsigned n;                 /* the place behind the last: matched */
    bool whole;                 /* of the whole name, not its last part */
};

/* ERR_INVALID, beginning with field: an empty or too long pattern, a bracket that is not closed, a
 * descending range, non-ASCII characters in brackets, a backslash at the end. */
int glob_compile(const char *field, const char *pattern, struct glob *out, struct err *e);

bool glob_matches(const struct glob *g, const char *name);
