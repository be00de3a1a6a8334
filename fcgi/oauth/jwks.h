/*
 * The public keys of an authorization server (JWK Set, RFC 7517). What a key is decides which
 * algorithm it checks, never the token: RSA RS256, P-256 ES256, Ed25519 EdDSA. libcjose checks
 * the first two; it knows no Ed25519, which OpenSSL checks.
 */
#pragma once

#include "common/base/crypto.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JWKS_TEXT_MAX (256u * 1024)
#define JWKS_KEYS_MAX 64
#define JWK_KID_MAX   255

enum jwt_alg { JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGS };

/* The algorithm that a header names; JWT_ALGS: none of these. */
enum jwt_alg jwt_alg_named(const char *name);

struct jwk {
    char kid[JWK_KID_MAX + 1]; /* "": it has none */
    enum jwt_alg alg;
    void *key; /* of libcjose; NULL with JWT_EDDSA */
    uint8_t ed25519[CRYPTO_ED25519_KEY_LEN];
};

/* Zeroed: no keys. */
struct jwks {
    struct jwk *items;
    size_t n;
};

/*
 * Reads a set. Keys that are not for checking signatures, private ones, and those of other kinds or
 * sizes (RSA: 2048 to 8192 bits) are left out; a set with none left is an error, as one with
 * more than JWKS_KEYS_MAX. *out is changed on success only.
 */
int jwks_parse(const char *text, size_t len, struct jwks *out, struct err *e);
void jwks_clear(struct jwks *keys);

/* The key with that name and algorithm. Without a name (NULL) the only one of that algorithm. NULL:
 * there is none. */
const struct jwk *jwks_find(const struct jwks *keys, const char *kid, enum jwt_alg alg);

/* Has the key signed the token? jwt_read must have taken it: libcjose ends the process at text that
 * is no base64url. */
bool jwk_verify(const struct jwk *key, const char *token, size_t len);
