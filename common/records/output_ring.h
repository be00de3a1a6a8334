/*
 * A run's output while it goes on: the newest bytes of both streams in the order they came, in
 * fixed memory. Bytes are counted from 0 over both streams; waiters hold their own offsets.
 * Private to common/broker.
 */
#ifndef SANDCGI_RECORDS_OUTPUT_RING_H
#define SANDCGI_RECORDS_OUTPUT_RING_H

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

/* Before anything was added: counts on from total, as if that much had come and gone. */
void output_ring_resume(struct output_ring *l, uint64_t total);

/* Bytes that came so far, and the offset of the first that is still there. */
uint64_t output_ring_total(const struct output_ring *l);
uint64_t output_ring_oldest(const struct output_ring *l);

/* The raw bytes that are still there, from output_ring_oldest to output_ring_total. */
void output_ring_raw(const struct output_ring *l, struct buf *out);

/*
 * Appends the output from since on as valid UTF-8, made from at most max bytes (out needs room for
 * 3 * max). A character that is cut at the end is held back unless over says that no more will
 * come. *out_next is the offset behind what was given, *out_skipped how many bytes from since on
 * are gone. since beyond the end gives nothing and *out_next is the end.
 */
void output_ring_text(const struct output_ring *l, uint64_t since, size_t max, bool over,
                      struct buf *out, uint64_t *out_next, uint64_t *out_skipped);

/* Where the first line behind from begins, for who does not want all that is between; a character's
 * beginning when no line ends there. from is from output_ring_oldest to output_ring_total. */
uint64_t output_ring_line_behind(const struct output_ring *l, uint64_t from);

/* How far a piece may go: to the last line's end, to where characters are whole, to the last byte.
 */
enum output_ring_cut { OUTPUT_RING_LINES, OUTPUT_RING_REST, OUTPUT_RING_OVER };

struct output_ring_piece {
    enum engine_stream stream;
    uint64_t skipped; /* bytes from since on that are gone */
    uint64_t next;    /* offset behind the piece */
};

/*
 * The next piece of one stream from since on, made from at most max bytes (4 or more),
 * appended to out as valid UTF-8 (room for 3 * max). A line that the other stream interrupts, or
 * that is longer than max, is not waited for. false: there is nothing to give yet.
 */
bool output_ring_piece_at(const struct output_ring *l, uint64_t since, size_t max,
                          enum output_ring_cut cut, struct buf *out,
                          struct output_ring_piece *piece);

#endif
