#include "config.h"

#include "common/records/output.h"

#include "common/base/mem.h"
#include "common/base/utf8.h"

#include <inttypes.h>
#include <string.h>

#define WORD_BITS 64

/* The bytes of one stream. */
struct side {
    char *data; /* NULL: there are none */
    uint64_t total;
};

/*
 * A side and the order have the same places: head for the first, which stay, and ring, in which
 * later ones replace older ones. Both are multiples of WORD_BITS. The newest bytes of both streams
 * are among the newest of each, and so are the first ones.
 */
struct output {
    size_t keep, newest;
    size_t head, ring;
    uint64_t first, total; /* offset of the first byte ever added, of both streams; and the end */
    struct side sides[2];  /* by enum engine_stream */
    uint64_t *order;       /* a bit for each byte of both: the enum engine_stream */
};

static size_t whole_words(size_t n)
{
    return (n + WORD_BITS - 1) / WORD_BITS * WORD_BITS;
}

struct output *output_new(size_t keep, size_t newest)
{
    struct output *o = mem_alloc(sizeof *o);
    size_t tail = keep - keep / 2;

    *o = (struct output){.keep = keep,
                         .newest = newest,
                         .head = whole_words(keep / 2),
                         .ring = whole_words(tail > newest ? tail : newest)};
    o->order = mem_array((o->head + o->ring) / WORD_BITS, sizeof *o->order);
    return o;
}

void output_free(struct output *o)
{
    if (!o)
        return;
    free(o->sides[ENGINE_STDOUT].data);
    free(o->sides[ENGINE_STDERR].data);
    free(o->order);
    free(o);
}

/* Of the range [from, to) the part whose places follow one another: how long it is, and where. */
static size_t places(const struct output *o, uint64_t from, uint64_t to, size_t *out_at)
{
    size_t at = from < o->head ? (size_t)from : o->head + (size_t)((from - o->head) % o->ring);
    size_t room = (at < o->head ? o->head : o->head + o->ring) - at;

    *out_at = at;
    return to - from < room ? (size_t)(to - from) : room;
}

/* ---- the order ---- */

/* Of the range the part whose bits are in one word: how long it is, the word and the bits. */
static size_t bits(const struct output *o, uint64_t from, uint64_t to, size_t *out_word,
                   uint64_t *out_mask)
{
    size_t at, n = places(o, from, to, &at);
    size_t shift = at % WORD_BITS;

    if (n > WORD_BITS - shift)
        n = WORD_BITS - shift;
    *out_word = at / WORD_BITS;
    *out_mask = UINT64_MAX >> (WORD_BITS - n) << shift;
    return n;
}

static void order_set(struct output *o, uint64_t from, uint64_t to, enum engine_stream stream)
{
    uint64_t mask;
    size_t word;

    for (size_t n; from < to; from += n) {
        n = bits(o, from, to, &word, &mask);
        if (stream == ENGINE_STDERR)
            o->order[word] |= mask;
        else
            o->order[word] &= ~mask;
    }
}

/* How many bytes of the range are of the standard error. */
static uint64_t order_count(const struct output *o, uint64_t from, uint64_t to)
{
    uint64_t mask, count = 0;
    size_t word;

    for (size_t n; from < to; from += n) {
        n = bits(o, from, to, &word, &mask);
        count += (uint64_t)__builtin_popcountll(o->order[word] & mask);
    }
    return count;
}

static enum engine_stream stream_at(const struct output *o, uint64_t offset)
{
    uint64_t mask;
    size_t word;

    bits(o, offset, offset + 1, &word, &mask);
    return o->order[word] & mask ? ENGINE_STDERR : ENGINE_STDOUT;
}

/* Where the bytes of the stream at from end: to, or where the other one interrupts it. */
static uint64_t same_stream(const struct output *o, uint64_t from, uint64_t to)
{
    const uint64_t flip = stream_at(o, from) == ENGINE_STDERR ? UINT64_MAX : 0;
    uint64_t mask;
    size_t word;

    for (size_t n; from < to; from += n) {
        n = bits(o, from, to, &word, &mask);
        uint64_t other = (o->order[word] ^ flip) & mask;
        if (other)
            return from + (uint64_t)(__builtin_ctzll(other) - __builtin_ctzll(mask));
    }
    return to;
}

/* ---- the bytes ---- */

static void side_add(const struct output *o, struct side *s, const char *data, size_t len)
{
    if (!s->data && len > 0)
        s->data = mem_alloc_raw(o->head + o->ring);
    for (size_t at, n; len > 0; data += n, len -= n) {
        n = places(o, s->total, s->total + len, &at);
        memcpy(s->data + at, data, n);
        s->total += n;
    }
}

static void side_copy(const struct output *o, const struct side *s, uint64_t from, uint64_t to,
                      struct buf *out)
{
    for (size_t at, n; from < to; from += n) {
        n = places(o, from, to, &at);
        buf_add(out, s->data + at, n);
    }
}

/* Appends the bytes [from, to) of both, which must be kept. */
static void both_copy(const struct output *o, uint64_t from, uint64_t to, struct buf *out)
{
    uint64_t at[2];

    at[ENGINE_STDERR] = from <= o->head
                            ? order_count(o, 0, from)
                            : o->sides[ENGINE_STDERR].total - order_count(o, from, o->total);
    at[ENGINE_STDOUT] = from - at[ENGINE_STDERR];
    for (uint64_t end; from < to; from = end) {
        enum engine_stream stream = stream_at(o, from);

        end = same_stream(o, from, to);
        side_copy(o, &o->sides[stream], at[stream], at[stream] + (end - from), out);
        at[stream] += end - from;
    }
}

