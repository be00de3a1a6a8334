#include "config.h"

#include "common/base/b64.h"
#include "tests/unit/unit.h"

struct pair {
    const char *bytes, *text;
};

/* RFC 4648 section 10. */
static const struct pair pairs[] = {{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}};

static const char *const refused[] = {
    "Z",        "Zg",    "Zg=",      "Zm9vY",      /* padding missing */
    "=",        "====",  "Z===",     "Zg==Zg==",   /* padding in the wrong place */
    "Zg==\n",   "Zg= =", " Zg==",    "Zm9v\r\n",   /* blanks and line breaks */
    "Zh==",     "Zm9=",  "Z/==",                   /* leftover bits */
    "Zm_v",     "Zm-v",  "Zm9v!AAA", "Z\xc3\xa9v", /* other alphabets */
    "Zm9v====", "=m9v",  "Zg=a",     "Z=g=",
};

static void the_published_vectors_go_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        AUTO_BUF struct buf text = BUF_INIT(100), bytes = BUF_INIT(100);
        b64_encode(pairs[i].bytes, strlen(pairs[i].bytes), &text);
        assert_string_equal(buf_str(&text), pairs[i].text);
        assert_int_equal(b64_decode(pairs[i].text, strlen(pairs[i].text), &bytes), 0);
        assert_string_equal(buf_str(&bytes), pairs[i].bytes);
    }
}

static void what_is_not_strict_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        AUTO_BUF struct buf bytes = BUF_INIT(100);
        if (b64_decode(refused[i], strlen(refused[i]), &bytes) == 0)
            fail_msg("\"%s\" was accepted", refused[i]);
    }
    AUTO_BUF struct buf bytes = BUF_INIT(100);
    assert_int_equal(b64_decode("Zg\0=", 4, &bytes), -1);
}

/* Of all groups of four characters that end in two different ways of padding, each value has one
 * spelling. */
static void every_single_byte_has_exactly_one_spelling(void **state)
{
    (void)state;
    int accepted = 0;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            AUTO_BUF struct buf bytes = BUF_INIT(10);
            const char text[4] = {(char)a, (char)b, '=', '='};
            accepted += b64_decode(text, 4, &bytes) == 0;
        }
    }
    assert_int_equal(accepted, 256);
}

static void all_lengths_survive_the_way_there_and_back(void **state)
{
    (void)state;
    unsigned char data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t len = 0; len <= sizeof data; len++) {
        AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(len)), back = BUF_INIT(len);
        b64_encode(data, len, &text);
        assert_true(buf_ok(&text));
        assert_int_equal(text.len, B64_ENCODED_LEN(len));
        assert_int_equal(b64_decode(buf_str(&text), text.len, &back), 0);
        assert_int_equal(back.len, len);
        assert_memory_equal(buf_str(&back), data, len);
    }
}

static void output_is_appended_and_bounded(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(8);
    buf_add_str(&out, "x:");
    assert_int_equal(b64_decode("Zm9vYg==", 8, &out), 0);
    assert_string_equal(buf_str(&out), "x:foob");
    assert_int_equal(b64_decode("Zm9v", 4, &out), -1);
    assert_false(buf_ok(&out));
    AUTO_BUF struct buf small = BUF_INIT(7);
    b64_encode("foob", 4, &small);
    assert_false(buf_ok(&small));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_published_vectors_go_both_ways),
    cmocka_unit_test(what_is_not_strict_is_refused),
    cmocka_unit_test(every_single_byte_has_exactly_one_spelling),
    cmocka_unit_test(all_lengths_survive_the_way_there_and_back),
    cmocka_unit_test(output_is_appended_and_bounded),
};
UNIT_TESTS(tests)
