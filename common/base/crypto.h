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

/* The SHA-256 of what comes in pieces. NULL: the library fails. */
struct crypto_hash;
struct crypto_hash *crypto_hash_new(struct err *e);
int crypto_hash_add(struct crypto_hash *h, const void *data, size_t len, struct err *e);
/* The hash of what was added by now; more may be added. */
int crypto_hash_get(const struct crypto_hash *h, uint8_t out[CRYPTO_SHA256_LEN], struct err *e);
/* h may be NULL. */
void crypto_hash_free(struct crypto_hash *h);

/* For what nginx must check, which has nothing else. Fails where the library refuses it (FIPS). */
int crypto_md5(const void *data, size_t len, uint8_t out[CRYPTO_MD5_LEN], struct err *e);

#define CRYPTO_ED25519_KEY_LEN 32
#define CRYPTO_ED25519_SIG_LEN 64

/* Is it the signature of data by the public key (Ed25519, RFC 8032)? */
bool crypto_ed25519_verify(const uint8_t key[CRYPTO_ED25519_KEY_LEN], const void *data, size_t len,
                           const uint8_t signature[CRYPTO_ED25519_SIG_LEN]);

/* After a failure of another library that uses OpenSSL: empties the error queue, which would
 * otherwise be taken for the next call's. */
void crypto_forget_errors(void);

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
