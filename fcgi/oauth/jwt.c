#include "config.h"

#include "fcgi/oauth/jwt.h"

#include "common/base/auto.h"
#include "common/base/b64.h"

#include <string.h>
#include <strings.h>

#define HEADER_DEPTH 4
#define CLAIMS_DEPTH 8
#define AUDIENCE_MAX 16
#define TIME_MAX     253402300799.0 /* the end of the year 9999 */

bool jwt_is_like(const char *token)
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;

    return second && !strchr(second + 1, '.') && strncmp(token, "eyJ", 3) == 0;
}

/* ---- the header ---- */

static bool typ_is_right(const char *typ, bool typed)
{
    static const char media[] = "application/";

    if (!typ)
        return !typed;
    if (strncasecmp(typ, media, sizeof media - 1) == 0)
        typ += sizeof media - 1;
    return strcasecmp(typ, "at+jwt") == 0 || (!typed && strcasecmp(typ, "JWT") == 0);
}

static int header_read(const json_t *header, const struct jwt_rules *rules, struct jwt *out,
                       struct err *e)
{
    const char *alg = json_get_string(header, "alg"), *kid = json_get_string(header, "kid");

    if (!json_is_object(header))
        return err_set(e, ERR_INVALID, "the header of the token is not a JSON object");
    out->alg = alg ? jwt_alg_named(alg) : JWT_ALGS;
    if (out->alg == JWT_ALGS)
        return err_set(e, ERR_INVALID, "the token must be signed with RS256, ES256 or EdDSA");
    if (json_object_get(header, "crit"))
        return err_set(e, ERR_INVALID,
                       "the token has critical extensions (crit), which are not supported");
    if (json_object_get(header, "b64") || json_object_get(header, "enc") ||
        json_object_get(header, "zip"))
        return err_set(e, ERR_INVALID, "the token is encrypted, compressed or not encoded");
    if (!typ_is_right(json_get_string(header, "typ"), rules->typed) ||
        (json_object_get(header, "typ") && !json_get_string(header, "typ")))
        return err_set(e, ERR_INVALID, "the token is not an access token (typ must be at+jwt)");
    if (json_object_get(header, "kid") && (!kid || strlen(kid) > JWK_KID_MAX))
        return err_set(e, ERR_INVALID, "the name of the token's key (kid) must be at most %d bytes",
                       JWK_KID_MAX);
    out->has_kid = kid != NULL;
    if (kid)
        memcpy(out->kid, kid, strlen(kid) + 1);
    return 0;
}

/* ---- claims ---- */

static int check_audience(const json_t *aud, const struct jwt_rules *rules, struct err *e)
{
    size_t n = json_is_array(aud) ? json_array_size(aud) : 1;
    bool ours = false;

    for (size_t i = 0; i < n && i < AUDIENCE_MAX; i++) {
        const json_t *one = json_is_array(aud) ? json_array_get(aud, i) : aud;
        const char *text = json_string_value(one);
        if (text && strlen(text) == json_string_length(one))
            ours = ours || rules->audience_ok(rules->ctx, text);
    }
    return ours ? 0
                : err_set(e, ERR_DENIED, "the token is for another server (aud is not this one)");
}

/* A NumericDate, also with a fraction. 1: there is one; 0: none. */
static int take_time(const json_t *claims, const char *name, int64_t *out, struct err *e)
{
    const json_t *value = json_object_get(claims, name);
    double number = json_number_value(value);

    if (!value)
        return 0;
    if (!json_is_number(value) || !(number >= 0 && number <= TIME_MAX))
        return err_set(e, ERR_INVALID, "%s of the token is not a time", name);
    *out = (int64_t)number;
    return 1;
}

int jwt_check_claims(const json_t *claims, const struct jwt_rules *rules, bool partly,
                     int64_t *out_expires_s, struct err *e)
{
    const char *issuer = json_get_string(claims, "iss");
    int64_t expires = 0, not_before = 0, issued = 0;

    if (!json_is_object(claims))
        return err_set(e, ERR_INVALID, "the claims of the token are not a JSON object");
    if (!(partly && !json_object_get(claims, "iss")) &&
        (!issuer || strcmp(issuer, rules->issuer) != 0))
        return err_set(e, ERR_DENIED, "the token is not from this server's issuer (iss)");
    if (!(partly && !json_object_get(claims, "aud")) &&
        check_audience(json_object_get(claims, "aud"), rules, e) < 0)
        return -1;
    int has_expiry = take_time(claims, "exp", &expires, e);
    if (has_expiry < 0 || take_time(claims, "nbf", &not_before, e) < 0 ||
        take_time(claims, "iat", &issued, e) < 0)
        return -1;
    if (has_expiry == 0 && !partly)
        return err_set(e, ERR_INVALID, "the token has no end (exp)");
    if (has_expiry && expires + JWT_LEEWAY_S <= rules->now_s)
        return err_set(e, ERR_DENIED, "the token has expired");
    if (not_before > rules->now_s + JWT_LEEWAY_S)
        return err_set(e, ERR_DENIED, "the token is not valid yet (nbf)");
    if (issued > rules->now_s + JWT_LEEWAY_S)
        return err_set(e, ERR_DENIED, "the token was issued in the future (iat)");
    if (json_object_get(claims, "cnf"))
        return err_set(e, ERR_DENIED,
                       "the token is bound to a key of its client (cnf), which is not supported");
    *out_expires_s = expires;
    return 0;
}

/* ---- the token ---- */

/* One part, as JSON. NULL: *e. */
static json_t *part_read(const char *text, size_t len, size_t max, unsigned depth, const char *what,
                         struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT(JWT_MAX);
    struct err why = ERR_INIT;
    json_t *value = NULL;

    if (b64url_decode(text, len, &bytes) < 0)
        err_set(e, ERR_INVALID, "the %s of the token is not base64url", what);
    else if (bytes.len > max)
        err_set(e, ERR_LIMIT, "the %s of the token is over %zu bytes", what, max);
    else if (!(value = json_parse(buf_str(&bytes), bytes.len, depth, &why)))
        err_set(e, ERR_INVALID, "the %s of the token is not valid JSON", what);
    return value;
}

int jwt_read(const char *token, const struct jwt_rules *rules, struct jwt *out, struct err *e)
{
    const char *first = strchr(token, '.'), *second = first ? strchr(first + 1, '.') : NULL;
    AUTO_BUF struct buf signature = BUF_INIT(JWT_MAX);

    *out = (struct jwt){0};
    if (strlen(token) > JWT_MAX)
        return err_set(e, ERR_LIMIT, "the token is over %d characters", JWT_MAX);
    if (!second || strchr(second + 1, '.'))
        return err_set(e, ERR_INVALID, "the token is not a JWT of three parts");
    if (!second[1] || b64url_decode(second + 1, strlen(second + 1), &signature) < 0)
        return err_set(e, ERR_INVALID, "the signature of the token is not base64url");
    json_auto_t *header = part_read(token, (size_t)(first - token), JWT_HEADER_MAX, HEADER_DEPTH,
                                    "header", e);
    if (!header || header_read(header, rules, out, e) < 0)
        return -1;
    out->claims = part_read(first + 1, (size_t)(second - first - 1), JWT_MAX, CLAIMS_DEPTH,
                            "content", e);
    if (out->claims && jwt_check_claims(out->claims, rules, false, &out->expires_s, e) == 0)
        return 0;
    jwt_clear(out);
    return -1;
}

void jwt_clear(struct jwt *jwt)
{
    json_decref(jwt->claims);
    jwt->claims = NULL;
}
