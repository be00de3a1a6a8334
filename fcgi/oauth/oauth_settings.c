#include "config.h"

#include "fcgi/oauth/oauth_settings.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/sandbox.h"
#include "common/tools/tools.h"
#include "fcgi/oauth/grant.h"

#include <string.h>

#define BUILTIN     "builtin"
#define SOCKET_NAME "judge.sock"

bool oauth_url_is_plain(const char *url)
{
    return strncmp(url, "http://", 7) == 0;
}

bool oauth_url_is_ok(const char *url)
{
    static const char *const local[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *host = strstr(url, "://");
    size_t len = host ? strcspn(host + 3, "/?#") : 0;

    if (len == 0 || memchr(host + 3, '@', len) || strpbrk(url, " \"\\<>#"))
        return false;
    if (strncmp(url, "https://", 8) == 0)
        return true;
    for (size_t i = 0; oauth_url_is_plain(url) && i < ARRAY_LEN(local); i++) {
        size_t n = strlen(local[i]);
        if (len >= n && strncmp(host + 3, local[i], n) == 0 && (len == n || host[3 + n] == ':'))
            return true;
    }
    return false;
}

static void set_default(char **setting, char *take_text)
{
    free(*setting);
    *setting = take_text;
}

static void fill_in(struct oauth_settings *a, const struct oauth_context *c)
{
    const char *slash = strrchr(c->broker, '/');

    a->builtin = strcmp(c->oauth, BUILTIN) == 0;
    a->issuer = a->builtin ? c->public_base_url : c->oauth;
    a->audience_is_own = !*a->audience;
    a->check = mem_printf("%.*s" SOCKET_NAME, slash ? (int)(slash + 1 - c->broker) : 0, c->broker);
    if (!*a->audience)
        set_default(&a->audience, mem_printf("%s/mcp", c->public_base_url));
    if (!*a->tenant)
        set_default(&a->tenant, mem_strdup(a->builtin ? "{tenant}" : "{sub}"));
    a->scopes = scopes_parse(a->scope_names);
}

/* Without SANDCGI_OAUTH they would do nothing, which is probably a mistake. */
static int check_unused(const struct oauth_settings *a, struct err *e)
{
    const struct {
        const char *name, *value;
    } others[] = {
        {"SANDCGI_OAUTH_AUDIENCE", a->audience},     {"SANDCGI_OAUTH_TENANT", a->tenant},
        {"SANDCGI_OAUTH_SCOPES", a->scope_names},    {"SANDCGI_OAUTH_LIMITS", a->limits},
        {"SANDCGI_OAUTH_INTROSPECT", a->introspect}, {"SANDCGI_OAUTH_CLIENT_FILE", a->client_file}};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (*others[i].value)
            return err_set(e, ERR_INVALID,
                           "%s is set, but SANDCGI_OAUTH is empty; set both or none",
                           others[i].name);
    return 0;
}

int oauth_settings_check(struct oauth_settings *a, const struct oauth_context *c, struct err *e)
{
    struct err why = ERR_INIT;

    if (!*c->oauth)
        return check_unused(a, e);
    fill_in(a, c);
    if (a->builtin && !a->audience_is_own)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH_AUDIENCE is not for SANDCGI_OAUTH=" BUILTIN
                       ", whose tokens are for PUBLIC_BASE_URL; leave it empty");
    if (!a->builtin && !oauth_url_is_ok(c->oauth))
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH must be empty, builtin, or the issuer's URL, which begins "
                       "with https:// (http:// on this machine only), not \"%.100s\"",
                       c->oauth);
    if (strcmp(c->public_base_url, SANDBOX_LOCAL_URLS) == 0)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH needs a PUBLIC_BASE_URL that clients reach the server at");
    if (grant_check_template(a->tenant, &why) < 0)
        return err_set(e, ERR_INVALID, "SANDCGI_OAUTH_TENANT %s", why.text);
    if (*a->scope_names && !a->scopes)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH_SCOPES must be of: " SCOPE_NAMES ", not \"%.60s\"",
                       a->scope_names);
    if (*a->limits && !*c->tenants_file)
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH_LIMITS needs SANDBOX_TENANTS_FILE, whose sections it names");
    if (*a->introspect && (a->builtin || !oauth_url_is_ok(a->introspect)))
        return err_set(e, ERR_INVALID,
                       "SANDCGI_OAUTH_INTROSPECT must be a URL that begins with https://, and is "
                       "not for SANDCGI_OAUTH=" BUILTIN);
    if (!*a->introspect != !*a->client_file)
        return err_set(
            e, ERR_INVALID,
            "SANDCGI_OAUTH_INTROSPECT and SANDCGI_OAUTH_CLIENT_FILE belong together; set "
            "both or none");
    return 0;
}
