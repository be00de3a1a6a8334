#include "config.h"

#include "fcgi/oauth/server/signing_key.h"

#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/store.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#define CURVE     "P-256"
#define PART_LEN  32 /* of a coordinate, and of each half of a signature */
#define DER_MAX   128
#define PEM_MAX   4096
#define TOKEN_MAX 16384

struct signing_key {
    EVP_PKEY *key;
    char x[B64_ENCODED_LEN(PART_LEN) + 1], y[B64_ENCODED_LEN(PART_LEN) + 1]; /* base64url */
    char kid[B64_ENCODED_LEN(CRYPTO_SHA256_LEN) + 1];                        /* RFC 7638 */
};

/* Empties OpenSSL's error queue, which would otherwise be taken for the next call's. */
static int failed(struct err *e, const char *what)
{
    ERR_clear_error();
    return err_set(e, ERR_INTERNAL, "%s failed in the crypto library", what);
}

/* ---- the key ---- */

static int coordinate(const struct signing_key *k, const char *name,
                      char out[B64_ENCODED_LEN(PART_LEN) + 1], struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(PART_LEN));
    uint8_t bytes[PART_LEN];
    BIGNUM *n = NULL;

    bool good = EVP_PKEY_get_bn_param(k->key, name, &n) == 1 &&
                BN_bn2binpad(n, bytes, sizeof bytes) == PART_LEN;
    BN_free(n);
    if (!good)
        return failed(e, "reading the public key");
    b64url_encode(bytes, sizeof bytes, &text);
    snprintf(out, B64_ENCODED_LEN(PART_LEN) + 1, "%s", buf_str(&text));
    return 0;
}

/* The name is a hash of the key, so that another key never has it. */
static int name_key(struct signing_key *k, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(CRYPTO_SHA256_LEN));
    uint8_t hash[CRYPTO_SHA256_LEN];

    if (coordinate(k, OSSL_PKEY_PARAM_EC_PUB_X, k->x, e) < 0 ||
        coordinate(k, OSSL_PKEY_PARAM_EC_PUB_Y, k->y, e) < 0)
        return -1;
    AUTO_FREE char *plain = mem_printf(
        "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"%s\",\"y\":\"%s\"}", k->x, k->y);
    if (crypto_sha256(plain, strlen(plain), hash, e) < 0)
        return -1;
    b64url_encode(hash, sizeof hash, &text);
    snprintf(k->kid, sizeof k->kid, "%s", buf_str(&text));
    return 0;
}

static int key_read(struct signing_key *k, const struct buf *pem, struct err *e)
{
    char group[32] = "";
    BIO *bio = BIO_new_mem_buf(buf_str(pem), (int)pem->len);

    k->key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    if (!k->key ||
        EVP_PKEY_get_utf8_string_param(k->key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group,
                                       NULL) != 1 ||
        strcmp(group, "prime256v1") != 0) {
        ERR_clear_error();
        return err_set(e, ERR_INVALID,
                       STORE_FOLDER "/" STORE_KEY
                                    " is no private key on P-256; remove it: clients then refresh "
                                    "their tokens");
    }
    return 0;
}

static int key_make(struct signing_key *k, int folder_fd, struct err *e)
{
    char *text = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    int rc = -1;

    k->key = EVP_EC_gen(CURVE);
    if (!bio || !k->key || PEM_write_bio_PrivateKey(bio, k->key, NULL, NULL, 0, NULL, NULL) != 1)
        failed(e, "making a key");
    else {
        long len = BIO_get_mem_data(bio, &text);
        rc = store_write(folder_fd, STORE_KEY, text, (size_t)len, e);
        explicit_bzero(text, (size_t)len);
    }
    BIO_free(bio);
    return rc;
}

static int write_public(const struct signing_key *k, int folder_fd, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(PEM_MAX);
    json_auto_t *set = json_pack("{s:[{s:s, s:s, s:s, s:s, s:s, s:s, s:s}]}", "keys", "kty", "EC",
                                 "crv", CURVE, "x", k->x, "y", k->y, "kid", k->kid, "alg", "ES256",
                                 "use", "sig");

    json_write(set, &text);
    return store_write(folder_fd, STORE_JWKS, buf_str(&text), text.len, e);
}

struct signing_key *signing_key_open(int folder_fd, struct err *e)
{
    AUTO_BUF struct buf pem = BUF_INIT(PEM_MAX);
    struct signing_key *k = mem_alloc(sizeof *k);
    struct err cause = ERR_INIT;
    AUTO_FD int lock = store_lock(folder_fd, e);
    int rc = lock < 0 ? -1 : 0;

