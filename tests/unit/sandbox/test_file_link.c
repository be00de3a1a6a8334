#include "config.h"

#include "common/base/err.h"
#include "common/sandbox/links/file_link.h"
#include "tests/unit/unit.h"

#include <string.h>

#define SECRET "0123456789abcdef0123456789abcdef"
#define ID     "3bb1f3c740540f840792d8435f3af3135838c8cf59e886340b2946ee34d754c1"

static struct file_key key_of(const char *secret)
{
    struct file_key key;
    struct err e = ERR_INIT;
    assert_int_equal(file_key_derive(secret, &key, &e), 0);
    return key;
}

/* Computed with an independent HMAC and MD5 (python3's hmac and hashlib). */
static void a_token_is_what_nginx_computes(void **state)
{
    struct file_key key = key_of(SECRET);
    char token[FILE_TOKEN_LEN + 1];
    (void)state;

    assert_string_equal(key.text,
                        "fb5a0768b06f8204c63d22443e719455c1266df0e80f692e11c3cef4b85f2b23");
    file_token(&key, ID, token);
    assert_string_equal(token, "eFcgPSQt-yHzNhiRj8duXw");
    file_token(&key, "1700000000 " ID "/a b/\xc3\xa4.csv", token);
    assert_string_equal(token, "m_qcHb6eaPHYmoLczRJa8w");
}

static void a_token_is_good_for_one_text_and_one_key(void **state)
{
    struct file_keys key = {.now = key_of(SECRET)}, other = {.now = key_of(SECRET "x")};
    char token[FILE_TOKEN_LEN + 1];
    (void)state;

    file_token(&key.now, ID, token);
    assert_true(file_token_is(&key, ID, token, 0));
    assert_false(file_token_is(&other, ID, token, 0));
    assert_false(file_token_is(&key, ID "0", token, 0));
    assert_false(file_token_is(&key, ID, "", 0));
    assert_false(file_token_is(&key, ID, "AAAAAAAAAAAAAAAAAAAAAA", 0));
    for (size_t i = 0; i < FILE_TOKEN_LEN; i++) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_false(file_token_is(&key, ID, token, 0));
        token[i] = was;
    }
}

static void a_token_of_the_secret_before_ends_with_its_time(void **state)
{
    struct file_keys keys = {key_of(SECRET "x"), key_of(SECRET), 100};
    char token[FILE_TOKEN_LEN + 1];
    (void)state;

    file_token(&keys.old, ID, token);
    assert_true(file_token_is(&keys, ID, token, 99));
    assert_false(file_token_is(&keys, ID, token, 100));
    assert_false(file_token_is(&keys, ID "0", token, 99));
    file_token(&keys.now, ID, token);
    assert_true(file_token_is(&keys, ID, token, 100));
}

/* '+' and '/' have no place in a path. */
static void tokens_need_no_encoding(void **state)
{
    struct file_key key = key_of(SECRET);
    char token[FILE_TOKEN_LEN + 1], seen[2] = "";
    (void)state;

    for (char text[2] = "a"; text[0] <= 'z'; text[0]++) {
        file_token(&key, text, token);
        assert_int_equal(strlen(token), FILE_TOKEN_LEN);
        assert_null(strpbrk(token, "+/="));
        seen[0] |= strchr(token, '-') != NULL;
        seen[1] |= strchr(token, '_') != NULL;
    }
    assert_true(seen[0] && seen[1]);
}

#define PATH FILE_FOLDER ID "/eFcgPSQt-yHzNhiRj8duXw/"

/* ERR_NONE, or why it is refused. */
static enum err_kind judge(const char *uri, bool with_expiry, int64_t now)
{
    struct file_keys key = {.now = key_of(SECRET)};
    AUTO_FILE_URL struct file_url u = {.path = NULL};
    struct err e = ERR_INIT;

    if (file_url_parse(uri, with_expiry, &u, &e) == 0)
        file_url_check(&key, &u, now, &e);
    return e.kind;
}

