#include "config.h"

#include "fcgi/doctor/weak.h"

#include "common/base/mem.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

/* ---- the conditions ---- */

static bool starts_with_one_of(const char *text, const char *const *starts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static bool consent_is_readable(const struct settings *s)
{
    static const char *const unseen[] = {"https://", "http://127.", "http://localhost",
                                         "http://[::1]"};

    return s->access.builtin && !starts_with_one_of(s->public_base_url, unseen, ARRAY_LEN(unseen));
}

static bool url_has_user(const struct settings *s)
{
    const char *host = strstr(s->public_base_url, "://");

    return host && memchr(host + 3, '@', strcspn(host + 3, "/"));
}

static bool token_has_blanks(const struct settings *s)
{
    return strpbrk(s->api_token, " \t") != NULL;
}

/* Without root, programs have the account of the server, which is known. */
static bool programs_have_an_account(const struct settings *s)
{
    return geteuid() == 0 && strcmp(s->sandbox_user, "auto") != 0 && getpwuid(s->sandbox_uid);
}

/* Those of web servers, whose PHP and CGI programs have it, too. */
static bool workers_share_an_account(const struct settings *s)
{
    static const char *const shared[] = {"www-data", "nginx", "apache", "http"};

    for (size_t i = 0; i < ARRAY_LEN(shared); i++)
        if (strcmp(s->user, shared[i]) == 0)
            return true;
    return false;
}

static bool fastcgi_is_reachable(const struct settings *s)
{
    static const char *const local[] = {"127.", "localhost:", "[::1]:"};

    return *s->listen && !strchr(s->listen, '/') &&
           !starts_with_one_of(s->listen, local, ARRAY_LEN(local));
}

static bool any_image_runs(const struct settings *s)
{
    for (const char *at = s->images; *at; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        if (len == 1 && *at == '*')
            return true;
        at += len;
    }
    return false;
}

/* ---- */

static const struct weakness {
    const char *setting;
    bool (*is)(const struct settings *);
    const char *text, *mend;
} weaknesses[] = {
    {"PUBLIC_BASE_URL", consent_is_readable,
     "SANDCGI_OAUTH=builtin sends passphrase and tokens over the network unencrypted",
     "set an https:// URL"},
    {"PUBLIC_BASE_URL", url_has_user, "each link of a file shows this user and password",
     "take them out"},
    {"MCP_API_TOKEN", token_has_blanks,
     "a token with blanks cannot be sent as a Bearer token (RFC 6750)", "set one without"},
    {"SANDBOX_USER", programs_have_an_account,
     "an account of this machine has this number: a program that left its container would have "
     "its rights",
     "set auto, or a number of no account"},
    {"SANDCGI_USER", workers_share_an_account,
     "programs of web servers have this account: they could read the memory of the workers",
     "make an account of the workers' own"},
    {"SANDCGI_LISTEN", fastcgi_is_reachable,
     "this port is open to the network, and FastCGI is not encrypted",
     "listen on a Unix socket or on 127.0.0.1, or let a firewall admit the web server only"},
    {"SANDBOX_IMAGES", any_image_runs,
     "each image of the engine that has the labels of a runner runs programs",
     "name the repositories"},
};

void check_weak(const struct settings *s, struct findings *out)
{
    for (size_t i = 0; i < ARRAY_LEN(weaknesses); i++) {
        const struct weakness *w = &weaknesses[i];

        if (w->is(s))
            findings_add(out, FINDING_NOTE, "settings", w->mend, "%s: %s", w->setting, w->text);
    }
}
