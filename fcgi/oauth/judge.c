#include "config.h"

#include "fcgi/oauth/judge.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "fcgi/oauth/grant.h"
#include "fcgi/oauth/jwt.h"
#include "fcgi/oauth/provider.h"
#include "fcgi/oauth/resource.h"

#include <stdio.h>
#include <string.h>

#define GOOD_MAX     8192 /* verdicts that are kept */
#define BAD_MAX      1024
#define ASKED_S      60 /* what the issuer said of a token counts so long; … */
#define REFUSED_S    10 /* … that it is not valid; … */
#define FAILED_S     5  /* … that it could not be asked */
#define ASKING_MAX   16
#define ASK_MS       5000
#define ANSWER_MAX   (64u * 1024)
#define ANSWER_DEPTH 8
#define FORM_MAX     (3 * JWT_MAX + 64)
#define LOOK_MS      200 /* for signals, while the issuer is asked */
#define TOKEN_CHARS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/"

struct asking {
    struct judge *judge; /* NULL: free */
    uint8_t digest[CRYPTO_SHA256_LEN];
};

struct judge {
    const struct settings *s;
    struct talks *talks;
    struct provider *provider;
    struct verdicts *good, *bad;
    struct grant_rules grants;
    char *client;
    void (*changed)(void *ctx);
    void *ctx;
    struct asking asking[ASKING_MAX];
    unsigned asked;
};

/* Keys or revoked grants have changed. */
static void on_provider(void *ctx)
{
    struct judge *j = ctx;

    verdicts_forget(j->good);
    j->changed(j->ctx);
}

struct judge *judge_new(const struct settings *s, int state_fd, const char *client,
                        void (*changed)(void *ctx), void *ctx, struct err *e)
{
    struct judge *j = mem_alloc(sizeof *j);

    *j = (struct judge){.s = s,
                        .talks = talks_new(e),
                        .good = verdicts_new(GOOD_MAX),
                        .bad = verdicts_new(BAD_MAX),
                        .grants = {.tenant = s->access.tenant,
                                   .limits = s->access.limits,
                                   .tenants = &s->tenants,
                                   .scopes = s->access.scopes},
                        .client = client ? mem_strdup(client) : NULL,
                        .changed = changed,
                        .ctx = ctx};
    if (j->talks) {
        j->provider = provider_new(s, j->talks, state_fd, on_provider, j);
        return j;
    }
    judge_free(j);
    return NULL;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    talks_free(j->talks);
    provider_free(j->provider);
    verdicts_free(j->good);
    verdicts_free(j->bad);
    if (j->client)
        explicit_bzero(j->client, strlen(j->client));
    free(j->client);
    free(j);
}

/* ---- verdicts ---- */

static enum judged refuse(char text[VERDICT_TEXT_MAX], const char *why)
{
    snprintf(text, VERDICT_TEXT_MAX, "%.*s", VERDICT_TEXT_MAX - 1, why);
    return JUDGED_BAD;
}

/* The claims are proved. 0 with the row in text; -1: *e. */
static int admit(const struct judge *j, const json_t *claims, char text[VERDICT_TEXT_MAX],
                 struct err *e)
{
    struct grant grant;
    char scopes[SCOPE_TEXT_MAX];

    if (grant_make(claims, &j->grants, &grant, e) < 0)
        return -1;
    if (provider_has_revoked(j->provider, grant.id))
        return err_set(e, ERR_DENIED, "the grant of the token was revoked");
    scopes_format(grant.scopes, scopes);
    snprintf(text, VERDICT_TEXT_MAX, "%s %s%s%s", grant.tenant, *scopes ? scopes : JUDGED_NO_SCOPES,
             *grant.limits ? " " : "", grant.limits);
    return 0;
}

static struct jwt_rules rules_of(const struct judge *j)
{
    return (struct jwt_rules){.issuer = j->s->access.issuer,
                              .audience_ok = resource_accepts,
                              .ctx = j->s,
                              .typed = j->s->access.builtin,
                              .now_s = clock_unix_s()};
}

/* ---- JWTs ---- */

static enum judged judge_jwt(struct judge *j, const char *token, const uint8_t *digest, bool first,
                             char text[VERDICT_TEXT_MAX], int64_t *out_until_s)
{
    const struct jwt_rules rules = rules_of(j);
    struct err e = ERR_INIT;
    struct jwt jwt;

    if (jwt_read(token, &rules, &jwt, &e) < 0)
        return refuse(text, e.text);
    const struct jwk *key = jwks_find(provider_keys(j->provider), jwt.has_kid ? jwt.kid : NULL,
                                      jwt.alg);
    enum judged judged = JUDGED_BAD;
    if (!key && provider_look(j->provider, first))
        judged = JUDGED_LATER;
    else if (!key)
        refuse(text, *provider_problem(j->provider) ? provider_problem(j->provider)
                                                    : "the issuer has no such key (kid, alg)");
    else if (!jwk_verify(key, token, strlen(token)))
        refuse(text, "the signature of the token is not valid");
    else if (admit(j, jwt.claims, text, &e) < 0)
        refuse(text, e.text);
    else
        judged = JUDGED_GOOD;
    *out_until_s = jwt.expires_s + JWT_LEEWAY_S;
    if (judged == JUDGED_GOOD)
        verdicts_add(j->good, digest, true, text, *out_until_s);
    jwt_clear(&jwt);
    return judged;
}

