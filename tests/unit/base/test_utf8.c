#include "config.h"

#include "common/base/utf8.h"
#include "tests/unit/unit.h"

#define FFFD "\xef\xbf\xbd"

struct repair_row {
    const char *broken, *repaired;
    size_t replaced;
};

static const char *const good[] = {
    "",
    "plain",
    "\x7f",
    "\u00e9\u4e2d\U0001f600",
    "\xc2\x80",     /* the first of two bytes */
    "\xdf\xbf",     /* the last */
    "\xe0\xa0\x80", /* of three */
    "\xed\x9f\xbf", /* just below the surrogates */
    "\xee\x80\x80", /* just above */
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80", /* of four */
    "\xf4\x8f\xbf\xbf", /* U+10FFFF */
};

/* The number of replacements is the Unicode standard's, section 3.9, table 3-8 and around. */
static const struct repair_row broken[] = {
    {"\x80", FFFD, 1},
    {"\xbf\xbf", FFFD FFFD, 2},
    {"\xc0\x80", FFFD FFFD, 2},          /* overlong NUL */
    {"\xc1\xbf", FFFD FFFD, 2},          /* overlong DEL */
    {"\xe0\x80\x80", FFFD FFFD FFFD, 3}, /* overlong of three */
    {"\xe0\x9f\xbf", FFFD FFFD FFFD, 3},
    {"\xf0\x80\x80\x80", FFFD FFFD FFFD FFFD, 4}, /* overlong of four */
    {"\xf0\x8f\xbf\xbf", FFFD FFFD FFFD FFFD, 4},
    {"\xed\xa0\x80", FFFD FFFD FFFD, 3}, /* surrogates */
    {"\xed\xbf\xbf", FFFD FFFD FFFD, 3},
    {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD, 4}, /* U+110000 */
    {"\xf5\x80\x80\x80", FFFD FFFD FFFD FFFD, 4},
    {"\xfe\xff", FFFD FFFD, 2},
    {"a\xc3", "a" FFFD, 1}, /* cut off at the end */
    {"a\xe4\xb8", "a" FFFD, 1},
    {"a\xf0\x9f\x98", "a" FFFD, 1},
    {"\xc3(", FFFD "(", 1}, /* cut off in the middle */
    {"\xe4\xb8x", FFFD "x", 1},
    {"\xf0\x9f\x98\xe9z", FFFD FFFD "z", 2},
    {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf"
     "A",
     FFFD FFFD FFFD FFFD "A", 4},
};

static void well_formed_text_is_valid_and_stays_as_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        AUTO_BUF struct buf out = BUF_INIT(100);
        size_t len = strlen(good[i]);
        assert_true(utf8_valid(good[i], len));
        assert_int_equal(utf8_repair(good[i], len, &out), 0);
        assert_string_equal(buf_str(&out), good[i]);
    }
    assert_true(utf8_valid("a\0b", 3));
}

static void each_maximal_broken_part_becomes_one_replacement(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        AUTO_BUF struct buf out = BUF_INIT(100);
        size_t len = strlen(broken[i].broken);
        assert_false(utf8_valid(broken[i].broken, len));
        assert_int_equal(utf8_repair(broken[i].broken, len, &out), broken[i].replaced);
        assert_string_equal(buf_str(&out), broken[i].repaired);
    }
}

static void the_length_of_a_character_is_zero_when_it_is_broken(void **state)
{
    (void)state;
    assert_int_equal(utf8_char_len("", 0), 0);
    assert_int_equal(utf8_char_len("\0", 1), 1);
    assert_int_equal(utf8_char_len("ab", 2), 1);
    assert_int_equal(utf8_char_len("\u00e9", 2), 2);
    assert_int_equal(utf8_char_len("\u00e9", 1), 0);
    assert_int_equal(utf8_char_len("\U0001f600x", 5), 4);
    assert_int_equal(utf8_char_len("\x80", 1), 0);
}

/* All three-byte sequences against the definition, written differently than in the code. */
static void exactly_the_allowed_three_byte_sequences_are_valid(void **state)
{
    (void)state;
    for (unsigned lead = 0xe0; lead <= 0xef; lead++) {
        for (unsigned rest = 0; rest < 0x10000; rest++) {
            const unsigned char s[3] = {(unsigned char)lead, (unsigned char)(rest >> 8),
                                        (unsigned char)rest};
            unsigned code = (lead & 15) << 12 | (s[1] & 63u) << 6 | (s[2] & 63u);
            bool expected = (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 && code >= 0x800 &&
                            !(code >= 0xd800 && code <= 0xdfff);
            if (utf8_valid((const char *)s, 3) != expected)
                fail_msg("%02x %02x %02x", s[0], s[1], s[2]);
        }
    }
}

static void a_cut_never_splits_a_character(void **state)
{
    (void)state;
    const char *s = "a\u00e9\u4e2d\U0001f600z"; /* 1 + 2 + 3 + 4 + 1 bytes */
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};
    for (size_t max = 0; max < ARRAY_LEN(expected); max++)
        assert_int_equal(utf8_cut(s, 11, max), expected[max]);
}

static void a_cut_through_broken_text_is_taken_at_the_limit(void **state)
{
    (void)state;
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80", 5, 3), 3);
    assert_int_equal(utf8_cut("\xe4\xb8xyz", 5, 2), 2);
    assert_int_equal(utf8_cut("ab\xff\xff", 4, 3), 3);
}

static void pieces_know_what_was_cut_from_them(void **state)
{
    static const struct {
        const char *text;
        size_t lost, whole;
    } rows[] = {
        {"", 0, 0},
        {"abc", 0, 3},
        {"\x82\xAC"
         "a",
         2, 3},
        {"\x80\x80\x80\x80", 3, 4}, /* begins nowhere: broken, not cut */
        {"a\xC3", 0, 1},
        {"a\xE2\x82", 0, 1},
        {"a\xF0\x9F\x98", 0, 1},
        {"\xF0\x9F\x98\x80", 0, 4},
        {"a\xC3\xA9", 0, 3},
        {"a\xFF", 0, 2}, /* no character begins so */
        {"a\xC0", 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].text);
        assert_int_equal(utf8_lost_start(rows[i].text, len), rows[i].lost);
        assert_int_equal(utf8_whole_len(rows[i].text, len), rows[i].whole);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(well_formed_text_is_valid_and_stays_as_it_is),
    cmocka_unit_test(each_maximal_broken_part_becomes_one_replacement),
    cmocka_unit_test(the_length_of_a_character_is_zero_when_it_is_broken),
    cmocka_unit_test(exactly_the_allowed_three_byte_sequences_are_valid),
    cmocka_unit_test(a_cut_never_splits_a_character),
    cmocka_unit_test(a_cut_through_broken_text_is_taken_at_the_limit),
    cmocka_unit_test(pieces_know_what_was_cut_from_them),
};
UNIT_TESTS(tests)
