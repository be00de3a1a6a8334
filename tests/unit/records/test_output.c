/* A run's output while it goes on: offsets, the ring's end, characters and lines that are cut. */
#include "config.h"

#include "common/records/output.h"

#include "common/base/utf8.h"
#include "tests/unit/unit.h"

static void add(struct output *l, enum engine_stream stream, const char *text)
{
    output_add(l, stream, text, strlen(text));
}

static void expect_text(const struct output *l, uint64_t since, size_t max, bool over,
                        const char *text, uint64_t next, uint64_t skipped)
{
    AUTO_BUF struct buf out = BUF_INIT(3 * max);
    uint64_t got_next, got_skipped;

    output_text(l, since, max, over, &out, &got_next, &got_skipped);
    assert_string_equal(buf_str(&out), text);
    assert_int_equal(got_next, next);
    assert_int_equal(got_skipped, skipped);
}

static void text_is_read_from_any_offset(void **state)
{
    struct output *l = output_new(0, 100);

    (void)state;
    expect_text(l, 0, 100, false, "", 0, 0);
    add(l, ENGINE_STDOUT, "hello ");
    add(l, ENGINE_STDERR, "world\n");
    expect_text(l, 0, 100, false, "hello world\n", 12, 0);
    expect_text(l, 6, 100, false, "world\n", 12, 0);
    expect_text(l, 3, 4, false, "lo w", 7, 0);
    expect_text(l, 12, 100, true, "", 12, 0);
    expect_text(l, 13, 100, true, "", 12, 0);
    expect_text(l, UINT64_MAX, 100, true, "", 12, 0);
    output_free(l);
}

static void what_left_the_ring_is_counted(void **state)
{
    (void)state;
    for (size_t step = 1; step <= 30; step++) {
        struct output *l = output_new(0, 8);
        const char *text = "abcdefghijklmnopqrstuvwxyz";

        for (size_t i = 0; i < 26; i += step)
            output_add(l, ENGINE_STDOUT, text + i, 26 - i < step ? 26 - i : step);
        expect_text(l, 0, 100, false, "stuvwxyz", 26, 18);
        expect_text(l, 17, 100, false, "stuvwxyz", 26, 1);
        expect_text(l, 18, 100, false, "stuvwxyz", 26, 0);
        expect_text(l, 25, 100, false, "z", 26, 0);
        assert_int_equal(output_oldest(l), 18);
        AUTO_BUF struct buf raw = BUF_INIT(8);
        output_raw(l, &raw);
        assert_string_equal(buf_str(&raw), "stuvwxyz");
        output_free(l);
    }
}

static void a_character_is_never_cut(void **state)
{
    struct output *l = output_new(0, 100);

    (void)state;
    add(l, ENGINE_STDOUT, "a\xE2\x82"); /* two thirds of U+20AC */
    expect_text(l, 0, 100, false, "a", 1, 0);
    expect_text(l, 0, 100, true, "a\xEF\xBF\xBD", 3, 0);
    add(l, ENGINE_STDOUT, "\xAC");
    expect_text(l, 1, 100, false, "\xE2\x82\xAC", 4, 0);
    expect_text(l, 0, 3, true, "a", 1, 0); /* the bound cuts, not the end */
    add(l, ENGINE_STDOUT, "\xFF");         /* begins nothing, so nothing is waited for */
    expect_text(l, 4, 100, false, "\xEF\xBF\xBD", 5, 0);
    output_free(l);
}

static void behind_a_gap_no_half_character_stands(void **state)
{
    struct output *l = output_new(0, 4);

    (void)state;
    add(l, ENGINE_STDOUT,
        "\xE2\x82\xAC"
        "ab"); /* the first byte is gone */
    expect_text(l, 0, 100, true, "ab", 5, 1);
    output_free(l);
}

static void nul_and_escape_bytes_are_kept(void **state)
{
    struct output *l = output_new(0, 100);
    AUTO_BUF struct buf out = BUF_INIT(300);
    uint64_t next, skipped;

    (void)state;
    output_add(l, ENGINE_STDOUT, "a\0\033[1m", 6);
    output_text(l, 0, 100, true, &out, &next, &skipped);
    assert_int_equal(out.len, 6);
    assert_memory_equal(out.data, "a\0\033[1m", 6);
    output_free(l);
}

/* Expects that piece, or none (text NULL); returns where the next one begins. */
static uint64_t expect_piece(const struct output *l, uint64_t since, size_t max,
                             enum output_cut cut, const char *text, enum engine_stream stream)
{
    AUTO_BUF struct buf out = BUF_INIT(3 * max);
    struct output_piece piece;
    bool got = output_piece_at(l, since, max, cut, &out, &piece);

