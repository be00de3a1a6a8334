#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/err.h"
#include "common/sandbox/links/file_link.h"

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
    struct file_key key = key_of(SECRET), other = key_of(SECRET "x");
    char token[FILE_TOKEN_LEN + 1];
    (void)state;

    file_token(&key, ID, token);
    assert_true(file_token_is(&key, ID, token));
    assert_false(file_token_is(&other, ID, token));
    assert_false(file_token_is(&key, ID "0", token));
    assert_false(file_token_is(&key, ID, ""));
    assert_false(file_token_is(&key, ID, "AAAAAAAAAAAAAAAAAAAAAA"));
    for (size_t i = 0; i < FILE_TOKEN_LEN; i++) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_false(file_token_is(&key, ID, token));
        token[i] = was;
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_what_nginx_computes),
        cmocka_unit_test(a_token_is_good_for_one_text_and_one_key),
        cmocka_unit_test(tokens_need_no_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
