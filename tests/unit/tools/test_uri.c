/* sandbox:// URIs: how they are written, what of others' writing is understood. */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/files/uri.h"
#include "tests/unit/unit.h"

static void are_written_and_read_back(void **state)
{
    static const struct {
        const char *conversation, *name, *uri;
    } cases[] = {
        {"talk", "a.csv", "sandbox://talk/a.csv"},
        {"a b/c", "d e/f?g#h.csv", "sandbox://a%20b%2Fc/d%20e/f%3Fg%23h.csv"},
        {"Ünï", "gr\xc3\xbc\xc3\x9f.txt", "sandbox://%C3%9Cn%C3%AF/gr%C3%BC%C3%9F.txt"},
        {"talk", "a\nb\x1b.csv", "sandbox://talk/a%0Ab%1B.csv"},
        {"..", "100%.txt", "sandbox://../100%25.txt"},
        {"x", "a+b&c=d,(e)'!*;:@$.txt",
         "sandbox://x/a%2Bb%26c%3Dd%2C%28e%29%27%21%2A%3B%3A%40%24.txt"},
    };
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *uri = uri_of_file(cases[i].conversation, cases[i].name);
        AUTO_URI_FILE struct uri_file f = {0};

        assert_string_equal(uri, cases[i].uri);
        assert_works(uri_parse(uri, &f, &e), e);
        assert_string_equal(f.conversation, cases[i].conversation);
        assert_string_equal(f.name, cases[i].name);
        assert_true(uri_is_ours(uri));
    }
}

static void other_spellings_are_understood_but_not_ours(void **state)
{
    static const char *const uris[] = {"sandbox://talk/a+b.csv", "sandbox://talk/a%2bb.csv",
                                       "sandbox://t%61lk/a%2Bb.csv"};
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
        AUTO_URI_FILE struct uri_file f = {0};

        assert_works(uri_parse(uris[i], &f, &e), e);
        assert_string_equal(f.conversation, "talk");
        assert_string_equal(f.name, "a+b.csv");
        assert_false(uri_is_ours(uris[i]));
    }
}

static void what_names_no_file_is_not_found(void **state)
{
    static const char *const uris[] = {
        "",
        "sandbox:",
        "sandbox://",
        "sandbox://talk",
        "sandbox://talk/",
        "sandbox:///a.csv",
        "file:///etc/passwd",
        "https://x.test/files/a",
        "sandbox://talk/../other/a",
        "sandbox://talk/a/../../b",
        "sandbox://talk/%2e%2e/a",
        "sandbox://talk/..%2fa",
        "sandbox://talk/%252e%252e/a",
        "sandbox://talk//etc/passwd",
        "sandbox://talk/%2Fetc/passwd",
        "sandbox://talk/a%00.csv",
        "sandbox://t%00k/a.csv",
        "sandbox://talk/a%",
        "sandbox://talk/a%4",
        "sandbox://talk/a%zz",
        "sandbox://talk/%ff",
        "sandbox://%ff/a",
        "sandbox://talk/a?b",
        "sandbox://talk/a#b",
        "sandbox://t?k/a",
    };
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
        AUTO_URI_FILE struct uri_file f = {0};

        assert_fails(uri_parse(uris[i], &f, &e), ERR_NOT_FOUND, e);
        assert_false(uri_is_ours(uris[i]));
    }
}

static void lengths_are_bounded(void **state)
{
    AUTO_FREE char *conversation = mem_alloc(258);
    AUTO_FREE char *huge = mem_alloc(100001);
    struct err e = ERR_INIT;

    (void)state;
    memset(conversation, 'c', 256);
    AUTO_FREE char *longest = mem_printf("sandbox://%s/a", conversation);
    conversation[256] = 'c';
    AUTO_FREE char *over = mem_printf("sandbox://%s/a", conversation);
    memset(huge, 'a', 100000);
    AUTO_FREE char *name = mem_printf("sandbox://c/%s", huge);
    AUTO_URI_FILE struct uri_file f = {0};
    assert_works(uri_parse(longest, &f, &e), e);
    uri_file_clear(&f);
    assert_fails(uri_parse(over, &f, &e), ERR_NOT_FOUND, e);
    assert_fails(uri_parse(name, &f, &e), ERR_NOT_FOUND, e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(are_written_and_read_back),
    cmocka_unit_test(other_spellings_are_understood_but_not_ours),
    cmocka_unit_test(what_names_no_file_is_not_found),
    cmocka_unit_test(lengths_are_bounded),
};
UNIT_TESTS(tests)
