/* Keys and tokens for tests: an issuer's private side, by OpenSSL alone. */
#pragma once

#include "common/base/b64.h"
#include "fcgi/oauth/jwks.h"
#include "tests/unit/unit.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#define SIGNED_MAX 20000

static inline void add_b64url(struct buf *out, const void *data, size_t len)
{
    AUTO_BUF struct buf text = BUF_INIT(SIGNED_MAX);

    b64_encode(data, len, &text);
    for (const char *c = buf_str(&text); *c && *c != '='; c++)
        buf_add_char(out, (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c));
}

static inline EVP_PKEY *signer_key(enum jwt_alg alg)
{
    EVP_PKEY *key = alg == JWT_RS256   ? EVP_RSA_gen(2048)
                    : alg == JWT_ES256 ? EVP_EC_gen("P-256")
                                       : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    assert_non_null(key);
    return key;
}

static inline void add_number(struct buf *out, const EVP_PKEY *key, const char *name,
                              const char *param, int len)
{
    unsigned char bytes[1024];
    BIGNUM *number = NULL;

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &number), 1);
    len = len ? len : BN_num_bytes(number);
    assert_int_equal(BN_bn2binpad(number, bytes, len), len);
    BN_free(number);
    buf_addf(out, ",\"%s\":\"", name);
    add_b64url(out, bytes, (size_t)len);
    buf_add_str(out, "\"");
}

/* The public key as a JWK with these further members ("", or beginning with a comma). */
static inline void signer_jwk(const EVP_PKEY *key, enum jwt_alg alg, const char *kid,
                              const char *more, struct buf *out)
{
    static const char *const kinds[] = {"RSA", "EC\",\"crv\":\"P-256", "OKP\",\"crv\":\"Ed25519"};
    unsigned char raw[CRYPTO_ED25519_KEY_LEN];
    size_t len = sizeof raw;

    buf_addf(out, "{\"kty\":\"%s\",\"kid\":\"%s\"%s", kinds[alg], kid, more);
    if (alg == JWT_RS256) {
        add_number(out, key, "n", OSSL_PKEY_PARAM_RSA_N, 0);
        add_number(out, key, "e", OSSL_PKEY_PARAM_RSA_E, 0);
    } else if (alg == JWT_ES256) {
        add_number(out, key, "x", OSSL_PKEY_PARAM_EC_PUB_X, 32);
        add_number(out, key, "y", OSSL_PKEY_PARAM_EC_PUB_Y, 32);
    } else {
        assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &len), 1);
        buf_add_str(out, ",\"x\":\"");
        add_b64url(out, raw, len);
        buf_add_str(out, "\"");
    }
    buf_add_str(out, "}");
}

static inline size_t to_concat(const unsigned char *der, size_t len, unsigned char out[64])
{
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)len);

    assert_non_null(sig);
    BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + 32, 32);
    ECDSA_SIG_free(sig);
    return 64;
}

/* Signs exactly these texts. */
static inline void signer_sign(EVP_PKEY *key, enum jwt_alg alg, const char *header,
                               const char *claims, struct buf *out)
{
    unsigned char bytes[1024], pair[64];
    size_t len = sizeof bytes;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    buf_reset(out);
    add_b64url(out, header, strlen(header));
    buf_add_str(out, ".");
    add_b64url(out, claims, strlen(claims));
    assert_int_equal(
        EVP_DigestSignInit(ctx, NULL, alg == JWT_EDDSA ? NULL : EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(ctx, bytes, &len, (const unsigned char *)out->data, out->len),
                     1);
    EVP_MD_CTX_free(ctx);
    buf_add_str(out, ".");
    if (alg == JWT_ES256)
        add_b64url(out, pair, to_concat(bytes, len, pair));
    else
        add_b64url(out, bytes, len);
}
