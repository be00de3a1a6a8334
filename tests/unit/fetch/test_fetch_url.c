#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/fetch/fetch.h"
#include "tests/unit/unit.h"

#include <string.h>

static void https_urls_are_taken(void **state)
{
    static const char *const urls[] = {
        "https://example.org",
        "HTTPS://example.org/a%20b?x=1&y=2",
        "https://[2606:4700::1111]:443/x",
        "https://127.0.0.1/x", /* the guard's to refuse */
        "https://0x7f.1/x",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct err e = ERR_INIT;
        if (fetch_check_url(urls[i], &e) < 0)
            fail_msg("%s: %s", urls[i], e.text);
    }
}

/* The message never repeats the URL, which may hold keys. */
static void others_are_refused_by_name_but_not_repeated(void **state)
{
    static const char *const urls[] = {
        "",
        "/secret",
        "secret",
        "http://example.org/secret",
        "file:///secret",
        "ftp://example.org/secret",
        "gopher://example.org/secret",
        "https://",
        "https:///secret",
        "https://user@example.org/secret",
        "https://user:secret@example.org/",
        "https://example.org/secret x",
        "https://example.org/secret\n",
        "https://example.org\r\nHost: secret",
        "https://example.org:99999/secret",
        "https://exa mple.org/secret",
        " https://example.org/secret",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct err e = ERR_INIT;
        if (fetch_check_url(urls[i], &e) == 0)
            fail_msg("%s is taken", urls[i]);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_non_null(strstr(e.text, "url"));
        assert_null(strstr(e.text, "secret"));
    }
    AUTO_FREE char *longest = mem_alloc(FETCH_URL_MAX + 2);
    struct err e = ERR_INIT;
    memset(longest, 'a', FETCH_URL_MAX);
    memcpy(longest, "https://a/", 10);
    assert_int_equal(fetch_check_url(longest, &e), 0);
    longest[FETCH_URL_MAX] = 'a';
    assert_int_equal(fetch_check_url(longest, &e), -1);
}

static void the_last_part_of_the_path_is_the_name(void **state)
{
    static const struct {
        const char *url, *name;
    } cases[] = {
        {"https://x.test/a.csv", "a.csv"},     {"https://x.test/d/a%20b.csv?x=/y#z/", "a b.csv"},
        {"https://x.test/%C3%A4", "\xc3\xa4"}, {"https://x.test/100%", "100%"},
        {"https://x.test/%zz", "%zz"},         {"https://x.test/a%2", "a%2"},
    };
    static const char *const none[] = {
        "https://x.test",        "https://x.test/",       "https://x.test/a/",  "https://x.test/..",
        "https://x.test/%2e%2e", "https://x.test/a%2Fb",  "https://x.test/%00", "https://x.test/?a",
        "https://x.test/.",      "https://x.test?/a.csv",
    };
    char name[FETCH_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(fetch_name_of_url(cases[i].url, name), 0);
        assert_string_equal(name, cases[i].name);
    }
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        if (fetch_name_of_url(none[i], name) == 0)
            fail_msg("%s: %s", none[i], name);
        assert_string_equal(name, "");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(https_urls_are_taken),
    cmocka_unit_test(others_are_refused_by_name_but_not_repeated),
    cmocka_unit_test(the_last_part_of_the_path_is_the_name),
};
UNIT_TESTS(tests)