/* ---- tokens that the issuer is asked about ---- */

/* The answer of the issuer: true with the row in text and its end, else why. */
static bool read_answer(const struct judge *j, const char *answer, size_t len,
                        char text[VERDICT_TEXT_MAX], int64_t *out_until_s)
{
    const struct jwt_rules rules = rules_of(j);
    struct err e = ERR_INIT;
    json_auto_t *claims = json_parse(answer, len, ANSWER_DEPTH, &e);
    int64_t expires = 0;

    *out_until_s = rules.now_s + REFUSED_S;
    if (!json_is_object(claims))
        refuse(text, "the issuer's answer about the token is not valid");
    else if (json_get_bool(claims, "active", 0) != 1)
        refuse(text, "the token is not active");
    else if (jwt_check_claims(claims, &rules, true, &expires, &e) < 0 ||
             admit(j, claims, text, &e) < 0)
        refuse(text, e.text);
    else {
        *out_until_s = rules.now_s + ASKED_S;
        if (expires && expires + JWT_LEEWAY_S < *out_until_s)
            *out_until_s = expires + JWT_LEEWAY_S;
        return true;
    }
    return false;
}

static void on_answer(void *ctx, const char *answer, size_t len, const char *why)
{
    struct asking *a = ctx;
    struct judge *j = TAKE_PTR(a->judge);
    char text[VERDICT_TEXT_MAX];
    int64_t until = clock_unix_s() + FAILED_S;

    if (!answer) {
        log_warn("SANDCGI_OAUTH_INTROSPECT: %s", why);
        verdicts_add(j->bad, a->digest, false, "the issuer could not be asked about the token",
                     until);
    } else {
        bool good = read_answer(j, answer, len, text, &until);
        verdicts_add(good ? j->good : j->bad, a->digest, good, text, until);
    }
    j->changed(j->ctx);
}

static void add_urlencoded(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++)
        if (strchr("+/=", *c))
            buf_addf(out, "%%%02X", (unsigned)*c);
        else
            buf_add_char(out, *c);
}

static int ask(struct judge *j, const char *token, struct asking *a, struct err *e)
{
    AUTO_BUF struct buf form = BUF_INIT(FORM_MAX);

    buf_add_str(&form, "token_type_hint=access_token&token=");
    add_urlencoded(&form, token);
    const struct talk_request request = {.url = j->s->access.introspect,
                                         .may_be_private = true, /* the operator has named it */
                                         .form = buf_str(&form),
                                         .user_password = j->client,
                                         .max_bytes = ANSWER_MAX,
                                         .timeout_ms = ASK_MS,
                                         .done = on_answer,
                                         .ctx = a};
    int rc = talks_begin(j->talks, &request, e);
    if (form.len > 0)
        explicit_bzero(form.data, form.len);
    return rc;
}

static enum judged judge_opaque(struct judge *j, const char *token, const uint8_t *digest,
                                char text[VERDICT_TEXT_MAX])
{
    struct asking *room = NULL;
    struct err e = ERR_INIT;
    size_t len = strspn(token, TOKEN_CHARS);

    if (!*j->s->access.introspect)
        return refuse(text, "the token is neither known here nor a JWT");
    if (len == 0 || len + strspn(token + len, "=") != strlen(token))
        return refuse(text, "the token has characters that no token has");
    for (size_t i = 0; i < ASKING_MAX; i++) {
        if (!j->asking[i].judge)
            room = &j->asking[i];
        else if (memcmp(j->asking[i].digest, digest, CRYPTO_SHA256_LEN) == 0)
            return JUDGED_LATER;
    }
    if (!room)
        return refuse(text, "the issuer is being asked about too many tokens; try again");
    *room = (struct asking){.judge = j};
    memcpy(room->digest, digest, CRYPTO_SHA256_LEN);
    if (ask(j, token, room, &e) < 0) {
        room->judge = NULL;
        return refuse(text, "the issuer is being asked about too many tokens; try again");
    }
    j->asked++;
    return JUDGED_LATER;
}

/* ---- the whole ---- */

enum judged judge_token(struct judge *j, const char *token, const uint8_t digest[CRYPTO_SHA256_LEN],
                        bool first, char text[VERDICT_TEXT_MAX], int64_t *out_until_s)
{
    const int64_t now = clock_unix_s();
    const struct verdict *known = verdicts_find(j->good, digest, now);

    known = known ? known : verdicts_find(j->bad, digest, now);
    if (known) {
        memcpy(text, known->text, VERDICT_TEXT_MAX);
        *out_until_s = known->until_s;
        return known->good ? JUDGED_GOOD : JUDGED_BAD;
    }
    return jwt_is_like(token) ? judge_jwt(j, token, digest, first, text, out_until_s)
                              : judge_opaque(j, token, digest, text);
}

int judge_wait(struct judge *j, struct loop *loop, struct deadline d, const sigset_t *while_waiting,
               struct err *e)
{
    d = deadline_min(d, provider_tick(j->provider));
    if (talks_count(j->talks) == 0)
        return loop_wait(loop, d, while_waiting, e) < 0 ? -1 : 0;
    if (talks_wait(j->talks, loop->fd, deadline_min(d, deadline_in_ms(LOOK_MS)), e) < 0)
        return -1;
    return loop_dispatch(loop, e) < 0 ? -1 : 0;
}

unsigned judge_fetches(const struct judge *j)
{
    return provider_fetches(j->provider) + j->asked;
}
