#include "config.h"

#include "fcgi/oauth/server/grants.h"

#include "common/base/b64.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/parse.h"
#include "common/base/remedy.h"
#include "common/rpc/json.h"
#include "common/tools/tools.h"
#include "fcgi/oauth/server/clients.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PREFIX      "scr_"
#define LABEL       "sandcgi refresh token 1"
#define TAG_BYTES   16
#define CODES_MAX   256
#define LEEWAY_S    60 /* for the clocks of whoever checks tokens */
#define REVOKED_MAX 65536
#define HEX         "0123456789abcdef"

static json_t *part(json_t *state, const char *name)
{
    return json_object_get(state, name);
}

static int64_t time_of(const json_t *object, const char *name)
{
    return json_get_integer(object, name, 0);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_get_string(object, name);

    return text ? text : "";
}

static bool same(const char *a, const char *b)
{
    return crypto_equal(a, strlen(a), b, strlen(b));
}

/* ---- what ends ---- */

bool grant_is_revoked(const json_t *grant)
{
    return time_of(grant, "revoked") > 0;
}

/* Its id stays in the list of revoked ones until its last access token has expired. */
static bool grant_has_ended(const json_t *grant, int64_t now)
{
    int64_t latest = time_of(grant, "used") > time_of(grant, "made") ? time_of(grant, "used")
                                                                     : time_of(grant, "made");

    if (grant_is_revoked(grant))
        return time_of(grant, "revoked") + ACCESS_TOKEN_S + LEEWAY_S < now;
    if (!time_of(grant, "used")) /* no token was made */
        return latest + CODE_S < now;
    return latest + GRANT_IDLE_S < now;
}

void grants_sweep(json_t *state, int64_t now)
{
    json_t *one;
    const char *id;
    void *next;

    json_object_foreach_safe(part(state, "grants"), next, id, one) if (grant_has_ended(one, now))
        json_object_del(part(state, "grants"), id);
    /* A used one is remembered as long as its grant. */
    json_object_foreach_safe(
        part(state, "codes"), next, id,
        one) if (!json_object_get(part(state, "grants"), text_of(one, "grant")) ||
                 time_of(one, "expires") + ACCESS_TOKEN_S < now)
        json_object_del(part(state, "codes"), id);
}

bool grant_revoke(json_t *state, const char *id, int64_t now)
{
    json_t *grant = json_object_get(part(state, "grants"), id);

    if (!grant || grant_is_revoked(grant))
        return false;
    json_object_set_new(grant, "revoked", json_integer(now));
    return true;
}

int grants_save(const struct store *s, int64_t now, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(REVOKED_MAX), old = BUF_INIT(REVOKED_MAX);
    json_auto_t *ids = json_array();
    struct err none = ERR_INIT;
    const char *id;
    json_t *one;

    grants_sweep(s->state, now);
    json_object_foreach(part(s->state, "grants"), id, one) if (grant_is_revoked(one))
        json_array_append_new(ids, json_string(id));
    if (json_write(ids, &text) < 0)
        return err_set(e, ERR_LIMIT, "too many grants were revoked within an hour");
    /* First, so that what was revoked never counts again. */
    if ((store_read(s->folder_fd, STORE_REVOKED, &old, &none) < 0 ||
         strcmp(buf_str(&old), buf_str(&text)) != 0) &&
        store_write(s->folder_fd, STORE_REVOKED, buf_str(&text), text.len, e) < 0)
        return -1;
    return store_save(s, e);
}

/* ---- allowing ---- */

static size_t count_live(const json_t *grants)
{
    const char *id;
    json_t *one;
    size_t n = 0;

    json_object_foreach((json_t *)grants, id, one) n += !grant_is_revoked(one);
    return n;
}

