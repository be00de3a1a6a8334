/* A program's output, whatever it is: waiters get valid UTF-8, never go back, and reach the end. */
#include "config.h"

#include "common/records/output.h"
#include "tests/fuzz/fuzz.h"

#define KEEP 64

static void follow_text(const struct output *l, uint64_t *at, bool over)
{
    AUTO_BUF struct buf out = BUF_INIT(3 * 16);
    uint64_t next, skipped;

    output_text(l, *at, 16, over, &out, &next, &skipped);
    PROMISE(buf_ok(&out) && utf8_valid(buf_str(&out), out.len));
    PROMISE(next >= *at + skipped && next <= output_total(l));
    *at = next;
}

static bool follow_pieces(const struct output *l, uint64_t *at, enum output_cut cut)
{
    AUTO_BUF struct buf out = BUF_INIT(3 * 16);
    struct output_piece piece;

    if (!output_piece_at(l, *at, 16, cut, &out, &piece))
        return false;
    PROMISE(buf_ok(&out) && utf8_valid(buf_str(&out), out.len));
    PROMISE(piece.next > *at && piece.next >= *at + piece.skipped);
    PROMISE(piece.next <= output_total(l));
    *at = piece.next;
    return true;
}

/* Each piece: a byte for its stream and length, then that many bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct output *l = output_new(0, KEEP);
    uint64_t text = 0, lines = 0, rest = 0, total = 0;

    while (len > 0) {
        size_t n = data[0] >> 1 < len - 1 ? data[0] >> 1 : len - 1;

        output_add(l, data[0] & 1 ? ENGINE_STDERR : ENGINE_STDOUT, (const char *)data + 1, n);
        total += n;
        PROMISE(output_total(l) == total);
        follow_text(l, &text, false);
        follow_pieces(l, &lines, OUTPUT_LINES);
        follow_pieces(l, &rest, OUTPUT_REST);
        data += n + 1;
        len -= n + 1;
    }
    while (text < total)
        follow_text(l, &text, true);
    while (follow_pieces(l, &lines, OUTPUT_OVER))
        ;
    PROMISE(lines == total);
    output_free(l);
    return 0;
}
