#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

static json_t *parse(const char *text, struct err *e)
{
    *e = ERR_INIT;
    return json_parse(text, strlen(text), JSON_MAX_DEPTH, e);
}

static void every_kind_of_value_is_accepted_at_the_top(void **state)
{
    (void)state;
    static const char *const good[] = {"{}",    "[]",   "17",   "-1.5e3",
                                       "\"x\"", "true", "null", " [1] \n"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct err e;
        json_auto_t *value = parse(good[i], &e);
        if (!value)
            fail_msg("%s: %s", good[i], e.text);
    }
}

struct bad_row {
    const char *text, *part;
};

static const struct bad_row bad[] = {
    {"", "ends too early"},
    {"{\"a\":", "ends too early"},
    {"[1,2", "ends too early"},
    {"{} {}", "follows"},
    {"{}x", "follows"},
    {"{\"a\":1,\"a\":2}", "twice"},
    {"{\"a\\u0000b\":1}", "NUL"},
    {"[\"\xff\"]", "UTF-8"},
    {"[\"\xed\xa0\x80\"]", "UTF-8"},
    {"99999999999999999999", "too large"},
    {"1e999", "too large"},
    {"[1,]", "syntax"},
    {"{'a':1}", "syntax"},
    {"[01]", "syntax"},
    {"[NaN]", "syntax"},
    {"// no\n1", "syntax"},
    {"[\"\n\"]", "syntax"},
    {"[\"\\ud800\"]", "syntax"},
    {"\xef\xbb\xbf{}", "syntax"},
    {"]", "syntax"},
};

static void what_is_not_json_is_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e;
        json_auto_t *value = parse(bad[i].text, &e);
        if (value)
            fail_msg("%s was accepted", bad[i].text);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_contains(e.text, bad[i].part);
        assert_contains(e.text, "line");
    }
}

static void messages_never_quote_the_input(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"hush\":1,\"hush\":2}", "[hush]", "\"hush",
                                        "[\"hush\" \"hush\"]", "{\"hush\\u0000\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e;
        assert_null(parse(texts[i], &e));
        assert_null(strstr(e.text, "hush"));
    }
}

static void nesting_is_bounded_before_anything_is_built(void **state)
{
    (void)state;
    struct err e;
    char text[400];
    for (size_t depth = 63; depth <= 65; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        e = ERR_INIT;
        json_auto_t *value = json_parse(text, 2 * depth, JSON_MAX_DEPTH, &e);
        assert_int_equal(value != NULL, depth <= JSON_MAX_DEPTH);
        assert_int_equal(e.kind, depth <= JSON_MAX_DEPTH ? ERR_NONE : ERR_LIMIT);
    }
    assert_null(json_parse("[1]", 3, 0, &e));
    json_auto_t *flat = json_parse("1", 1, 0, &e);
    assert_non_null(flat);
    json_auto_t *wide = json_parse("[[],[],[{}],{}]", 15, 3, &e);
    assert_non_null(wide);
}

static void brackets_inside_strings_do_not_count(void **state)
{
    (void)state;
    struct err e;
    const char *text = "[\"[[[[{{{{\\\"[[[[\\\\\",\"\\\\\",[1]]";
    json_auto_t *value = json_parse(text, strlen(text), 2, &e);
    assert_non_null(value);
    assert_null(json_parse(text, strlen(text), 1, &e));
    assert_int_equal(e.kind, ERR_LIMIT);
}

/* An array of n such elements and a 0. */
static json_t *parse_array(size_t n, const char *element, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(n * (strlen(element) + 1) + 100);

    *e = (struct err)ERR_INIT;
    buf_add_char(&text, '[');
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&text, element);
        buf_add_char(&text, ',');
    }
    buf_add_str(&text, "0]");
    assert_true(buf_ok(&text));
    return json_parse(buf_str(&text), text.len, JSON_MAX_DEPTH, e);
}

static void the_number_of_values_is_bounded_before_anything_is_built(void **state)
{
    (void)state;
    static const struct {
        const char *element;
        size_t marks; /* of it and the comma behind it */
    } rows[] = {{"1", 1}, {"{}", 2}, {"[]", 2}, {"{\"a\":1}", 3}, {"\"[{,:\\\"[,\\\\\"", 1}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e;
        size_t most = (JSON_MAX_VALUES - 1) / rows[i].marks;
        json_auto_t *value = parse_array(most, rows[i].element, &e);
        assert_int_equal(json_array_size(value), most + 1);
        assert_null(parse_array(most + 1, rows[i].element, &e));
        assert_int_equal(e.kind, ERR_LIMIT);
        assert_contains(e.text, "200000");
    }
}

