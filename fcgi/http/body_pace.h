/*
 * How slowly a request's body may come: a client that sends a byte now and then would hold room on
 * the disk, and a worker. What counts is the time that is spent waiting for the client, not that of
 * the disk.
 */
#pragma once

#include "common/base/err.h"
#include "fcgi/http/http_answer.h"

#define BODY_BYTES_S   16384 /* at least, over each BODY_LOOK_S of waiting */
#define BODY_LOOK_S    30
#define BODY_LONGEST_S 3600 /* for all of it */

struct body_pace {
    int64_t all_ms;  /* waited for all of it, */
    int64_t look_ms; /* and since the last look, */
    uint64_t bytes;  /* which have come since then */
};

/* So many bytes have come after waiting so long; 0 bytes: the end. ERR_CANCELLED, with a sentence
 * for the client: it is too slow. */
int body_pace_note(struct body_pace *p, uint64_t bytes, int64_t waited_ms, struct err *e);

/* Reads from the source at this pace. The bytes; 0: the end; -1: *e says whether the client was too
 * slow (ERR_CANCELLED), or has left (ERR_INVALID). */
long body_read(struct body_pace *p, const struct http_source *source, char *data, size_t len,
               struct err *e);
