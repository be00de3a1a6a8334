#include "config.h"

#include "fcgi/oauth/resource.h"

#include "common/tools/tools.h"

#include <string.h>
#include <strings.h>

#define PLACE      "/mcp"
#define PLACE_MAX  40 /* with the name of a set of tools */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz"

/* ---- audiences ---- */

/* Scheme and authority of a URL, and what follows. */
struct url {
    const char *text;
    size_t scheme, authority; /* bytes of the scheme, of the authority behind "://" */
    const char *path;
    size_t path_len; /* without slashes at the end */
};

static bool url_split(const char *text, struct url *out)
{
    const char *sep = strstr(text, "://");

    if (!sep || strpbrk(text, "?#"))
        return false;
    const char *authority = sep + 3;
    *out = (struct url){
        .text = text, .scheme = (size_t)(sep - text), .authority = strcspn(authority, "/")};
    out->path = authority + out->authority;
    for (out->path_len = strlen(out->path);
         out->path_len > 0 && out->path[out->path_len - 1] == '/'; out->path_len--)
        ;
    const char *port = out->scheme == 5 ? ":443" : ":80";
    size_t n = strlen(port);
    if (out->authority > n && strncmp(out->path - n, port, n) == 0)
        out->authority -= n;
    return true;
}

static bool same_origin(const struct url *a, const struct url *b)
{
    return a->scheme == b->scheme && a->authority == b->authority &&
           strncasecmp(a->text, b->text, a->scheme) == 0 &&
           strncasecmp(a->text + a->scheme + 3, b->text + b->scheme + 3, a->authority) == 0;
}

/* "" or "/NAME". */
static bool is_place_below(const char *rest, size_t len)
{
    return len == 0 || (len > 1 && len < PLACE_MAX && rest[0] == '/' &&
                        strspn(rest + 1, NAME_CHARS) >= len - 1);
}

static bool is_at_or_below(const char *audience, const char *ours)
{
    struct url a, b;

    if (!url_split(ours, &b)) /* a name, not a URL */
        return strcmp(audience, ours) == 0;
    return url_split(audience, &a) && same_origin(&a, &b) && a.path_len >= b.path_len &&
           strncmp(a.path, b.path, b.path_len) == 0 &&
           is_place_below(a.path + b.path_len, a.path_len - b.path_len);
}

bool resource_accepts(const void *ctx, const char *audience)
{
    const struct settings *s = ctx;
    struct url a, base;

    if (is_at_or_below(audience, s->access.audience))
        return true;
    return s->access.audience_is_own && url_split(audience, &a) &&
           url_split(s->public_base_url, &base) && same_origin(&a, &base) &&
           a.path_len == base.path_len && strncmp(a.path, base.path, base.path_len) == 0;
}

/* ---- metadata ---- */

static json_t *scopes_list(void)
{
    json_t *list = json_array();
    char names[SCOPE_TEXT_MAX], *rest = names, *word;

    scopes_format(SCOPE_ALL, names);
    while ((word = strsep(&rest, ",")))
        json_array_append_new(list, json_string(word));
    return list;
}

/* The path of PUBLIC_BASE_URL, "" or "/sandbox". */
static const char *base_path(const struct settings *s)
{
    struct url base;

    return url_split(s->public_base_url, &base) ? base.path : "";
}

/* The well-known part stands before the whole path, or (where another web server takes the path
 * away) behind that of PUBLIC_BASE_URL. */
json_t *resource_metadata(const struct settings *s, const char *path)
{
    const char *base = base_path(s);
    size_t len = strcspn(path, "?"), skip = strlen(base);
    const char *known = memmem(path, len, RESOURCE_WELL_KNOWN, strlen(RESOURCE_WELL_KNOWN));

    if (!known)
        return NULL;
    const char *place = known + strlen(RESOURCE_WELL_KNOWN);
    len -= (size_t)(place - path);
    if (known == path && len >= skip && strncmp(place, base, skip) == 0) {
        place += skip;
        len -= skip;
    }
    while (len > 0 && place[len - 1] == '/')
        len--;
    if (len > 0 && (len < strlen(PLACE) || strncmp(place, PLACE, strlen(PLACE)) != 0 ||
                    !is_place_below(place + strlen(PLACE), len - strlen(PLACE))))
        return NULL;
    return json_pack("{s:o, s:[s], s:o, s:[s], s:s}", "resource",
                     json_sprintf("%s%.*s", s->public_base_url,
                                  len > 0 ? (int)len : (int)strlen(PLACE), len > 0 ? place : PLACE),
                     "authorization_servers", s->access.issuer, "scopes_supported", scopes_list(),
                     "bearer_methods_supported", "header", "resource_name", "sandcgi code sandbox");
}

/* ---- the challenge ---- */

static void add_quoted(struct buf *out, const char *text)
{
    for (const char *c = text; *c; c++)
        buf_add_char(out, *c >= ' ' && *c <= '~' && *c != '"' && *c != '\\' ? *c : '?');
}

void resource_challenge(const struct settings *s, const char *place, const char *error,
                        const char *description, unsigned scopes, struct buf *out)
{
    char names[SCOPE_TEXT_MAX];

    scopes_format(scopes, names);
    for (char *c = names; *c; c++)
        *c = *c == ',' ? ' ' : *c;
    buf_add_str(out, "Bearer realm=\"sandcgi\"");
    if (error)
        buf_addf(out, ", error=\"%s\"", error);
    if (description) {
        buf_add_str(out, ", error_description=\"");
        add_quoted(out, description);
        buf_add_str(out, "\"");
    }
    if (*s->oauth)
        buf_addf(out, ", scope=\"%s\", resource_metadata=\"%s" RESOURCE_WELL_KNOWN "%s\"", names,
                 s->public_base_url, place);
}