int grant_allow(json_t *state, const struct grant_terms *terms, const char *redirect,
                const char *challenge, int64_t now, char code[CODE_LEN + 1], struct err *e)
{
    json_t *grants = part(state, "grants"), *codes = part(state, "codes");
    char id[GRANT_ID_LEN + 1], tag[2 * TAG_BYTES + 1];

    grants_sweep(state, now);
    if (count_live(grants) >= GRANTS_MAX || json_object_size(codes) >= CODES_MAX)
        return err_set(e, ERR_LIMIT, "there are %d grants, which is the most; revoke some: %s",
                       GRANTS_MAX, remedy(REMEDY_TOKEN_LIST));
    crypto_random_hex(GRANT_ID_LEN / 2, id);
    crypto_random_hex(CODE_LEN / 2, code);
    crypto_tag(code, TAG_BYTES, tag);
    json_object_set_new(grants, id,
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:i}", "client",
                                  terms->client, "name", terms->client_name, "host", terms->host,
                                  "tenant", terms->tenant, "scope", terms->scope, "resource",
                                  terms->resource, "made", (json_int_t)now, "refresh", 0));
    json_object_set_new(codes, tag,
                        json_pack("{s:s, s:s, s:s, s:I}", "grant", id, "redirect", redirect,
                                  "challenge", challenge, "expires", (json_int_t)(now + CODE_S)));
    return 0;
}

/* ---- refresh tokens ---- */

