/* An access token in the first line and an issuer's set of keys in the rest: whatever they say,
 * what is taken is bounded, and reasons can stand in a header. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "fcgi/oauth/grant.h"
#include "fcgi/oauth/jwt.h"
#include "tests/fuzz/fuzz.h"

static bool any_audience(const void *ctx, const char *audience)
{
    (void)ctx;
    return *audience != '\0';
}

static void check_grant(const json_t *claims)
{
    static const struct grant_rules rules = {.tenant = "t-{sub}", .limits = "a.groups"};
    struct grant grant;
    struct err e = ERR_INIT;

    if (grant_make(claims, &rules, &grant, &e) < 0) {
        promise_error(&e);
        return;
    }
    PROMISE(token_tenant_is_valid(grant.tenant) && strncmp(grant.tenant, "t-", 2) == 0);
    PROMISE(!(grant.scopes & ~(unsigned)SCOPE_ALL) && !*grant.limits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, len < 65536 ? len : 65536);
    const struct jwt_rules rules = {
        .issuer = "https://id.example", .audience_ok = any_audience, .now_s = 2000000000};
    struct err e = ERR_INIT;
    struct jwks keys = {0};
    struct jwt jwt;
    char *set = text;
    const char *token = strsep(&set, "\n");

    if (set && jwks_parse(set, strlen(set), &keys, &e) < 0)
        promise_error(&e);
    PROMISE(keys.n <= JWKS_KEYS_MAX);
    for (size_t i = 0; i < keys.n; i++)
        PROMISE(keys.items[i].alg < JWT_ALGS);
    e = ERR_INIT;
    if (jwt_read(token, &rules, &jwt, &e) == 0) {
        PROMISE(jwt.expires_s + JWT_LEEWAY_S > rules.now_s && strlen(token) <= JWT_MAX);
        jwks_find(&keys, jwt.has_kid ? jwt.kid : NULL, jwt.alg);
        for (size_t i = 0; i < keys.n; i++)
            jwk_verify(&keys.items[i], token, strlen(token));
        check_grant(jwt.claims);
        jwt_clear(&jwt);
    } else {
        promise_error(&e);
        for (const char *c = e.text; *c; c++)
            PROMISE(*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\');
    }
    jwks_clear(&keys);
    return 0;
}
