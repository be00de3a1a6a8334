/* What is kept of a program's output: head and tail, exact totals, valid UTF-8 at the cuts. */
#include "config.h"

#include "common/records/run_result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Feeds text in pieces of step bytes and returns what is kept. */
static char *kept(const char *text, size_t len, size_t keep, size_t step, uint64_t *out_kept,
                  bool *out_truncated)
{
    AUTO_CAPTURE struct capture c;
    struct buf out = BUF_INIT(3 * keep + 64);
    capture_init(&c, keep);
    for (size_t i = 0; i < len; i += step)
        capture_add(&c, text + i, len - i < step ? len - i : step);
    assert_int_equal(c.total, len);
    capture_text(&c, &out, out_kept);
    *out_truncated = capture_truncated(&c);
    assert_true(buf_ok(&out));
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
    AUTO_CAPTURE struct capture c;
    char block[65536];
    struct buf out = BUF_INIT(3 * 1024 + 64);
    uint64_t n;
    (void)state;
    memset(block, 'y', sizeof block);
    capture_init(&c, 1024);
    for (int i = 0; i < 10000; i++)
        capture_add(&c, block, sizeof block);
    assert_int_equal(c.total, 655360000);
    capture_text(&c, &out, &n);
    assert_int_equal(n, 1024);
    assert_true(out.len < 1024 + 64);
    buf_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_output_is_kept_whole),
        cmocka_unit_test(long_output_keeps_its_head_and_its_tail),
        cmocka_unit_test(characters_are_not_cut_in_half),
        cmocka_unit_test(broken_bytes_are_replaced_and_totals_stay_exact),
        cmocka_unit_test(a_flood_stays_within_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
