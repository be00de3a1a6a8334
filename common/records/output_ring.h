/* The newest output of a run in fixed memory: both streams in their order. Offsets count the bytes
 * of both streams from 0. */
#pragma once

#include "common/base/buf.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_RING_KEEP (1024u * 1024)

struct output_ring;

/* keep >= 1: how many bytes stay readable. */
struct output_ring *output_ring_new(size_t keep);
void output_ring_free(struct output_ring *l);

void output_ring_add(struct output_ring *l, enum engine_stream stream, const char *data,
                     size_t len);

/* Starts an empty ring at the offset total. */
void output_ring_resume(struct output_ring *l, uint64_t total);

/* The number of bytes added, and the offset of the oldest one kept. */
uint64_t output_ring_total(const struct output_ring *l);
uint64_t output_ring_oldest(const struct output_ring *l);

/* Appends the bytes kept, unchanged. */
void output_ring_raw(const struct output_ring *l, struct buf *out);

/*
 * Appends the output from since on as valid UTF-8, made from at most max bytes (room for 3 * max).
 * Unless the output is over, a character that is cut at the end is held back. *out_next: the offset
 * behind the text; *out_skipped: the bytes from since on that are no longer kept. A since beyond
 * the end is the end.
 */
void output_ring_text(const struct output_ring *l, uint64_t since, size_t max, bool over,
                      struct buf *out, uint64_t *out_next, uint64_t *out_skipped);

/* The offset of the first line that begins behind from (an offset that is kept); when no line ends
 * there, of the next whole character. */
uint64_t output_ring_line_behind(const struct output_ring *l, uint64_t from);

/* The end of a piece: the last whole line, the last whole character, the last byte. */
enum output_ring_cut { OUTPUT_RING_LINES, OUTPUT_RING_REST, OUTPUT_RING_OVER };

struct output_ring_piece {
    enum engine_stream stream;
    uint64_t skipped; /* bytes from since on that are no longer kept */
    uint64_t next;    /* offset behind the piece */
};

/*
 * Appends the next piece of one stream from since on as valid UTF-8 (room for 3 * max), made from
 * at most max bytes (4 or more). A line that the other stream interrupts, or that is longer than
 * max, is a piece at once. false: there is none yet.
 */
bool output_ring_piece_at(const struct output_ring *l, uint64_t since, size_t max,
                          enum output_ring_cut cut, struct buf *out,
                          struct output_ring_piece *piece);
