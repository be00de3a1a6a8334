#include "config.h"

#include "fcgi/oauth/jwks.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <cjose/cjose.h>
#include <string.h>

#define JWKS_DEPTH    8
#define RSA_BYTES_MIN 256
#define RSA_BYTES_MAX 1024
#define RSA_E_MAX     4 /* bytes: more costs time and gains nothing */
#define P256_BYTES    32
#define SIGNATURE_MAX RSA_BYTES_MAX

static const char *const alg_names[JWT_ALGS] = {"RS256", "ES256", "EdDSA"};

enum jwt_alg jwt_alg_named(const char *name)
{
    enum jwt_alg alg = JWT_RS256;

    while (alg < JWT_ALGS && strcmp(alg_names[alg], name) != 0)
        alg++;
    return alg;
}

/* ---- a set ---- */

/* The kinds of keys: members, and the only ones of a key that libcjose gets to see. */
static const struct {
    const char *kty, *crv, *members[2];
    size_t min[2], max[2]; /* bytes of each, decoded */
} kinds[JWT_ALGS] = {
    [JWT_RS256] = {"RSA", NULL, {"n", "e"}, {RSA_BYTES_MIN, 1}, {RSA_BYTES_MAX, RSA_E_MAX}},
    [JWT_ES256] = {"EC", "P-256", {"x", "y"}, {P256_BYTES, P256_BYTES}, {P256_BYTES, P256_BYTES}},
    [JWT_EDDSA] =
        {"OKP", "Ed25519", {"x", NULL}, {CRYPTO_ED25519_KEY_LEN, 0}, {CRYPTO_ED25519_KEY_LEN, 0}},
};

static bool is_text(const json_t *object, const char *name, const char *text)
{
    const char *value = json_get_string(object, name);

    return value && strcmp(value, text) == 0;
}

/* What a key does not say does not forbid. */
static bool may_check(const json_t *key)
{
    const json_t *uses = json_object_get(key, "key_ops");

    return (!json_object_get(key, "use") || is_text(key, "use", "sig")) &&
           (!uses || json_index_of(uses, "verify") < json_array_size(uses)) &&
           !json_object_get(key, "d") && !json_object_get(key, "k");
}

static enum jwt_alg alg_of(const json_t *key)
{
    enum jwt_alg alg = JWT_RS256;

    while (alg < JWT_ALGS && !(is_text(key, "kty", kinds[alg].kty) &&
                               (!kinds[alg].crv || is_text(key, "crv", kinds[alg].crv))))
        alg++;
    if (alg < JWT_ALGS && json_object_get(key, "alg") && !is_text(key, "alg", alg_names[alg]))
        return JWT_ALGS;
    return alg;
}

static bool take_number(const json_t *key, enum jwt_alg alg, size_t i, struct buf *out)
{
    const char *text = json_get_string(key, kinds[alg].members[i]);

    return text && b64url_decode(text, strlen(text), out) == 0 && out->len >= kinds[alg].min[i] &&
           out->len <= kinds[alg].max[i];
}

static void *import(const json_t *key, enum jwt_alg alg)
{
    const char *const *names = kinds[alg].members;
    json_auto_t *plain = json_pack("{s:s, s:s, s:s, s:s*}", "kty", kinds[alg].kty, names[0],
                                   json_get_string(key, names[0]), names[1],
                                   json_get_string(key, names[1]), "crv", kinds[alg].crv);
    cjose_err why;
    void *made = plain ? cjose_jwk_import_json((cjose_header_t *)plain, &why) : NULL;

    crypto_forget_errors();
    return made;
}

/* false: not a key for us. */
static bool jwk_parse(const json_t *key, struct jwk *out)
{
    AUTO_BUF struct buf first = BUF_INIT(RSA_BYTES_MAX + 8);
    AUTO_BUF struct buf second = BUF_INIT(RSA_BYTES_MAX + 8);
    const char *kid = json_get_string(key, "kid");

    *out = (struct jwk){.alg = json_is_object(key) ? alg_of(key) : JWT_ALGS};
    if (out->alg == JWT_ALGS || !may_check(key) || (json_object_get(key, "kid") && !kid) ||
        (kid && strlen(kid) > JWK_KID_MAX) || !take_number(key, out->alg, 0, &first) ||
        (kinds[out->alg].members[1] && !take_number(key, out->alg, 1, &second)))
        return false;
    memcpy(out->kid, kid ? kid : "", kid ? strlen(kid) + 1 : 1);
    if (out->alg == JWT_EDDSA) {
        memcpy(out->ed25519, first.data, CRYPTO_ED25519_KEY_LEN);
        return true;
    }
    out->key = import(key, out->alg);
    return out->key != NULL;
}

int jwks_parse(const char *text, size_t len, struct jwks *out, struct err *e)
{
    json_auto_t *set = json_parse(text, len, JWKS_DEPTH, e);
    const json_t *list = json_object_get(set, "keys");
    size_t n = json_array_size(list);
    struct jwks keys = {0};

    if (!set)
        return err_wrap(e, "the set of keys");
    if (!json_is_array(list) || n > JWKS_KEYS_MAX)
        return err_set(e, ERR_INVALID, "the set of keys has no list \"keys\" of at most %d keys",
                       JWKS_KEYS_MAX);
    keys.items = mem_array(n ? n : 1, sizeof *keys.items);
    for (size_t i = 0; i < n; i++)
        if (jwk_parse(json_array_get(list, i), &keys.items[keys.n]))
            keys.n++;
    if (keys.n == 0) {
        jwks_clear(&keys);
        return err_set(e, ERR_INVALID,
                       "the set of keys has none for RS256 (2048 to 8192 bits), ES256 or EdDSA "
                       "(Ed25519)");
    }
    jwks_clear(out);
    *out = keys;
    return 0;
}

void jwks_clear(struct jwks *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        if (keys->items[i].key)
            cjose_jwk_release(keys->items[i].key);
    free(keys->items);
    *keys = (struct jwks){0};
}

const struct jwk *jwks_find(const struct jwks *keys, const char *kid, enum jwt_alg alg)
{
    const struct jwk *found = NULL;

    for (size_t i = 0; i < keys->n; i++) {
        const struct jwk *key = &keys->items[i];
        if (key->alg != alg || (kid && strcmp(key->kid, kid) != 0))
            continue;
        if (kid)
            return key;
        if (found) /* which of them is not said */
            return NULL;
        found = key;
    }
    return found;
}

/* ---- signatures ---- */

static bool ed25519_verify(const struct jwk *key, const char *token, size_t len)
{
    AUTO_BUF struct buf signature = BUF_INIT(SIGNATURE_MAX);
    const char *dot = memrchr(token, '.', len);

    return dot && b64url_decode(dot + 1, len - (size_t)(dot + 1 - token), &signature) == 0 &&
           signature.len == CRYPTO_ED25519_SIG_LEN &&
           crypto_ed25519_verify(key->ed25519, token, (size_t)(dot - token),
                                 (const uint8_t *)signature.data);
}

bool jwk_verify(const struct jwk *key, const char *token, size_t len)
{
    cjose_err why;

    if (key->alg == JWT_EDDSA)
        return ed25519_verify(key, token, len);
    cjose_jws_t *jws = cjose_jws_import(token, len, &why);
    bool good = jws && cjose_jws_verify(jws, key->key, &why);
    if (jws)
        cjose_jws_release(jws);
    crypto_forget_errors();
    return good;
}
