#include "config.h"

#include "common/base/crypto.h"
#include "tests/unit/unit.h"

static void expect_hex(const uint8_t *digest, const char *expected)
{
    char hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];
    crypto_hex(digest, CRYPTO_SHA256_LEN, hex);
    assert_string_equal(hex, expected);
}

static void sha256_gives_the_published_digests(void **state)
{
    (void)state;
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct err e;
    assert_works(crypto_sha256("abc", 3, digest, &e), e);
    expect_hex(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_works(crypto_sha256(NULL, 0, digest, &e), e);
    expect_hex(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void hmac_is_over_length_and_content_of_each_part(void **state)
{
    (void)state;
    /* From: printf '\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\1c' | openssl dgst -sha256 -hmac key */
    const struct crypto_part parts[] = {{"ab", 2}, {"c", 1}};
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct err e;
    assert_works(crypto_hmac("key", 3, parts, 2, digest, &e), e);
    expect_hex(digest, "6792a685701881d31208bf28ad5cbe35d0ea5cc4f15c4689af94fe1602c421e3");
}

static void lists_that_join_to_the_same_text_differ(void **state)
{
    (void)state;
    const struct crypto_part lists[][2] = {{{"ab", 2}, {"c", 1}},
                                           {{"a", 1}, {"bc", 2}},
                                           {{"abc", 3}, {"", 0}},
                                           {{NULL, 0}, {"abc", 3}}};
    uint8_t digests[ARRAY_LEN(lists)][CRYPTO_SHA256_LEN];
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        assert_works(crypto_hmac("key", 3, lists[i], 2, digests[i], &e), e);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digests[i], digests[k], CRYPTO_SHA256_LEN);
    }
}

static void the_key_changes_the_result_and_may_be_empty(void **state)
{
    (void)state;
    const struct crypto_part part = {"x", 1};
    uint8_t one[CRYPTO_SHA256_LEN], other[CRYPTO_SHA256_LEN], empty[CRYPTO_SHA256_LEN];
    struct err e;
    assert_works(crypto_hmac("key1", 4, &part, 1, one, &e), e);
    assert_works(crypto_hmac("key2", 4, &part, 1, other, &e), e);
    assert_works(crypto_hmac(NULL, 0, &part, 1, empty, &e), e);
    assert_memory_not_equal(one, other, sizeof one);
    assert_memory_not_equal(one, empty, sizeof one);
}

static void equal_means_same_length_and_content(void **state)
{
    (void)state;
    assert_true(crypto_equal("token", 5, "token", 5));
    assert_true(crypto_equal("", 0, NULL, 0));
    assert_false(crypto_equal("token", 5, "tokem", 5));
    assert_false(crypto_equal("token", 5, "toke", 4));
    assert_false(crypto_equal("token", 5, "token\0", 6));
    assert_false(crypto_equal("token", 5, "", 0));
}

static void random_bytes_do_not_repeat(void **state)
{
    (void)state;
    char a[CRYPTO_HEX_LEN(32)], b[CRYPTO_HEX_LEN(32)];
    crypto_random_hex(32, a);
    crypto_random_hex(32, b);
    assert_string_not_equal(a, b);
}

static void random_hex_has_two_digits_a_byte(void **state)
{
    (void)state;
    char hex[CRYPTO_HEX_LEN(77)], none[CRYPTO_HEX_LEN(0)];
    crypto_random_hex(77, hex);
    assert_int_equal(strlen(hex), 154);
    assert_int_equal(strspn(hex, "0123456789abcdef"), 154);
    crypto_random_hex(0, none);
    assert_string_equal(none, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sha256_gives_the_published_digests),
    cmocka_unit_test(hmac_is_over_length_and_content_of_each_part),
    cmocka_unit_test(lists_that_join_to_the_same_text_differ),
    cmocka_unit_test(the_key_changes_the_result_and_may_be_empty),
    cmocka_unit_test(equal_means_same_length_and_content),
    cmocka_unit_test(random_bytes_do_not_repeat),
    cmocka_unit_test(random_hex_has_two_digits_a_byte),
};
UNIT_TESTS(tests)
