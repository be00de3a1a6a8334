#include "config.h"

#include "common/base/crypto.h"

#include "common/base/log.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>
#include <unistd.h>

/* Empties OpenSSL's error queue, which would otherwise be taken for the next call's. */
static int failed(struct err *e, const char *what)
{
    ERR_clear_error();
    return err_set(e, ERR_INTERNAL, "%s failed in the crypto library", what);
}

static bool update_part(EVP_MAC_CTX *ctx, const struct crypto_part *part)
{
    uint8_t prefix[8];
    uint64_t len = part->len;
    for (int i = 7; i >= 0; i--, len >>= 8)
        prefix[i] = (uint8_t)len;
    return EVP_MAC_update(ctx, prefix, sizeof prefix) == 1 &&
           (part->len == 0 || EVP_MAC_update(ctx, part->data, part->len) == 1);
}

int crypto_hmac(const void *key, size_t key_len, const struct crypto_part *parts, size_t n,
                uint8_t out[CRYPTO_SHA256_LEN], struct err *e)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                           OSSL_PARAM_construct_end()};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    /* To OpenSSL, a NULL key means the key of the last call. */
    bool good = ctx && EVP_MAC_init(ctx, key_len ? key : "", key_len, params) == 1;
    for (size_t i = 0; good && i < n; i++)
        good = update_part(ctx, &parts[i]);
    size_t len = 0;
    good = good && EVP_MAC_final(ctx, out, &len, CRYPTO_SHA256_LEN) == 1;
    EVP_MAC_CTX_free(ctx);
    EVP_MAC_free(mac);
    return good && len == CRYPTO_SHA256_LEN ? 0 : failed(e, "HMAC");
}

static int digest(const char *name, const void *data, size_t len, uint8_t *out, size_t want,
                  struct err *e)
{
    size_t out_len = 0;
    if (EVP_Q_digest(NULL, name, NULL, len ? data : "", len, out, &out_len) != 1 || out_len != want)
        return failed(e, name);
    return 0;
}

int crypto_sha256(const void *data, size_t len, uint8_t out[CRYPTO_SHA256_LEN], struct err *e)
{
    return digest("SHA256", data, len, out, CRYPTO_SHA256_LEN, e);
}

/* Only a name for the library's type. */
static EVP_MD_CTX *md_of(const struct crypto_hash *h)
{
    return (EVP_MD_CTX *)(uintptr_t)h;
}

struct crypto_hash *crypto_hash_new(struct err *e)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    if (ctx && EVP_DigestInit_ex2(ctx, EVP_sha256(), NULL) == 1)
        return (struct crypto_hash *)(void *)ctx;
    EVP_MD_CTX_free(ctx);
    failed(e, "SHA256");
    return NULL;
}

int crypto_hash_add(struct crypto_hash *h, const void *data, size_t len, struct err *e)
{
    return EVP_DigestUpdate(md_of(h), len ? data : "", len) == 1 ? 0 : failed(e, "SHA256");
}

int crypto_hash_get(const struct crypto_hash *h, uint8_t out[CRYPTO_SHA256_LEN], struct err *e)
{
    EVP_MD_CTX *copy = EVP_MD_CTX_new();
    bool good = copy && EVP_MD_CTX_copy_ex(copy, md_of(h)) == 1 &&
                EVP_DigestFinal_ex(copy, out, NULL) == 1;

    EVP_MD_CTX_free(copy);
    return good ? 0 : failed(e, "SHA256");
}

void crypto_hash_free(struct crypto_hash *h)
{
    EVP_MD_CTX_free(md_of(h));
}

int crypto_md5(const void *data, size_t len, uint8_t out[CRYPTO_MD5_LEN], struct err *e)
{
    return digest("MD5", data, len, out, CRYPTO_MD5_LEN, e);
}

void crypto_forget_errors(void)
{
    ERR_clear_error();
}

bool crypto_ed25519_verify(const uint8_t key[CRYPTO_ED25519_KEY_LEN], const void *data, size_t len,
                           const uint8_t signature[CRYPTO_ED25519_SIG_LEN])
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key,
                                                 CRYPTO_ED25519_KEY_LEN);
    EVP_MD_CTX *ctx = pkey ? EVP_MD_CTX_new() : NULL;
    bool good = ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
                EVP_DigestVerify(ctx, signature, CRYPTO_ED25519_SIG_LEN, data, len) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    crypto_forget_errors();
    return good;
}

bool crypto_equal(const void *a, size_t a_len, const void *b, size_t b_len)
{
    uint8_t hash_a[CRYPTO_SHA256_LEN], hash_b[CRYPTO_SHA256_LEN];
    if (crypto_sha256(a, a_len, hash_a, NULL) < 0 || crypto_sha256(b, b_len, hash_b, NULL) < 0)
        return false;
    bool equal = CRYPTO_memcmp(hash_a, hash_b, sizeof hash_a) == 0;
    OPENSSL_cleanse(hash_a, sizeof hash_a);
    OPENSSL_cleanse(hash_b, sizeof hash_b);
    return equal;
}

void crypto_hex(const uint8_t *data, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[data[i] >> 4];
        *out++ = digits[data[i] & 15];
    }
    *out = '\0';
}

static void random_bytes(void *out, size_t n)
{
    if (RAND_bytes(out, (int)n) == 1)
        return;
    log_error("the crypto library has no random bytes");
    _exit(70);
}

uint32_t crypto_random_u32(void)
{
    uint32_t n;

    random_bytes(&n, sizeof n);
    return n;
}

void crypto_tag(const char *text, size_t n, char *out)
{
    uint8_t hash[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    if (crypto_sha256(text, strlen(text), hash, &e) < 0) {
        log_error("%s", e.text);
        _exit(70);
    }
    crypto_hex(hash, n, out);
}

void crypto_random_hex(size_t n, char *out)
{
    uint8_t bytes[32];
    *out = '\0';
    while (n > 0) {
        size_t part = n < sizeof bytes ? n : sizeof bytes;
        random_bytes(bytes, part);
        crypto_hex(bytes, part, out);
        out += 2 * part;
        n -= part;
    }
}
