#include "config.h"

#include "common/supervisor/output_stream.h"

#include "common/base/auto.h"

#define BATCH_BYTES  65536u /* of output, at one tick for one waiter */
#define BATCH_PIECES 64
#define BEHIND_BYTES (4 * BATCH_BYTES) /* who is further behind is taken to the newest */
#define LINE_MS      200               /* a line without its end is told after this */

static void tell_gap(struct waiter *r, uint64_t to)
{
    json_auto_t *gap = json_pack("{s:{s:I}, s:I}", "live", "skipped", (json_int_t)(to - r->told),
                                 "nextByte", (json_int_t)to);

    waiter_tell(r, gap);
    r->told = to;
}

/* One message with the next piece for a live waiter; false: none is due. */
static bool tell_piece(const struct output_ring *output, struct waiter *r, size_t max,
                       enum output_ring_cut cut)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * BATCH_BYTES);
    struct output_ring_piece piece;

    if (!output_ring_piece_at(output, r->told, max, cut, &text, &piece))
        return false;
    if (piece.skipped > 0)
        tell_gap(r, r->told + piece.skipped);
    json_auto_t *message = json_pack(
        "{s:{s:o}, s:I}", "live", piece.stream == ENGINE_STDOUT ? "stdout" : "stderr",
        json_stringn(buf_str(&text), text.len), "nextByte", (json_int_t)piece.next);
    waiter_tell(r, message);
    r->told = piece.next;
    return true;
}

/* Who is far behind sees what is new, and is told how much it missed. */
static void catch_up(const struct output_ring *output, struct waiter *r)
{
    uint64_t total = output_ring_total(output);

    if (total - r->told > BEHIND_BYTES)
        tell_gap(r, output_ring_line_behind(output, total - BATCH_BYTES));
}

bool output_stream_send(const struct output_ring *output, struct waiter *r, bool over)
{
    if (r->fd < 0 || r->answered)
        return false;
    if (r->out.len > 0) { /* it has not taken the batch before; when it has, it is asked again */
        r->rest_by = DEADLINE_NEVER;
        return false;
    }
    catch_up(output, r);
    uint64_t from = r->told;
    bool rest = deadline_passed(r->rest_by);
    enum output_ring_cut cut = over   ? OUTPUT_RING_OVER
                               : rest ? OUTPUT_RING_REST
                                      : OUTPUT_RING_LINES;
    bool more = true;
    for (int i = 0; more && i < BATCH_PIECES && r->told - from < BATCH_BYTES - 4; i++)
        more = tell_piece(output, r, BATCH_BYTES - (size_t)(r->told - from), cut);
    if (more)
        return true;
    if (r->told == output_ring_total(output) || rest)
        r->rest_by = DEADLINE_NEVER;
    else if (r->rest_by.at_ms < 0 || r->told != from)
        r->rest_by = deadline_in_ms(LINE_MS);
    return false;
}