static void a_string_without_an_end_is_read_to_its_last_byte(void **state)
{
    (void)state;
    static const char *const texts[] = {"[\"", "[\"\\", "\"", "\"\\"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e = ERR_INIT;
        AUTO_FREE char *exact = mem_alloc(strlen(texts[i])); /* a sanitizer sees a byte too many */
        memcpy(exact, texts[i], strlen(texts[i]));
        assert_null(json_parse(exact, strlen(texts[i]), JSON_MAX_DEPTH, &e));
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

static void exactly_the_given_length_is_read(void **state)
{
    (void)state;
    struct err e;
    json_auto_t *value = json_parse("12345", 3, JSON_MAX_DEPTH, &e);
    assert_int_equal(json_integer_value(value), 123);
    assert_null(json_parse(NULL, 0, JSON_MAX_DEPTH, &e));
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    (void)state;
    static const char *const texts[] = {"1@", "[1@]", "[1@,2]", "@1", "{@}", "\"@\"", "{\"a\":1@}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e = ERR_INIT;
        char text[20];
        size_t len = strlen(texts[i]);
        memcpy(text, texts[i], len);
        *(char *)memchr(text, '@', len) = '\0';
        assert_null(json_parse(text, len, JSON_MAX_DEPTH, &e));
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

static void an_escaped_nul_in_a_string_is_kept(void **state)
{
    (void)state;
    struct err e;
    AUTO_BUF struct buf out = BUF_INIT(100);
    json_auto_t *value = parse("{\"s\":\"a\\u0000b\",\"t\":\"a\"}", &e);
    assert_int_equal(json_string_length(json_object_get(value, "s")), 3);
    assert_null(json_get_string(value, "s"));
    assert_string_equal(json_get_string(value, "t"), "a");
    assert_int_equal(json_write(value, &out), 0);
    assert_string_equal(buf_str(&out), "{\"s\":\"a\\u0000b\",\"t\":\"a\"}");
}

static void writing_is_compact_keeps_the_order_and_is_bounded(void **state)
{
    (void)state;
    struct err e;
    const char *text = "{\"z\":[1,2.5,null],\"a\":{\"b\":\"\u00e9\"}}";
    json_auto_t *value = parse(text, &e);
    AUTO_BUF struct buf out = BUF_INIT(strlen(text)), small = BUF_INIT(strlen(text) - 1);
    assert_int_equal(json_write(value, &out), 0);
    assert_string_equal(buf_str(&out), text);
    assert_int_equal(json_write(value, &small), -1);
    assert_false(buf_ok(&small));
    json_auto_t *scalar = json_string("x");
    buf_reset(&out);
    assert_int_equal(json_write(scalar, &out), 0);
    assert_string_equal(buf_str(&out), "\"x\"");
}

static void pretty_text_is_indented_by_two(void **state)
{
    (void)state;
    struct err e;
    AUTO_BUF struct buf out = BUF_INIT(100);
    json_auto_t *value = parse("{\"a\":[1]}", &e);
    assert_int_equal(json_write_pretty(value, &out), 0);
    assert_string_equal(buf_str(&out), "{\n  \"a\": [\n    1\n  ]\n}");
}

static void any_bytes_become_a_string(void **state)
{
    (void)state;
    json_auto_t *good = json_from_bytes("\u00e9\0x", 4), *empty = json_from_bytes(NULL, 0);
    json_auto_t *broken = json_from_bytes("a\xff\0\xe4\xb8", 5);
    assert_int_equal(json_string_length(good), 4);
    assert_memory_equal(json_string_value(good), "\u00e9\0x", 4);
    assert_int_equal(json_string_length(empty), 0);
    assert_int_equal(json_string_length(broken), 8);
    assert_memory_equal(json_string_value(broken), "a\xef\xbf\xbd\0\xef\xbf\xbd", 8);
}

static void members_are_read_with_their_type(void **state)
{
    (void)state;
    struct err e;
    json_auto_t *o = parse("{\"s\":\"x\",\"i\":7,\"r\":7.0,\"t\":true,\"f\":false,\"n\":null}", &e);
    assert_string_equal(json_get_string(o, "s"), "x");
    assert_null(json_get_string(o, "i"));
    assert_null(json_get_string(o, "none"));
    assert_null(json_get_string(NULL, "s"));
    assert_int_equal(json_get_integer(o, "i", -1), 7);
    assert_int_equal(json_get_integer(o, "r", -1), -1);
    assert_int_equal(json_get_integer(o, "s", -1), -1);
    assert_int_equal(json_get_bool(o, "t", 5), 1);
    assert_int_equal(json_get_bool(o, "f", 5), 0);
    assert_int_equal(json_get_bool(o, "n", 5), 5);
    assert_int_equal(json_get_bool(o, "i", 5), 5);
}

static void rows_stay_sorted_the_newest_first_whatever_order_they_come_in(void **state)
{
    static const struct {
        int created;
        const char *id;
    } in[] = {{5, "b"}, {9, "d"}, {1, "e"}, {5, "a"}, {5, "c"}};
    static const char *const want[] = {"d", "a", "b", "c", "e"};
    struct err e;

    (void)state;
    for (size_t first = 0; first < ARRAY_LEN(in); first++) {
        json_auto_t *rows = parse("[]", &e);
        for (size_t i = 0; i < ARRAY_LEN(in); i++) {
            size_t k = (first + i) % ARRAY_LEN(in);
            json_insert_newest(rows, "id",
                               json_pack("{s:i, s:s}", "createdAt", in[k].created, "id", in[k].id));
        }
        assert_int_equal(json_array_size(rows), ARRAY_LEN(want));
        for (size_t i = 0; i < ARRAY_LEN(want); i++)
            assert_string_equal(json_get_string(json_array_get(rows, i), "id"), want[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_kind_of_value_is_accepted_at_the_top),
    cmocka_unit_test(what_is_not_json_is_refused_with_the_reason),
    cmocka_unit_test(messages_never_quote_the_input),
    cmocka_unit_test(nesting_is_bounded_before_anything_is_built),
    cmocka_unit_test(brackets_inside_strings_do_not_count),
    cmocka_unit_test(the_number_of_values_is_bounded_before_anything_is_built),
    cmocka_unit_test(a_string_without_an_end_is_read_to_its_last_byte),
    cmocka_unit_test(exactly_the_given_length_is_read),
    cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
    cmocka_unit_test(an_escaped_nul_in_a_string_is_kept),
    cmocka_unit_test(writing_is_compact_keeps_the_order_and_is_bounded),
    cmocka_unit_test(pretty_text_is_indented_by_two),
    cmocka_unit_test(any_bytes_become_a_string),
    cmocka_unit_test(members_are_read_with_their_type),
    cmocka_unit_test(rows_stay_sorted_the_newest_first_whatever_order_they_come_in),
};
UNIT_TESTS(tests)
