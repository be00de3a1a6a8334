#include "config.h"

#include "common/base/err.h"
#include "common/base/utf8.h"
#include "tests/unit/unit.h"

#include <errno.h>

static void setting_returns_minus_one_and_keeps_kind_and_text(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(err_set(&e, ERR_LIMIT, "%s is over %d", "code", 5), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_string_equal(e.text, "code is over 5");
}

static void wrapping_puts_context_in_front_and_keeps_the_kind(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    err_set(&e, ERR_NOT_FOUND, "no such image");
    assert_int_equal(err_wrap(&e, "engine %d", 1), -1);
    err_wrap(&e, "run");
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_string_equal(e.text, "run: engine 1: no such image");
}

static void errno_text_follows_the_message_and_errno_survives(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    errno = ENOSPC;
    assert_int_equal(err_errno(&e, "cannot write %s", "f"), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(e.kind, ERR_IO);
    assert_string_equal(e.text, "cannot write f: No space left on device");
}

static void the_errno_is_kept_until_another_error_is_set(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    errno = ENOSPC;
    err_errno(&e, "cannot write");
    err_wrap(&e, "run");
    assert_int_equal(e.sys, ENOSPC);
    err_set(&e, ERR_IO, "No space left on device");
    assert_int_equal(e.sys, 0);
}

static void the_reason_is_kept_when_a_long_name_is_cut(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    errno = EACCES;
    err_errno(&e, "cannot open %s", name);
    assert_contains(e.text, ": Permission denied");
    assert_true(strlen(e.text) < sizeof e.text);
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        struct err e = ERR_INIT;
        char text[1200] = "";
        memset(text, 'a', (size_t)shift);
        for (int i = 0; i < 280; i++)
            memcpy(text + shift + 4 * i, "\U0001f600", 5);
        err_set(&e, ERR_INVALID, "%s", text);
        assert_true(strlen(e.text) > sizeof e.text - 5);
        assert_true(utf8_valid(e.text, strlen(e.text)));
        err_wrap(&e, "%s", "\u00e9");
        assert_true(utf8_valid(e.text, strlen(e.text)));
    }
}

static void text_from_outside_cannot_break_the_line_or_the_encoding(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    err_set(&e, ERR_INVALID, "name \"%s\"", "a\r\nb\x1b\x7f\xff\xc3\u00e9");
    assert_string_equal(e.text, "name \"a  b  ??\u00e9\"");
}

static void arguments_may_point_into_the_error_itself(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    err_set(&e, ERR_IO, "inner");
    err_set(&e, ERR_INTERNAL, "outer (%s)", e.text);
    assert_string_equal(e.text, "outer (inner)");
    err_wrap(&e, "%s", e.text);
    assert_string_equal(e.text, "outer (inner): outer (inner)");
}

static void the_error_may_be_ignored(void **state)
{
    (void)state;
    errno = EIO;
    assert_int_equal(err_set(NULL, ERR_IO, "x"), -1);
    assert_int_equal(err_errno(NULL, "x"), -1);
    assert_int_equal(err_wrap(NULL, "x"), -1);
}

static void kinds_have_names_that_read_back(void **state)
{
    (void)state;
    for (int kind = ERR_NONE; kind <= ERR_INTERNAL; kind++) {
        const char *name = err_kind_name((enum err_kind)kind);
        assert_non_null(name);
        assert_int_equal(err_kind_parse(name), kind);
    }
    assert_string_equal(err_kind_name(ERR_UNAVAILABLE), "unavailable");
    assert_string_equal(err_kind_name((enum err_kind)99), "internal");
    assert_int_equal(err_kind_parse("what"), ERR_INTERNAL);
    assert_int_equal(err_kind_parse(""), ERR_INTERNAL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(setting_returns_minus_one_and_keeps_kind_and_text),
    cmocka_unit_test(wrapping_puts_context_in_front_and_keeps_the_kind),
    cmocka_unit_test(errno_text_follows_the_message_and_errno_survives),
    cmocka_unit_test(the_errno_is_kept_until_another_error_is_set),
    cmocka_unit_test(the_reason_is_kept_when_a_long_name_is_cut),
    cmocka_unit_test(a_long_text_is_cut_between_characters),
    cmocka_unit_test(text_from_outside_cannot_break_the_line_or_the_encoding),
    cmocka_unit_test(arguments_may_point_into_the_error_itself),
    cmocka_unit_test(the_error_may_be_ignored),
    cmocka_unit_test(kinds_have_names_that_read_back),
};
UNIT_TESTS(tests)
