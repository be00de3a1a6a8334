#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/links/link.h"
#include "tests/unit/unit.h"

#include <string.h>

#define SECRET "0123456789abcdef0123456789abcdef"
#define BASE   "https://example.test/box"
#define NOW    1700000000

static struct link_key key_of(const char *secret)
{
    struct link_key key;
    struct err e = ERR_INIT;
    assert_int_equal(link_key_derive(secret, &key, &e), 0);
    return key;
}

static enum err_kind verdict(const char *subject, enum link_kind kind, const char *uri, int64_t now)
{
    struct link_keys keys = {.now = key_of(SECRET)};
    struct err e = ERR_INIT;
    int rc = link_verify(&keys, kind, subject, uri, now, &e);
    assert_int_equal(rc, e.kind == ERR_NONE ? 0 : -1);
    return e.kind;
}

static char *made(enum link_kind kind, const char *subject)
{
    struct link_key key = key_of(SECRET);
    return link_url(&key, BASE, kind, subject, NOW + 60);
}

static void a_link_says_what_it_is_for(void **state)
{
    (void)state;
    AUTO_FREE char *url = made(LINK_ARCHIVE, "ab cd/\xc3\xa4.tar.gz");
    assert_non_null(strstr(url, BASE "/archives/ab%20cd/%C3%A4.tar.gz?expires=1700000060&sig="));
    AUTO_FREE char *subject = link_subject(url, LINK_ARCHIVE);
    assert_string_equal(subject, "ab cd/\xc3\xa4.tar.gz");
    assert_int_equal(verdict(subject, LINK_ARCHIVE, url, NOW), ERR_NONE);
    assert_null(link_subject(url, LINK_UPLOAD));
}

static void it_ends_when_it_says(void **state)
{
    (void)state;
    AUTO_FREE char *url = made(LINK_UPLOAD, "abc");
    assert_int_equal(verdict("abc", LINK_UPLOAD, url, NOW + 59), ERR_NONE);
    assert_int_equal(verdict("abc", LINK_UPLOAD, url, NOW + 60), ERR_TIMEOUT);
}

static void it_is_good_for_nothing_else(void **state)
{
    (void)state;
    AUTO_FREE char *url = made(LINK_ARCHIVE, "abc/x");
    assert_int_equal(verdict("abc/y", LINK_ARCHIVE, url, NOW), ERR_DENIED);
    assert_int_equal(verdict("abc/x", LINK_UPLOAD, url, NOW), ERR_DENIED);
    struct link_keys other = {.now = key_of("another0123456789another0123456789")};
    struct err e = ERR_INIT;
    assert_int_equal(link_verify(&other, LINK_ARCHIVE, "abc/x", url, NOW, &e), -1);
    assert_int_equal(e.kind, ERR_DENIED);
}

static void a_link_of_the_secret_before_ends_with_its_time(void **state)
{
    (void)state;
    AUTO_FREE char *url = made(LINK_ARCHIVE, "abc/x");
    struct link_keys keys = {key_of("another0123456789another0123456789"), key_of(SECRET), NOW + 5};
    struct err e = ERR_INIT;
    assert_int_equal(link_verify(&keys, LINK_ARCHIVE, "abc/x", url, NOW + 4, &e), 0);
    assert_int_equal(link_verify(&keys, LINK_ARCHIVE, "abc/y", url, NOW + 4, &e), -1);
    e = ERR_INIT;
    assert_int_equal(link_verify(&keys, LINK_ARCHIVE, "abc/x", url, NOW + 5, &e), -1);
    assert_int_equal(e.kind, ERR_DENIED);
    AUTO_FREE char *fresh = link_url(&keys.now, BASE, LINK_ARCHIVE, "abc/x", NOW + 60);
    assert_int_equal(link_verify(&keys, LINK_ARCHIVE, "abc/x", fresh, NOW + 5, &e), 0);
}