static void a_url_is_taken_apart(void **state)
{
    AUTO_FILE_URL struct file_url u = {.path = NULL};
    struct err e = ERR_INIT;
    (void)state;

    assert_int_equal(file_url_parse("/some/prefix" PATH "a%20b/%C3%A4.csv?x=/../", false, &u, &e),
                     0);
    assert_string_equal(u.id, ID);
    assert_string_equal(u.token, "eFcgPSQt-yHzNhiRj8duXw");
    assert_string_equal(u.path, "a b/\xc3\xa4.csv");
    assert_int_equal(u.expires, 0);
}

static void only_the_plain_form_of_a_url_is_good(void **state)
{
    static const char *const good[] = {PATH "a",   PATH "a/b",         PATH ".a",    PATH "..a/...",
                                       PATH "%25", PATH "a?expires=1", "/x" PATH "a"};
    static const char *const bad[] = {
        "",
        "/",
        FILE_FOLDER,
        FILE_FOLDER ID,
        FILE_FOLDER ID "/",
        FILE_FOLDER ID "/a",
        FILE_FOLDER ".state/" ID ".json",
        PATH,
        PATH "a/",
        PATH "/a",
        PATH "a//b",
        PATH ".",
        PATH "..",
        PATH "./a",
        PATH "a/../b",
        PATH "%2e%2e/a",
        PATH "a%2Eb",
        PATH "a%2fb",
        PATH "a%00",
        PATH "a%",
        PATH "a%zz",
        PATH "a#b",
        PATH "?a",
        "/x?" PATH "a",
        FILE_FOLDER "3BB1f3c740540f840792d8435f3af3135838c8cf59e886340b2946ee34d754c1/"
                    "eFcgPSQt-yHzNhiRj8duXw/a",
        FILE_FOLDER ID "0/eFcgPSQt-yHzNhiRj8duXw/a",
        FILE_FOLDER ID "/eFcgPSQt-yHzNhiRj8duXx/a",
        FILE_FOLDER ID "/eFcgPSQt-yHzNhiRj8duX/a",
        FILE_FOLDER ID "%2feFcgPSQt-yHzNhiRj8duXw/a",
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (judge(good[i], false, 0) != ERR_NONE)
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (judge(bad[i], false, 0) != ERR_NOT_FOUND)
            fail_msg("%s is not ERR_NOT_FOUND", bad[i]);
}

#define SIGNED FILE_FOLDER ID "/a%20b/%C3%A4.csv?expires="
#define RIGHT  "1700000000&sig=m_qcHb6eaPHYmoLczRJa8w"

static void a_signature_is_good_for_one_path_until_its_time(void **state)
{
    static const char *const bad[] = {
        SIGNED "1700000001&sig=m_qcHb6eaPHYmoLczRJa8w",
        SIGNED "01700000000&sig=m_qcHb6eaPHYmoLczRJa8w",
        SIGNED "1700000000&sig=m_qcHb6eaPHYmoLczRJa8wA",
        SIGNED "1700000000&sig=m_qcHb6eaPHYmoLczRJa8",
        SIGNED "1700000000",
        SIGNED "1700000000000000000&sig=m_qcHb6eaPHYmoLczRJa8w",
        SIGNED RIGHT "&x=1",
        FILE_FOLDER ID "/a%20b/%C3%A4.csv",
        FILE_FOLDER ID "/a%20b/x.csv?expires=" RIGHT,
        PATH "a",
    };
    (void)state;

    assert_int_equal(judge(SIGNED RIGHT, true, 1700000000), ERR_NONE);
    assert_int_equal(judge(SIGNED RIGHT, true, 1700000001), ERR_DENIED);
    assert_int_equal(judge(SIGNED RIGHT, false, 0), ERR_NOT_FOUND);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (judge(bad[i], true, 0) != ERR_DENIED)
            fail_msg("%s is not ERR_DENIED", bad[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_token_is_what_nginx_computes),
    cmocka_unit_test(a_token_is_good_for_one_text_and_one_key),
    cmocka_unit_test(a_token_of_the_secret_before_ends_with_its_time),
    cmocka_unit_test(tokens_need_no_encoding),
    cmocka_unit_test(a_url_is_taken_apart),
    cmocka_unit_test(only_the_plain_form_of_a_url_is_good),
    cmocka_unit_test(a_signature_is_good_for_one_path_until_its_time),
};
UNIT_TESTS(tests)