    assert_int_equal(got, text != NULL);
    if (!text)
        return since;
    assert_string_equal(buf_str(&out), text);
    assert_int_equal(piece.stream, stream);
    assert_int_equal(piece.skipped, 0);
    return piece.next;
}

static void lines_are_given_whole(void **state)
{
    struct output *l = output_new(0, 1000);
    uint64_t at = 0;

    (void)state;
    at = expect_piece(l, at, 100, OUTPUT_LINES, NULL, ENGINE_STDOUT);
    add(l, ENGINE_STDOUT, "one\ntwo\nthr");
    at = expect_piece(l, at, 100, OUTPUT_LINES, "one\ntwo\n", ENGINE_STDOUT);
    at = expect_piece(l, at, 100, OUTPUT_LINES, NULL, ENGINE_STDOUT);
    add(l, ENGINE_STDOUT, "ee\n");
    at = expect_piece(l, at, 100, OUTPUT_LINES, "three\n", ENGINE_STDOUT);
    add(l, ENGINE_STDOUT, "no end \xC3");
    at = expect_piece(l, at, 100, OUTPUT_REST, "no end ", ENGINE_STDOUT);
    at = expect_piece(l, at, 100, OUTPUT_REST, NULL, ENGINE_STDOUT);
    at = expect_piece(l, at, 100, OUTPUT_OVER, "\xEF\xBF\xBD", ENGINE_STDOUT);
    assert_int_equal(at, output_total(l));
    output_free(l);
}

static void streams_keep_their_order(void **state)
{
    struct output *l = output_new(0, 1000);
    uint64_t at = 0;

    (void)state;
    add(l, ENGINE_STDOUT, "10%");
    add(l, ENGINE_STDERR, "careful\n");
    add(l, ENGINE_STDOUT, "20%");
    at = expect_piece(l, at, 100, OUTPUT_LINES, "10%", ENGINE_STDOUT);
    at = expect_piece(l, at, 100, OUTPUT_LINES, "careful\n", ENGINE_STDERR);
    at = expect_piece(l, at, 100, OUTPUT_LINES, NULL, ENGINE_STDOUT);
    at = expect_piece(l, at, 100, OUTPUT_REST, "20%", ENGINE_STDOUT);
    assert_int_equal(at, output_total(l));
    output_free(l);
}

static void a_line_longer_than_the_bound_is_given_in_parts(void **state)
{
    struct output *l = output_new(0, 1000);
    uint64_t at = 0;

    (void)state;
    add(l, ENGINE_STDOUT, "abcdefg\xC3\xA9ijk\nx");
    at = expect_piece(l, at, 8, OUTPUT_LINES, "abcdefg", ENGINE_STDOUT);
    at = expect_piece(l, at, 8, OUTPUT_LINES, "\xC3\xA9ijk\n", ENGINE_STDOUT);
    expect_piece(l, at, 8, OUTPUT_LINES, NULL, ENGINE_STDOUT);
    output_free(l);
}

static void a_piece_behind_a_gap_says_what_is_gone(void **state)
{
    struct output *l = output_new(0, 10);
    AUTO_BUF struct buf out = BUF_INIT(300);
    struct output_piece piece;

    (void)state;
    add(l, ENGINE_STDOUT, "0123456789abcdefgh\n");
    assert_true(output_piece_at(l, 3, 100, OUTPUT_LINES, &out, &piece));
    assert_string_equal(buf_str(&out), "9abcdefgh\n");
    assert_int_equal(piece.skipped, 6);
    assert_int_equal(piece.next, 19);
    output_free(l);
}

static void who_skips_goes_on_at_a_line(void **state)
{
    struct output *l = output_new(0, 12);

    (void)state;
    add(l, ENGINE_STDOUT, "gone\none\ntwo\n\xE2\x82\xAC");
    assert_int_equal(output_oldest(l), 4);
    assert_int_equal(output_line_behind(l, 6), 9);
    assert_int_equal(output_line_behind(l, 9), 13);
    assert_int_equal(output_line_behind(l, 13), 13); /* no line ends behind it */
    assert_int_equal(output_line_behind(l, 14), 16); /* not inside a character */
    assert_int_equal(output_line_behind(l, 16), 16);
    output_free(l);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_is_read_from_any_offset),
    cmocka_unit_test(what_left_the_ring_is_counted),
    cmocka_unit_test(a_character_is_never_cut),
    cmocka_unit_test(behind_a_gap_no_half_character_stands),
    cmocka_unit_test(nul_and_escape_bytes_are_kept),
    cmocka_unit_test(lines_are_given_whole),
    cmocka_unit_test(streams_keep_their_order),
    cmocka_unit_test(a_line_longer_than_the_bound_is_given_in_parts),
    cmocka_unit_test(a_piece_behind_a_gap_says_what_is_gone),
    cmocka_unit_test(who_skips_goes_on_at_a_line),
};
UNIT_TESTS(tests)