/* Every single character that is changed anywhere in the query is noticed. */
static void an_altered_query_is_refused(void **state)
{
    (void)state;
    AUTO_FREE char *url = made(LINK_ARCHIVE, "abc/x");
    for (char *at = strchr(url, '?'); *at; at++) {
        char was = *at;
        *at = was == '1' ? '2' : '1';
        assert_int_equal(verdict("abc/x", LINK_ARCHIVE, url, NOW), ERR_DENIED);
        *at = was;
    }
    assert_int_equal(verdict("abc/x", LINK_ARCHIVE, url, NOW), ERR_NONE);
}

static void a_query_of_another_form_is_refused(void **state)
{
    static const struct {
        const char *before, *behind;
    } around[] = {{"?", "&x=1"}, {"?", "&"}, {"?", "#f"}, {"?x=1&", ""},
                  {"?&", ""},    {"??", ""}, {"?", " "}};
    (void)state;
    AUTO_FREE char *url = made(LINK_ARCHIVE, "abc/x");
    const char *query = strchr(url, '?') + 1;
    for (size_t i = 0; i < ARRAY_LEN(around); i++) {
        AUTO_FREE char *uri = mem_printf("/archives/abc/x%s%s%s", around[i].before, query,
                                         around[i].behind);
        assert_int_equal(verdict("abc/x", LINK_ARCHIVE, uri, NOW), ERR_DENIED);
    }
    AUTO_FREE char *zero = mem_printf("/f?expires=0%s", strchr(query, '=') + 1);
    assert_int_equal(verdict("abc/x", LINK_ARCHIVE, zero, NOW), ERR_DENIED);
    assert_int_equal(verdict("abc/x", LINK_ARCHIVE, "/archives/abc/x", NOW), ERR_DENIED);
    assert_int_equal(verdict("abc/x", LINK_ARCHIVE, "/archives/abc/x?", NOW), ERR_DENIED);
}

static void odd_paths_have_no_subject(void **state)
{
    static const char *const odd[] = {
        "",
        "/",
        "/uploads",
        "/uploads/",
        "/uploads//a",
        "/uploads/a//b",
        "/uploads/a/",
        "/uploads/.",
        "/uploads/../a",
        "/uploads/a/..",
        "/uploads/%2e%2e/a",
        "/uploads/a%2fb",
        "/uploads/a%2Fb",
        "/uploads/a%00",
        "/uploads/a%",
        "/uploads/a%4",
        "/uploads/a%zz",
        "/x?/uploads/a",
        "/x#/uploads/a",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        assert_null(link_subject(odd[i], LINK_UPLOAD));
    AUTO_FREE char *plain = link_subject("/below/uploads/%61b/c%20%0A?x", LINK_UPLOAD);
    assert_string_equal(plain, "ab/c \n");
}

static void a_subject_is_bounded(void **state)
{
    (void)state;
    AUTO_FREE char *uri = mem_alloc(LINK_SUBJECT_MAX + 20);
    memcpy(uri, "/archives/", 10);
    memset(uri + 10, 'a', LINK_SUBJECT_MAX);
    AUTO_FREE char *longest = link_subject(uri, LINK_ARCHIVE);
    assert_non_null(longest);
    uri[10 + LINK_SUBJECT_MAX] = 'a';
    assert_null(link_subject(uri, LINK_ARCHIVE));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_link_says_what_it_is_for),
    cmocka_unit_test(it_ends_when_it_says),
    cmocka_unit_test(it_is_good_for_nothing_else),
    cmocka_unit_test(a_link_of_the_secret_before_ends_with_its_time),
    cmocka_unit_test(an_altered_query_is_refused),
    cmocka_unit_test(a_query_of_another_form_is_refused),
    cmocka_unit_test(odd_paths_have_no_subject),
    cmocka_unit_test(a_subject_is_bounded),
};
UNIT_TESTS(tests)
