/* Random bytes, digests and comparisons, by OpenSSL. All lengths are bytes. */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRYPTO_SHA256_LEN 32
#define CRYPTO_MD5_LEN    16
#define CRYPTO_HEX_LEN(n) (2 * (n) + 1)

struct crypto_part {
    const void *data;
    size_t len;
};

/* HMAC-SHA-256 over the parts, each after its length (8 bytes, big-endian), so that no two lists
 * collide. */
int crypto_hmac(const void *key, size_t key_len, const struct crypto_part *parts, size_t n,
                uint8_t out[CRYPTO_SHA256_LEN], struct err *e);

int crypto_sha256(const void *data, size_t len, uint8_t out[CRYPTO_SHA256_LEN], struct err *e);

/* For what nginx must check, which has nothing else. Fails where the library refuses it (FIPS). */
int crypto_md5(const void *data, size_t len, uint8_t out[CRYPTO_MD5_LEN], struct err *e);

/* Compares the hashes of both in constant time; the time depends on the lengths only. */
bool crypto_equal(const void *a, size_t a_len, const void *b, size_t b_len);

/* Lower-case hex with a NUL; out holds CRYPTO_HEX_LEN(len). */
void crypto_hex(const uint8_t *data, size_t len, char *out);

/* The first n bytes of the text's SHA-256 as lower-case hex: a short name for it in a file's name.
 * Ends the process when the library fails. */
void crypto_tag(const char *text, size_t n, char *out);

/* n random bytes as lower-case hex; a random number. They end the process when the library has no
 * random bytes. */
void crypto_random_hex(size_t n, char *out);
uint32_t crypto_random_u32(void);