void output_add(struct output *o, enum engine_stream stream, const char *data, size_t len)
{
    order_set(o, o->total, o->total + len, stream);
    o->total += len;
    side_add(o, &o->sides[stream], data, len);
}

/* ---- for a result ---- */

uint64_t output_view_total(const struct output *o, enum output_view view)
{
    return view == OUTPUT_BOTH ? o->total : o->sides[view].total;
}

bool output_view_truncated(const struct output *o, enum output_view view)
{
    return output_view_total(o, view) > o->keep;
}

static void view_copy(const struct output *o, enum output_view view, uint64_t from, uint64_t to,
                      struct buf *out)
{
    if (view == OUTPUT_BOTH)
        both_copy(o, from, to, out);
    else
        side_copy(o, &o->sides[view], from, to, out);
}

size_t output_view_room(const struct output *o)
{
    return 3 * o->keep + 64;
}

void output_view_text(const struct output *o, enum output_view view, struct buf *out,
                      uint64_t *out_kept)
{
    const uint64_t total = output_view_total(o, view);
    const size_t first = total > o->keep ? o->keep / 2 : (size_t)total;
    const size_t last = total > o->keep ? o->keep - first : 0;
    AUTO_BUF struct buf head = BUF_INIT(o->keep);
    AUTO_BUF struct buf tail = BUF_INIT(o->keep);

    view_copy(o, view, 0, first, &head);
    view_copy(o, view, total - last, total, &tail);
    size_t whole = last > 0 ? utf8_whole_len(buf_str(&head), head.len) : head.len;
    size_t skip = utf8_lost_start(buf_str(&tail), tail.len);

    *out_kept = whole + tail.len - skip;
    utf8_repair(buf_str(&head), whole, out);
    if (last > 0)
        buf_addf(out, "\n[... %" PRIu64 " bytes left out ...]\n", total - *out_kept);
    utf8_repair(buf_str(&tail) + skip, tail.len - skip, out);
}

/* ---- to be followed ---- */

void output_resume(struct output *o, uint64_t total)
{
    o->first = o->total = o->sides[ENGINE_STDOUT].total = total;
}

uint64_t output_total(const struct output *o)
{
    return o->total;
}

uint64_t output_oldest(const struct output *o)
{
    return o->total - o->first > o->newest ? o->total - o->newest : o->first;
}

void output_raw(const struct output *o, struct buf *out)
{
    both_copy(o, output_oldest(o), o->total, out);
}

/* The offset at which reading from since begins. */
static uint64_t first_there(const struct output *o, uint64_t since, uint64_t *out_skipped)
{
    uint64_t oldest = output_oldest(o);

    if (since > o->total)
        since = o->total;
    *out_skipped = since < oldest ? oldest - since : 0;
    return since + *out_skipped;
}

/* Appends raw as UTF-8, after a gap without the rest of a cut character, and unless all is set
 * without a character that is cut at the end. Returns how much of raw that is. */
static size_t add_text(const struct buf *raw, bool gap, bool all, struct buf *out)
{
    size_t len = all ? raw->len : utf8_whole_len(buf_str(raw), raw->len);
    size_t lost = gap ? utf8_lost_start(buf_str(raw), len) : 0;

    utf8_repair(buf_str(raw) + lost, len - lost, out);
    return len;
}

void output_text(const struct output *o, uint64_t since, size_t max, bool over, struct buf *out,
                 uint64_t *out_next, uint64_t *out_skipped)
{
    AUTO_BUF struct buf raw = BUF_INIT(max);
    uint64_t from = first_there(o, since, out_skipped);
    uint64_t to = o->total - from > max ? from + max : o->total;

    both_copy(o, from, to, &raw);
    *out_next = from + add_text(&raw, *out_skipped > 0, over && to == o->total, out);
}

uint64_t output_line_behind(const struct output *o, uint64_t from)
{
    AUTO_BUF struct buf raw = BUF_INIT(o->newest);
    size_t at = 0;

    both_copy(o, from, o->total, &raw);
    const char *end = memchr(buf_str(&raw), '\n', raw.len);
    if (end)
        return from + (uint64_t)(end - raw.data) + 1;
    while (at < 3 && at < raw.len && (raw.data[at] & 0xc0) == 0x80)
        at++;
    return from + at;
}

bool output_piece_at(const struct output *o, uint64_t since, size_t max, enum output_cut cut,
                     struct buf *out, struct output_piece *piece)
{
    AUTO_BUF struct buf raw = BUF_INIT(max);
    uint64_t from = first_there(o, since, &piece->skipped);

    if (from == o->total)
        return false;
    uint64_t to = same_stream(o, from, o->total - from > max ? from + max : o->total);
    bool last = to == o->total;
    both_copy(o, from, to, &raw);
    const char *end = memrchr(raw.data, '\n', raw.len);
    bool interrupted = !last && raw.len < max;
    bool endless = raw.len == max && !end;
    bool all = interrupted || (cut == OUTPUT_OVER && last);

    if (!all && !endless && !(cut != OUTPUT_LINES && last)) {
        raw.len = end ? (size_t)(end - raw.data) + 1 : 0;
        all = true;
    }
    piece->stream = stream_at(o, from);
    piece->next = from + add_text(&raw, piece->skipped > 0, all, out);
    return piece->next > since;
}
