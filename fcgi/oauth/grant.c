#include "config.h"

#include "fcgi/oauth/grant.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <string.h>

#define HASH_END    ":hash"
#define HASH_BYTES  16
#define CLAIM_MAX   64
#define VALUES_MAX  200
#define SCOPE_CHARS "abcdefghijklmnopqrstuvwxyz"

/* By its name, else as a path of names with dots between (realm_access.roles). */
static const json_t *claim_find(const json_t *claims, const char *name)
{
    const json_t *found = json_object_get(claims, name);
    char part[CLAIM_MAX + 1];

    if (found || !strchr(name, '.'))
        return found;
    for (found = claims; found && *name; name += strcspn(name, "."), name += *name == '.') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "."), name);
        found = json_object_get(found, part);
    }
    return found;
}

/* Of a value that is a text, or the i-th of a list. NULL: none, or with a NUL inside. */
static const char *text_at(const json_t *value, size_t i)
{
    const json_t *one = json_is_array(value) ? json_array_get(value, i) : i == 0 ? value : NULL;
    const char *text = json_string_value(one);

    return text && strlen(text) == json_string_length(one) ? text : NULL;
}

/* ---- the tenant ---- */

/* The next piece of a template: literal text, or {CLAIM} whose name goes to claim. NULL: an opening
 * brace without its end, or a name that is too long. */
static const char *piece_next(const char *at, char claim[CLAIM_MAX + 1], bool *out_hash)
{
    size_t len = strcspn(at, "{}");

    claim[0] = '\0';
    *out_hash = false;
    if (len > 0)
        return at + len;
    len = strcspn(++at, "{}");
    if (at[-1] != '{' || at[len] != '}')
        return NULL;
    const char *end = at + len + 1;
    if (len > strlen(HASH_END) && strncmp(at + len - strlen(HASH_END), HASH_END, 5) == 0) {
        *out_hash = true;
        len -= strlen(HASH_END);
    }
    if (len == 0 || len > CLAIM_MAX)
        return NULL;
    memcpy(claim, at, len);
    claim[len] = '\0';
    return end;
}

int grant_check_template(const char *text, struct err *e)
{
    AUTO_BUF struct buf sample = BUF_INIT(TOKEN_TENANT_MAX);
    char claim[CLAIM_MAX + 1];
    bool hash, claims = false;

    for (const char *at = text, *end; *at; at = end) {
        end = piece_next(at, claim, &hash);
        if (!end)
            return err_set(e, ERR_INVALID,
                           "must be text with claims such as {sub} or {email:hash} in it, not "
                           "\"%.60s\"",
                           text);
        claims = claims || *claim;
        if (*claim)
            buf_add_char(&sample, 'x');
        else
            buf_add(&sample, at, (size_t)(end - at));
    }
    if (!claims || !buf_ok(&sample) || !token_tenant_is_valid(buf_str(&sample)))
        return err_set(e, ERR_INVALID,
                       "must make a tenant's name of at most %d letters, digits, dots, dashes and "
                       "underscores of at least one claim, not \"%.60s\"",
                       TOKEN_TENANT_MAX, text);
    return 0;
}

static int tenant_make(const json_t *claims, const char *template, struct grant *out, struct err *e)
{
    AUTO_BUF struct buf name = BUF_INIT(TOKEN_TENANT_MAX);
    char claim[CLAIM_MAX + 1], tag[CRYPTO_HEX_LEN(HASH_BYTES)];
    bool hash;

    for (const char *at = template, *end; *at; at = end) {
        end = piece_next(at, claim, &hash);
        if (!end) /* grant_check_template has seen it */
            return err_set(e, ERR_INTERNAL, "the template of tenants is not valid");
        const char *value = *claim ? text_at(claim_find(claims, claim), 0) : NULL;
        if (*claim && (!value || !*value))
            return err_set(e, ERR_DENIED, "the token has no claim %s, which names the tenant",
                           claim);
        if (hash) {
            crypto_tag(value, HASH_BYTES, tag);
            buf_add_str(&name, tag);
        } else if (value) {
            buf_add_str(&name, value);
        } else {
            buf_add(&name, at, (size_t)(end - at));
        }
    }
    if (!buf_ok(&name) || !token_tenant_is_valid(buf_str(&name)))
        return err_set(e, ERR_DENIED,
                       "the claims of the token make no tenant's name of at most %d letters, "
                       "digits, dots, dashes and underscores (SANDCGI_OAUTH_TENANT)",
                       TOKEN_TENANT_MAX);
    memcpy(out->tenant, name.data, name.len + 1);
    return 0;
}

/* ---- scopes and limits ---- */

/* Names of others' scopes may stand among ours. */
static unsigned scopes_among(const char *list)
{
    unsigned scopes = 0;
    char word[SCOPE_TEXT_MAX];

    for (const char *s = list + strspn(list, " "); *s; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        if (len < sizeof word && strspn(s, SCOPE_CHARS) == len) {
            snprintf(word, sizeof word, "%.*s", (int)len, s);
            scopes |= scopes_parse(word);
        }
        s += len;
    }
    return scopes;
}

static unsigned scopes_of(const json_t *claims)
{
    const json_t *list = json_object_get(claims, "scp");
    const char *scope = json_get_string(claims, "scope"), *one;
    unsigned scopes = scope ? scopes_among(scope) : 0;

    for (size_t i = 0; i < VALUES_MAX && (one = text_at(list, i)); i++)
        scopes |= scopes_among(one);
    return scopes;
}

/* The first group, in the order of the token, that has a section. */
static void limits_find(const json_t *claims, const struct grant_rules *rules, struct grant *out)
{
    const json_t *groups = *rules->limits ? claim_find(claims, rules->limits) : NULL;
    const char *group;

    for (size_t i = 0; i < VALUES_MAX && (group = text_at(groups, i)); i++) {
        const struct tenant_limits *row = tenants_find(rules->tenants, group);
        if (row->name && strcmp(row->name, group) == 0) {
            snprintf(out->limits, sizeof out->limits, "%s", group);
            return;
        }
    }
}

int grant_make(const json_t *claims, const struct grant_rules *rules, struct grant *out,
               struct err *e)
{
    const char *id = json_get_string(claims, "gid");

    *out = (struct grant){.scopes = scopes_of(claims) | rules->scopes};
    if (json_object_get(claims, "gid") && (!id || strlen(id) > GRANT_ID_MAX))
        return err_set(e, ERR_INVALID, "the name of the token's grant (gid) is not valid");
    memcpy(out->id, id ? id : "", id ? strlen(id) + 1 : 1);
    limits_find(claims, rules, out);
    return tenant_make(claims, rules->tenant, out, e);
}
