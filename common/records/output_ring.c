#include "config.h"

#include "common/records/output_ring.h"

#include "common/base/mem.h"
#include "common/base/utf8.h"

#include <string.h>

struct output_ring {
    size_t keep;
    uint64_t first; /* offset of the first byte ever added */
    uint64_t total;
    char *data;            /* byte i of the output is at i % keep */
    unsigned char *stream; /* and its enum engine_stream here */
};

struct output_ring *output_ring_new(size_t keep)
{
    struct output_ring *l = mem_alloc(sizeof *l);

    l->keep = keep;
    l->data = mem_alloc_raw(keep);
    l->stream = mem_alloc_raw(keep);
    return l;
}

void output_ring_free(struct output_ring *l)
{
    if (!l)
        return;
    free(l->data);
    free(l->stream);
    free(l);
}

void output_ring_add(struct output_ring *l, enum engine_stream stream, const char *data, size_t len)
{
    l->total += len;
    if (len > l->keep) {
        data += len - l->keep;
        len = l->keep;
    }
    size_t at = (size_t)((l->total - len) % l->keep);
    size_t first = len < l->keep - at ? len : l->keep - at;
    memcpy(l->data + at, data, first);
    memcpy(l->data, data + first, len - first);
    memset(l->stream + at, stream, first);
    memset(l->stream, stream, len - first);
}

void output_ring_resume(struct output_ring *l, uint64_t total)
{
    l->first = l->total = total;
}

uint64_t output_ring_total(const struct output_ring *l)
{
    return l->total;
}

uint64_t output_ring_oldest(const struct output_ring *l)
{
    return l->total - l->first > l->keep ? l->total - l->keep : l->first;
}

/* Appends the bytes [from, to), which must be kept. */
static void copy_range(const struct output_ring *l, uint64_t from, uint64_t to, struct buf *out)
{
    size_t len = (size_t)(to - from);
    size_t at = (size_t)(from % l->keep);
    size_t first = len < l->keep - at ? len : l->keep - at;

    buf_add(out, l->data + at, first);
    buf_add(out, l->data, len - first);
}

void output_ring_raw(const struct output_ring *l, struct buf *out)
{
    copy_range(l, output_ring_oldest(l), l->total, out);
}

/* The offset at which reading from since begins. */
static uint64_t first_there(const struct output_ring *l, uint64_t since, uint64_t *out_skipped)
{
    uint64_t oldest = output_ring_oldest(l);

    if (since > l->total)
        since = l->total;
    *out_skipped = since < oldest ? oldest - since : 0;
    return since + *out_skipped;
}

/* Appends [from, to) as UTF-8, after a gap without the rest of a cut character, and unless all is
 * set without a character that is cut at the end. Returns the offset behind the text. */
static uint64_t add_text(const struct output_ring *l, uint64_t from, uint64_t to, bool gap,
                         bool all, struct buf *out)
{
    AUTO_BUF struct buf raw = BUF_INIT((size_t)(to - from));

    copy_range(l, from, to, &raw);
    size_t len = all ? raw.len : utf8_whole_len(buf_str(&raw), raw.len);
    size_t lost = gap ? utf8_lost_start(buf_str(&raw), len) : 0;
    utf8_repair(buf_str(&raw) + lost, len - lost, out);
    return from + len;
}

void output_ring_text(const struct output_ring *l, uint64_t since, size_t max, bool over,
                      struct buf *out, uint64_t *out_next, uint64_t *out_skipped)
{
    uint64_t from = first_there(l, since, out_skipped);
    uint64_t to = l->total - from > max ? from + max : l->total;

    *out_next = add_text(l, from, to, *out_skipped > 0, over && to == l->total, out);
}

uint64_t output_ring_line_behind(const struct output_ring *l, uint64_t from)
{
    for (uint64_t at = from; at < l->total; at++)
        if (l->data[at % l->keep] == '\n')
            return at + 1;
    for (int i = 0; i < 3 && from < l->total && (l->data[from % l->keep] & 0xc0) == 0x80; i++)
        from++;
    return from;
}

static enum engine_stream stream_at(const struct output_ring *l, uint64_t offset)
{
    return (enum engine_stream)l->stream[offset % l->keep];
}

/* The end of the bytes of one stream from from on, at most max; *out_line_end: behind the last
 * newline among them, or from. */
static uint64_t same_stream(const struct output_ring *l, uint64_t from, size_t max,
                            uint64_t *out_line_end)
{
    enum engine_stream stream = stream_at(l, from);
    uint64_t to = from;

    *out_line_end = from;
    while (to < l->total && to - from < max && stream_at(l, to) == stream)
        if (l->data[to++ % l->keep] == '\n')
            *out_line_end = to;
    return to;
}

bool output_ring_piece_at(const struct output_ring *l, uint64_t since, size_t max,
                          enum output_ring_cut cut, struct buf *out,
                          struct output_ring_piece *piece)
{
    uint64_t line_end;
    uint64_t from = first_there(l, since, &piece->skipped);

    if (from == l->total)
        return false;
    uint64_t to = same_stream(l, from, max, &line_end);
    bool interrupted = to < l->total && to - from < max;
    bool endless = to - from == max && line_end == from;
    bool all = interrupted || (cut == OUTPUT_RING_OVER && to == l->total);

    if (!all && !endless && !(cut != OUTPUT_RING_LINES && to == l->total)) {
        to = line_end;
        all = true;
    }
    piece->stream = stream_at(l, from);
    piece->next = add_text(l, from, to, piece->skipped > 0, all, out);
    return piece->next > since;
}
