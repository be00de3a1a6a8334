/* What is kept of a program's output: head and tail, exact totals, valid UTF-8 at the cuts. */
#include "config.h"

#include "common/records/output.h"
#include "tests/unit/unit.h"

#include <string.h>

/* Feeds text in pieces of step bytes and returns what is kept. */
static char *kept(const char *text, size_t len, size_t keep, size_t step, uint64_t *out_kept,
                  bool *out_truncated)
{
    struct output *o = output_new(keep, 0);
    struct buf out = BUF_INIT(output_view_room(o));
    for (size_t i = 0; i < len; i += step)
        output_add(o, ENGINE_STDERR, text + i, len - i < step ? len - i : step);
    assert_int_equal(output_view_total(o, OUTPUT_STDERR), len);
    output_view_text(o, OUTPUT_STDERR, &out, out_kept);
    *out_truncated = output_view_truncated(o, OUTPUT_STDERR);
    assert_true(buf_ok(&out));
    output_free(o);
    return buf_take(&out);
}

static void short_output_is_kept_whole(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 10; step++) {
        uint64_t n;
        bool cut;
        AUTO_FREE char *text = kept("0123456789", 10, 10, step, &n, &cut);
        assert_string_equal(text, "0123456789");
        assert_int_equal(n, 10);
        assert_false(cut);
    }
}

static void long_output_keeps_its_head_and_its_tail(void **state)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz";
    (void)state;
    for (size_t step = 1; step <= sizeof digits; step++) {
        uint64_t n;
        bool cut;
        AUTO_FREE char *text = kept(digits, 26, 8, step, &n, &cut);
        assert_string_equal(text, "abcd\n[... 18 bytes left out ...]\nwxyz");
        assert_int_equal(n, 8);
        assert_true(cut);
    }
}

static void characters_are_not_cut_in_half(void **state)
{
    /* Ten times U+00E9, two bytes each; an odd half falls inside one. */
    static const char text[] = "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                               "\xC3\xA9\xC3\xA9";
    uint64_t n;
    bool cut;
    (void)state;
    AUTO_FREE char *out = kept(text, 20, 6, 7, &n, &cut);
    assert_string_equal(out, "\xC3\xA9\n[... 16 bytes left out ...]\n\xC3\xA9");
    assert_int_equal(n, 4);
}

static void broken_bytes_are_replaced_and_totals_stay_exact(void **state)
{
    uint64_t n;
    bool cut;
    (void)state;
    AUTO_FREE char *out = kept("a\xFF"
                               "b",
                               3, 8, 1, &n, &cut);
    assert_string_equal(out, "a\xEF\xBF\xBD"
                             "b");
    assert_int_equal(n, 3);
}

static void a_flood_stays_within_its_memory(void **state)
{
    struct output *o = output_new(1024, 0);
    char block[65536];
    struct buf out = BUF_INIT(output_view_room(o));
    uint64_t n;
    (void)state;
    memset(block, 'y', sizeof block);
    for (int i = 0; i < 10000; i++)
        output_add(o, ENGINE_STDOUT, block, sizeof block);
    assert_int_equal(output_view_total(o, OUTPUT_STDOUT), 655360000);
    output_view_text(o, OUTPUT_STDOUT, &out, &n);
    assert_int_equal(n, 1024);
    assert_true(out.len < 1024 + 64);
    buf_clear(&out);
    output_free(o);
}

/* Head and tail of all that was added to a view, as one buffer would have them. */
static void expect_view(const struct output *o, enum output_view view, const struct buf *all,
                        size_t keep)
{
    AUTO_BUF struct buf out = BUF_INIT(output_view_room(o));
    AUTO_BUF struct buf want = BUF_INIT(output_view_room(o));
    const size_t tail = keep - keep / 2;
    uint64_t n;

    if (all->len <= keep) {
        buf_add(&want, buf_str(all), all->len);
    } else {
        buf_add(&want, all->data, keep / 2);
        buf_addf(&want, "\n[... %zu bytes left out ...]\n", all->len - keep);
        buf_add(&want, all->data + all->len - tail, tail);
    }
    output_view_text(o, view, &out, &n);
    assert_int_equal(output_view_total(o, view), all->len);
    assert_int_equal(n, all->len < keep ? all->len : keep);
    assert_string_equal(buf_str(&out), buf_str(&want));
}

/* The newest bytes of both, too, in every mixture. */
static void streams_are_kept_once_and_seen_three_ways(void **state)
{
    static const size_t keeps[] = {2, 7, 64, 100, 300}, newests[] = {0, 1, 64, 500};
    uint32_t chance = 1;

    (void)state;
    for (size_t round = 0; round < 20 * ARRAY_LEN(keeps) * ARRAY_LEN(newests); round++) {
        const size_t keep = keeps[round % ARRAY_LEN(keeps)];
        const size_t newest = newests[round / ARRAY_LEN(keeps) % ARRAY_LEN(newests)];
        struct output *o = output_new(keep, newest);
        struct buf all[] = {BUF_INIT(1 << 20), BUF_INIT(1 << 20), BUF_INIT(1 << 20)};

        for (int i = 0; i < 40; i++) {
            char text[200];
            chance = chance * 1664525 + 1013904223;
            size_t len = (chance >> 8) % (chance >> 30 ? 4 : sizeof text);
            enum engine_stream stream = chance >> 28 & 3 ? ENGINE_STDOUT : ENGINE_STDERR;
            for (size_t at = 0; at < len; at++)
                text[at] = (char)('a' + (chance + at) % 26);
            output_add(o, stream, text, len);
            buf_add(&all[stream], text, len);
            buf_add(&all[OUTPUT_BOTH], text, len);
            for (enum output_view view = OUTPUT_STDOUT; view <= OUTPUT_BOTH; view++)
                expect_view(o, view, &all[view], keep);
            AUTO_BUF struct buf raw = BUF_INIT(newest + 1);
            output_raw(o, &raw);
            assert_int_equal(raw.len,
                             newest < all[OUTPUT_BOTH].len ? newest : all[OUTPUT_BOTH].len);
            assert_string_equal(buf_str(&raw),
                                buf_str(&all[OUTPUT_BOTH]) + all[OUTPUT_BOTH].len - raw.len);
        }
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            buf_clear(&all[i]);
        output_free(o);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_output_is_kept_whole),
    cmocka_unit_test(long_output_keeps_its_head_and_its_tail),
    cmocka_unit_test(characters_are_not_cut_in_half),
    cmocka_unit_test(broken_bytes_are_replaced_and_totals_stay_exact),
    cmocka_unit_test(a_flood_stays_within_its_memory),
    cmocka_unit_test(streams_are_kept_once_and_seen_three_ways),
};
UNIT_TESTS(tests)
