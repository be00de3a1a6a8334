#include "config.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/server/clients.h"
#include "fcgi/oauth/server/exchange.h"
#include "fcgi/oauth/server/grants.h"
#include "fcgi/oauth/server/uri.h"

#include <string.h>

#define JTI_BYTES    16
#define TOKEN_MAX    16384
#define VERIFIER_MIN 43 /* RFC 7636, 4.1 */
#define VERIFIER_MAX 128
#define BODY_DEPTH   8
#define SUBJECT      "operator" /* who has allowed it: there is one */

static void audit(const char *act, const char *grant, const char *text)
{
    const struct log_field fields[] = {{.name = "audit", .text = act},
                                       {.name = "grant", .text = grant}};

    log_with(LOG_LEVEL_INFO, fields, ARRAY_LEN(fields), "%s", text);
}

/* ---- /oauth/token ---- */

static json_t *claims_of(const struct oauth *o, const struct grant_issue *issue, int64_t now)
{
    char jti[2 * JTI_BYTES + 1];

    crypto_random_hex(JTI_BYTES, jti);
    return json_pack("{s:s, s:O, s:s, s:O, s:s, s:I, s:I, s:s, s:s, s:O}", "iss", o->issuer, "aud",
                     json_object_get(issue->grant, "resource"), "sub", SUBJECT, "client_id",
                     json_object_get(issue->grant, "client"), "scope", issue->scope, "iat",
                     (json_int_t)now, "exp", (json_int_t)(now + ACCESS_TOKEN_S), "jti", jti, "gid",
                     issue->id, "tenant", json_object_get(issue->grant, "tenant"));
}

static void answer_tokens(const struct oauth *o, struct exchange *x,
                          const struct grant_issue *issue, int64_t now)
{
    AUTO_BUF struct buf token = BUF_INIT(TOKEN_MAX);
    json_auto_t *claims = claims_of(o, issue, now);
    struct err e = ERR_INIT;

    if (signing_key_sign(o->key, claims, &token, &e) < 0)
        exchange_fail(x, &e);
    else
        exchange_json(x, 200,
                      json_pack("{s:s, s:s, s:i, s:s, s:s}", "access_token", buf_str(&token),
                                "token_type", "Bearer", "expires_in", ACCESS_TOKEN_S,
                                "refresh_token", issue->refresh_token, "scope", issue->scope));
}

static bool verifier_is_valid(const char *verifier)
{
    size_t len = strspn(verifier, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                  "-._~");

    return !verifier[len] && len >= VERIFIER_MIN && len <= VERIFIER_MAX;
}

/* What the kind of grant needs. -1: the answer says what is missing. */
static int read_claim(struct exchange *x, const struct form *f, bool by_code,
                      struct grant_claim *out)
{
    *out = (struct grant_claim){.scope = by_code ? NULL : form_get(f, "scope")};
    if (!(out->client = exchange_need(x, f, "client_id")))
        return -1;
    if (!by_code)
        return (out->refresh_token = exchange_need(x, f, "refresh_token")) ? 0 : -1;
    if (!(out->code = exchange_need(x, f, "code")) ||
        !(out->redirect = exchange_need(x, f, "redirect_uri")) ||
        !(out->verifier = exchange_need(x, f, "code_verifier")))
        return -1;
    if (!verifier_is_valid(out->verifier)) {
        exchange_error(x, 400, "invalid_request",
                       "code_verifier must be 43 to 128 letters, digits, -, ., _ or ~");
        return -1;
    }
    return 0;
}

