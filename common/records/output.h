/*
 * What a program prints, in fixed memory: each byte once, in a store of its stream, with a bit for
 * the order of both. Views are made of it when they are asked for: the head and the tail of the
 * standard output, the standard error or both together, for a result; and the newest bytes of
 * both, which callers follow by offsets. Offsets count the bytes of both streams from 0.
 */
#pragma once

#include "common/base/buf.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_NEWEST (1024u * 1024) /* of a run, bytes that can be followed */

struct output;

/* keep: bytes of each view for a result, 2 or more; 0: none is wanted. newest: bytes of both that
 * can be followed; 0: none. One of them is not 0. */
struct output *output_new(size_t keep, size_t newest);
void output_free(struct output *o);

void output_add(struct output *o, enum engine_stream stream, const char *data, size_t len);

/* ---- for a result ---- */

enum output_view {
    OUTPUT_STDOUT = ENGINE_STDOUT,
    OUTPUT_STDERR = ENGINE_STDERR,
    OUTPUT_BOTH,
};

/* The bytes that the view has had; over keep, it is truncated. */
uint64_t output_view_total(const struct output *o, enum output_view view);
bool output_view_truncated(const struct output *o, enum output_view view);
/* The most that output_view_text appends. */
size_t output_view_room(const struct output *o);
/* Appends the kept bytes as valid UTF-8, with a line in place of the bytes left out. *out_kept: the
 * number of original bytes kept. */
void output_view_text(const struct output *o, enum output_view view, struct buf *out,
                      uint64_t *out_kept);

/* ---- to be followed ---- */

/* Starts an empty output at the offset total; keep is 0. */
void output_resume(struct output *o, uint64_t total);

/* The number of bytes added, and the offset of the oldest one that can be followed. */
uint64_t output_total(const struct output *o);
uint64_t output_oldest(const struct output *o);

/* Appends the newest bytes, unchanged. */
void output_raw(const struct output *o, struct buf *out);

/*
 * Appends the output from since on as valid UTF-8, made from at most max bytes (room for 3 * max).
 * Unless the output is over, a character that is cut at the end is held back. *out_next: the offset
 * behind the text; *out_skipped: the bytes from since on that are no longer kept. A since beyond
 * the end is the end.
 */
void output_text(const struct output *o, uint64_t since, size_t max, bool over, struct buf *out,
                 uint64_t *out_next, uint64_t *out_skipped);

/* The offset of the first line that begins behind from (an offset that is kept); when no line ends
 * there, of the next whole character. */
uint64_t output_line_behind(const struct output *o, uint64_t from);

/* The end of a piece: the last whole line, the last whole character, the last byte. */
enum output_cut { OUTPUT_LINES, OUTPUT_REST, OUTPUT_OVER };

struct output_piece {
    enum engine_stream stream;
    uint64_t skipped; /* bytes from since on that are no longer kept */
    uint64_t next;    /* offset behind the piece */
};

/*
 * Appends the next piece of one stream from since on as valid UTF-8 (room for 3 * max), made from
 * at most max bytes (4 or more). A line that the other stream interrupts, or that is longer than
 * max, is a piece at once. false: there is none yet.
 */
bool output_piece_at(const struct output *o, uint64_t since, size_t max, enum output_cut cut,
                     struct buf *out, struct output_piece *piece);