    if (rc == 0 && store_read(folder_fd, STORE_KEY, &pem, &cause) < 0 &&
        cause.kind != ERR_NOT_FOUND) {
        *e = cause;
        rc = -1;
    }
    if (rc == 0)
        rc = pem.len > 0 ? key_read(k, &pem, e) : key_make(k, folder_fd, e);
    if (pem.len > 0)
        explicit_bzero(pem.data, pem.len);
    if (rc < 0 || name_key(k, e) < 0 || write_public(k, folder_fd, e) < 0) {
        signing_key_free(k);
        return NULL;
    }
    return k;
}

void signing_key_free(struct signing_key *k)
{
    if (k)
        EVP_PKEY_free(k->key);
    free(k);
}

/* ---- signatures: JOSE has both numbers one after the other (RFC 7518, 3.4), OpenSSL DER ---- */

static bool raw_from_der(const uint8_t *der, size_t len, uint8_t out[2 * PART_LEN])
{
    ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)len);
    bool good = sig && BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, PART_LEN) == PART_LEN &&
                BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + PART_LEN, PART_LEN) == PART_LEN;

    ECDSA_SIG_free(sig);
    return good;
}

/* Returns its length in out; 0: failed. */
static size_t der_from_raw(const uint8_t raw[2 * PART_LEN], uint8_t out[DER_MAX])
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, PART_LEN, NULL), *s = BN_bin2bn(raw + PART_LEN, PART_LEN, NULL);
    int len = 0;

    if (sig && r && s && ECDSA_SIG_set0(sig, r, s) == 1) {
        r = s = NULL; /* they are sig's */
        len = i2d_ECDSA_SIG(sig, NULL) <= DER_MAX ? i2d_ECDSA_SIG(sig, &out) : 0;
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return len > 0 ? (size_t)len : 0;
}

static void add_part(const json_t *value, struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(TOKEN_MAX);

    json_write(value, &text);
    b64url_encode(buf_str(&text), text.len, out);
}

int signing_key_sign(const struct signing_key *k, const json_t *claims, struct buf *out,
                     struct err *e)
{
    AUTO_BUF struct buf token = BUF_INIT(TOKEN_MAX);
    json_auto_t *head = json_pack("{s:s, s:s, s:s}", "typ", "at+jwt", "alg", "ES256", "kid",
                                  k->kid);
    uint8_t der[DER_MAX], raw[2 * PART_LEN];
    size_t len = sizeof der;

    add_part(head, &token);
    buf_add_char(&token, '.');
    add_part(claims, &token);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && buf_ok(&token) &&
                EVP_DigestSignInit_ex(ctx, NULL, "SHA256", NULL, NULL, k->key, NULL) == 1 &&
                EVP_DigestSign(ctx, der, &len, (const uint8_t *)token.data, token.len) == 1 &&
                raw_from_der(der, len, raw);
    EVP_MD_CTX_free(ctx);
    if (!good)
        return failed(e, "signing");
    buf_add_char(&token, '.');
    b64url_encode(raw, sizeof raw, &token);
    buf_add(out, token.data, token.len);
    return 0;
}

static bool signature_is_ours(const struct signing_key *k, const char *text, size_t len,
                              const uint8_t raw[2 * PART_LEN])
{
    uint8_t der[DER_MAX];
    size_t der_len = der_from_raw(raw, der);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx && der_len > 0 &&
                EVP_DigestVerifyInit_ex(ctx, NULL, "SHA256", NULL, NULL, k->key, NULL) == 1 &&
                EVP_DigestVerify(ctx, der, der_len, (const uint8_t *)text, len) == 1;

    EVP_MD_CTX_free(ctx);
    ERR_clear_error();
    return good;
}

json_t *signing_key_verify(const struct signing_key *k, const char *token)
{
    AUTO_BUF struct buf raw = BUF_INIT(2 * PART_LEN + 2), claims = BUF_INIT(TOKEN_MAX);
    const char *dot = strchr(token, '.'), *last = strrchr(token, '.');
    struct err none = ERR_INIT;

    if (!dot || last == dot || strlen(token) > TOKEN_MAX ||
        b64url_decode(last + 1, strlen(last + 1), &raw) < 0 || raw.len != 2 * PART_LEN ||
        !signature_is_ours(k, token, (size_t)(last - token), (const uint8_t *)raw.data) ||
        b64url_decode(dot + 1, (size_t)(last - dot - 1), &claims) < 0)
        return NULL;
    return json_parse(buf_str(&claims), claims.len, JSON_MAX_DEPTH, &none);
}