static void serve_grant(const struct oauth *o, struct exchange *x, const struct form *f,
                        bool by_code)
{
    AUTO_BUF struct buf resource = BUF_INIT(URI_MAX);
    AUTO_STORE struct store s = STORE_INIT;
    int64_t now = clock_unix_s();
    struct err e = ERR_INIT, why = ERR_INIT;
    struct grant_claim claim;
    struct grant_issue issue;

    if (read_claim(x, f, by_code, &claim) < 0)
        return;
    const char *asked = form_get(f, "resource");
    if (asked && resource_read(o->issuer, asked, &resource, &why) < 0) {
        exchange_error(x, 400, "invalid_target", why.text);
        return;
    }
    claim.resource = asked ? buf_str(&resource) : NULL;
    if (store_begin(o->folder_fd, &s, &e) < 0) {
        exchange_fail(x, &e);
        return;
    }
    const char *code = by_code ? grant_redeem(s.state, o->secret, &claim, now, &issue, &why)
                               : grant_refresh(s.state, o->secret, &claim, now, &issue, &why);
    bool revoked = code &&
                   grant_is_revoked(json_object_get(json_object_get(s.state, "grants"), issue.id));
    if (!code)
        answer_tokens(o, x, &issue, now);
    /* Before anyone has the tokens. */
    if (grants_save(&s, now, &e) < 0)
        exchange_fail(x, &e);
    else if (code)
        exchange_error(x, 400, code, why.text);
    if (revoked)
        audit("oauth-reuse", issue.id, why.text);
}

void token_serve(const struct oauth *o, struct exchange *x)
{
    AUTO_FORM struct form f = {0};
    const char *type;

    if (exchange_form(x, &f) < 0 || !(type = exchange_need(x, &f, "grant_type")))
        return;
    if (strcmp(type, "authorization_code") == 0)
        serve_grant(o, x, &f, true);
    else if (strcmp(type, "refresh_token") == 0)
        serve_grant(o, x, &f, false);
    else
        exchange_error(x, 400, "unsupported_grant_type",
                       "grant_type must be authorization_code or refresh_token");
}

/* ---- /oauth/revoke ---- */

/* The grant of a token of ours, of either kind. */
static bool find_grant(const struct oauth *o, const char *token, char out[GRANT_ID_LEN + 1])
{
    if (grant_of_token(o->secret, token, out))
        return true;
    json_auto_t *claims = signing_key_verify(o->key, token);
    const char *id = json_get_string(claims, "gid");
    if (!id || strlen(id) != GRANT_ID_LEN)
        return false;
    memcpy(out, id, GRANT_ID_LEN + 1);
    return true;
}

/* Of what is not known there is nothing to revoke, which is a success (RFC 7009, 2.2). */
void revoke_serve(const struct oauth *o, struct exchange *x)
{
    AUTO_FORM struct form f = {0};
    AUTO_STORE struct store s = STORE_INIT;
    char id[GRANT_ID_LEN + 1];
    int64_t now = clock_unix_s();
    struct err e = ERR_INIT;
    const char *token;

    if (exchange_form(x, &f) < 0 || !(token = exchange_need(x, &f, "token")))
        return;
    exchange_answer(x, 200, NULL);
    if (!find_grant(o, token, id))
        return;
    if (store_begin(o->folder_fd, &s, &e) < 0) {
        exchange_fail(x, &e);
        return;
    }
    if (!grant_revoke(s.state, id, now))
        return;
    if (grants_save(&s, now, &e) < 0)
        exchange_fail(x, &e);
    else
        audit("oauth-revoke", id, "a client has ended its grant");
}

/* ---- /oauth/register ---- */

void register_serve(const struct oauth *o, struct exchange *x)
{
    struct err e = ERR_INIT;
    const char *code = "invalid_client_metadata";
    json_auto_t *metadata = json_parse(buf_str(&x->body), x->body.len, BODY_DEPTH, &e);
    json_t *client = metadata ? client_register(o->secret, metadata, clock_unix_s(), &code, &e)
                              : NULL;

    if (client)
        exchange_json(x, 201, client);
    else if (code)
        exchange_error(x, 400, code, e.text);
    else
        exchange_fail(x, &e);
    if (client)
        audit("oauth-register", "", "a client has registered");
}