static void refresh_token_make(grant_secret secret, const char *grant, int64_t number,
                               char out[REFRESH_TOKEN_MAX])
{
    char digits[24], mac_hex[CRYPTO_HEX_LEN(CRYPTO_SHA256_LEN)];
    uint8_t mac[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    snprintf(digits, sizeof digits, "%" PRId64, number);
    const struct crypto_part parts[] = {
        {LABEL, strlen(LABEL)}, {grant, strlen(grant)}, {digits, strlen(digits)}};
    if (crypto_hmac(secret, STORE_SECRET_LEN, parts, ARRAY_LEN(parts), mac, &e) < 0)
        crypto_random_hex(sizeof mac, mac_hex); /* no valid token */
    else
        crypto_hex(mac, sizeof mac, mac_hex);
    snprintf(out, REFRESH_TOKEN_MAX, PREFIX "%s.%s.%s", grant, digits, mac_hex);
}

/* The number of a refresh token that we have made; -1: we have not. */
static int64_t refresh_token_read(grant_secret secret, const char *text,
                                  char grant[GRANT_ID_LEN + 1])
{
    const char *id = text + strlen(PREFIX);
    char made[REFRESH_TOKEN_MAX], digits[24];
    uint64_t number;

    if (strncmp(text, PREFIX, strlen(PREFIX)) != 0 || strspn(id, HEX) != GRANT_ID_LEN ||
        id[GRANT_ID_LEN] != '.')
        return -1;
    size_t len = strcspn(id + GRANT_ID_LEN + 1, ".");
    if (len >= sizeof digits)
        return -1;
    snprintf(digits, sizeof digits, "%.*s", (int)len, id + GRANT_ID_LEN + 1);
    if (parse_u64(digits, 1, INT64_MAX, &number) < 0)
        return -1;
    snprintf(grant, GRANT_ID_LEN + 1, "%.*s", GRANT_ID_LEN, id);
    refresh_token_make(secret, grant, (int64_t)number, made);
    return same(made, text) ? (int64_t)number : -1;
}

bool grant_of_token(grant_secret secret, const char *refresh_token, char out[GRANT_ID_LEN + 1])
{
    return refresh_token_read(secret, refresh_token, out) > 0;
}

/* ---- what both ways to tokens have in common ---- */

static const char *refuse(const char *code, struct err *e, const char *text)
{
    err_set(e, ERR_DENIED, "%s", text);
    return code;
}

/* The scopes that the client asks for must be the grant's. */
static const char *narrow_scope(const json_t *grant, const char *asked, char out[64], struct err *e)
{
    char names[SCOPE_TEXT_MAX];
    unsigned allowed = scopes_parse(text_of(grant, "scope"));
    unsigned wanted = asked ? scopes_parse(asked) : allowed;

    if (!wanted || (wanted & ~allowed))
        return refuse("invalid_scope", e, "scope names something that was not allowed");
    scopes_format(wanted, names);
    snprintf(out, 64, "%s", names);
    for (char *comma = out; (comma = strchr(comma, ','));)
        *comma = ' ';
    return NULL;
}

static const char *issue(json_t *state, grant_secret secret, const struct grant_claim *claim,
                         int64_t now, struct grant_issue *out, struct err *e)
{
    json_t *grant = json_object_get(part(state, "grants"), out->id);
    int64_t number = time_of(grant, "refresh") + 1;
    const char *code;

    if (claim->resource && strcmp(claim->resource, text_of(grant, "resource")) != 0)
        return refuse("invalid_target", e, "resource is not the one that was allowed");
    if ((code = narrow_scope(grant, claim->scope, out->scope, e)))
        return code;
    json_object_set_new(grant, "refresh", json_integer(number));
    json_object_set_new(grant, "used", json_integer(now));
    refresh_token_make(secret, out->id, number, out->refresh_token);
    out->grant = grant;
    return NULL;
}

/* ---- a code ---- */

/* PKCE, S256 (RFC 7636, 4.6). */
static bool verifier_fits(const char *verifier, const char *challenge)
{
    AUTO_BUF struct buf text = BUF_INIT(B64_ENCODED_LEN(CRYPTO_SHA256_LEN));
    uint8_t hash[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    if (crypto_sha256(verifier, strlen(verifier), hash, &e) < 0)
        return false;
    b64url_encode(hash, sizeof hash, &text);
    return same(buf_str(&text), challenge);
}

const char *grant_redeem(json_t *state, grant_secret secret, const struct grant_claim *claim,
                         int64_t now, struct grant_issue *out, struct err *e)
{
    char tag[2 * TAG_BYTES + 1];

    *out = (struct grant_issue){0};
    crypto_tag(claim->code, TAG_BYTES, tag);
    json_t *code = json_object_get(part(state, "codes"), tag);
    const json_t *grant = json_object_get(part(state, "grants"), text_of(code, "grant"));
    if (!code || !grant)
        return refuse("invalid_grant", e, "the code is unknown or has expired");
    snprintf(out->id, sizeof out->id, "%s", text_of(code, "grant"));
    /* Another client that has got the code learns nothing, and ends nothing. */
    if (strcmp(claim->client, text_of(grant, "client")) != 0)
        return refuse("invalid_grant", e, "the code is another client's");
    if (json_is_true(json_object_get(code, "used"))) {
        grant_revoke(state, out->id, now);
        return refuse("invalid_grant", e, "the code was used before: its grant is revoked");
    }
    json_object_set_new(code, "used", json_true()); /* one try */
    if (time_of(code, "expires") < now)
        return refuse("invalid_grant", e, "the code is unknown or has expired");
    if (grant_is_revoked(grant))
        return refuse("invalid_grant", e, "the grant is revoked");
    if (strcmp(claim->redirect, text_of(code, "redirect")) != 0)
        return refuse("invalid_grant", e, "redirect_uri is not the one that the code was sent to");
    if (!verifier_fits(claim->verifier, text_of(code, "challenge")))
        return refuse("invalid_grant", e, "code_verifier does not fit the code_challenge");
    return issue(state, secret, claim, now, out, e);
}

/* ---- a refresh token ---- */

const char *grant_refresh(json_t *state, grant_secret secret, const struct grant_claim *claim,
                          int64_t now, struct grant_issue *out, struct err *e)
{
    *out = (struct grant_issue){0};
    int64_t number = refresh_token_read(secret, claim->refresh_token, out->id);
    const json_t *grant = number > 0 ? json_object_get(part(state, "grants"), out->id) : NULL;

    if (!grant || grant_has_ended(grant, now))
        return refuse("invalid_grant", e, "the refresh token is unknown or has ended");
    if (grant_is_revoked(grant))
        return refuse("invalid_grant", e, "the grant is revoked");
    if (strcmp(claim->client, text_of(grant, "client")) != 0)
        return refuse("invalid_grant", e, "the refresh token is another client's");
    if (number != time_of(grant, "refresh")) {
        grant_revoke(state, out->id, now);
        return refuse("invalid_grant", e,
                      "the refresh token was used before: its grant is revoked");
    }
    return issue(state, secret, claim, now, out, e);
}
