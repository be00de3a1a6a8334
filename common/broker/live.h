/*
 * A run's output while it goes on: the newest bytes of both streams in the order they came, in
 * fixed memory. Bytes are counted from 0 over both streams; readers hold their own offsets.
 * Private to common/broker.
 */
#ifndef SANDCGI_BROKER_LIVE_H
#define SANDCGI_BROKER_LIVE_H

#include "common/base/buf.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_KEEP (1024u * 1024)

struct live;

/* keep >= 1: how many bytes stay readable. */
struct live *live_new(size_t keep);
void live_free(struct live *l);

void live_add(struct live *l, enum engine_stream stream, const char *data, size_t len);

/* Before anything was added: counts on from total, as if that much had come and gone. */
void live_resume(struct live *l, uint64_t total);

/* Bytes that came so far, and the offset of the first that is still there. */
uint64_t live_total(const struct live *l);
uint64_t live_oldest(const struct live *l);

/* The raw bytes that are still there, from live_oldest to live_total. */
void live_raw(const struct live *l, struct buf *out);

/*
 * Appends the output from since on as valid UTF-8, made from at most max bytes (out needs room for
 * 3 * max). A character that is cut at the end is held back unless over says that no more will
 * come. *out_next is the offset behind what was given, *out_skipped how many bytes from since on
 * are gone. since beyond the end gives nothing and *out_next is the end.
 */
void live_text(const struct live *l, uint64_t since, size_t max, bool over, struct buf *out,
               uint64_t *out_next, uint64_t *out_skipped);

/* Where the first line behind from begins, for who does not want all that is between; a character's
 * beginning when no line ends there. from is from live_oldest to live_total. */
uint64_t live_line_behind(const struct live *l, uint64_t from);

/* How far a piece may go: to the last line's end, to where characters are whole, to the last byte.
 */
enum live_cut { LIVE_LINES, LIVE_REST, LIVE_OVER };

struct live_piece {
    enum engine_stream stream;
    uint64_t skipped; /* bytes from since on that are gone */
    uint64_t next;    /* offset behind the piece */
};

/*
 * The next piece of one stream from since on, made from at most max bytes (4 or more),
 * appended to out as valid UTF-8 (room for 3 * max). A line that the other stream interrupts, or
 * that is longer than max, is not waited for. false: there is nothing to give yet.
 */
bool live_piece_at(const struct live *l, uint64_t since, size_t max, enum live_cut cut,
                   struct buf *out, struct live_piece *piece);

#endif
