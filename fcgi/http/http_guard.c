#include "config.h"

#include "fcgi/http/http_guard.h"

#include "common/base/crypto.h"
#include "common/base/parse.h"

#include <string.h>
#include <strings.h>

/* A piece of a longer text. */
struct piece {
    const char *text;
    size_t len;
};

static bool piece_is(struct piece p, const char *text, size_t len)
{
    return p.len == len && strncasecmp(p.text, text, len) == 0;
}

/* Is the word in the comma-separated list? */
static bool in_list(const char *list, struct piece word)
{
    for (const char *s = list; *s;) {
        s += strspn(s, ", ");
        size_t n = strcspn(s, ", ");
        if (n > 0 && piece_is(word, s, n))
            return true;
        s += n;
    }
    return false;
}

static struct piece whole(const char *s)
{
    return (struct piece){s, strlen(s)};
}

/* "host:port" of "https://host:port/…". */
static struct piece authority_of(const char *url)
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    return (struct piece){start, strcspn(start, "/")};
}

/* Without the port; the brackets of an IPv6 address stay. */
static struct piece name_of(struct piece authority)
{
    const char *end = NULL;
    if (authority.len > 0 && authority.text[0] == '[') {
        end = memchr(authority.text, ']', authority.len);
        return end ? (struct piece){authority.text, (size_t)(end - authority.text) + 1} : authority;
    }
    end = memchr(authority.text, ':', authority.len);
    return end ? (struct piece){authority.text, (size_t)(end - authority.text)} : authority;
}

/* HTTP/1.0 needs no Host; a browser always sends one. */
static bool host_allowed(const struct settings *s, const char *host)
{
    static const char local[] = "localhost,127.0.0.1,[::1]";
    if (!host)
        return true;
    struct piece name = name_of(whole(host));
    struct piece own = name_of(authority_of(s->public_base_url));
    return in_list(local, name) || piece_is(name, own.text, own.len) ||
           in_list(s->allowed_hosts, name) || in_list(s->allowed_hosts, whole(host)) ||
           in_list(s->allowed_hosts, whole("*"));
}

/* The scheme and authority that begin the public URL. */
static bool is_own_origin(const char *base_url, const char *origin)
{
    size_t len = strlen(origin);
    return strncasecmp(base_url, origin, len) == 0 &&
           (base_url[len] == '\0' || base_url[len] == '/');
}

/* A page of the host that was called, whose name has been checked. */
static bool is_same_origin(const char *host, const char *origin)
{
    if (!host ||
        (strncasecmp(origin, "http://", 7) != 0 && strncasecmp(origin, "https://", 8) != 0))
        return false;
    const char *authority = strstr(origin, "://") + 3;
    return strcasecmp(authority, host) == 0;
}

/* Only what a header line of ours can repeat. */
static bool is_printable(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

int http_guard_origin(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    const struct settings *s = app->settings;
    if (!host_allowed(s, r->host))
        return http_refuse(a, 403, "", "Host not allowed (SANDCGI_ALLOWED_HOSTS)");
    if (!r->origin)
        return 0;
    if (!is_printable(r->origin) ||
        !(is_own_origin(s->public_base_url, r->origin) || is_same_origin(r->host, r->origin) ||
          in_list(s->allowed_origins, whole(r->origin))))
        return http_refuse(a, 403, "", "Origin not allowed (SANDCGI_ALLOWED_ORIGINS)");
    a->allowed = r->origin;
    return 0;
}

/* Behind our nginx the secret proves that the tenant is nginx's word and not the client's. */
int http_guard_front(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    if (r->secret &&
        crypto_equal(app->front_secret, strlen(app->front_secret), r->secret, strlen(r->secret)))
        return 0;
    return http_refuse(a, 403, "", "This server answers only through its web server");
}

static const char *bearer_token(const struct http_request *r)
{
    if (!r->authorization || strncasecmp(r->authorization, "Bearer ", 7) != 0)
        return NULL;
    const char *token = r->authorization + 7;
    return token + strspn(token, " ");
}

static int check_token(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const char *token = bearer_token(r);
    r->tenant = token ? app_tenant_of_token(app, token) : NULL;
    if (r->tenant)
        return 0;
    if (!token)
        return http_refuse(a, 401, "WWW-Authenticate: Bearer\r\n",
                           "Send the header Authorization: Bearer <token>");
    return http_refuse(a, 401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n",
                       "Invalid token");
}

int http_guard_who(const struct app *app, struct http_request *r, struct http_answer *a)
{
    if (app->settings->auth == SETTINGS_AUTH_TOKEN)
        return check_token(app, r, a);
    if (http_guard_front(app, r, a) < 0)
        return -1;
    return r->tenant ? 0
                     : http_refuse(a, 401, "WWW-Authenticate: Bearer\r\n", "No tenant was named");
}

const struct mcp_server *http_guard_tools(const struct app *app, const struct http_request *r,
                                          struct http_answer *a)
{
    const struct mcp_server *server = app_server(app, r->tools);

    if (!server)
        http_refuse(a, 404, "", "There is no such set of tools (SANDCGI_TOOLS)");
    return server;
}

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return type && strncasecmp(type, json, n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

/* Only an Accept that excludes everything we could send is refused; clients are sloppy here. */
static bool acceptable(const char *accept)
{
    return !accept || strstr(accept, "*/*") || strcasestr(accept, "application/") ||
           strcasestr(accept, "text/event-stream");
}

int http_guard_shape(const struct http_request *r, struct http_answer *a)
{
    if (!is_json_type(r->content_type))
        return http_refuse(a, 415, "", "Content-Type must be application/json");
    if (!acceptable(r->accept))
        return http_refuse(a, 406, "", "Accept must allow application/json");
    return 0;
}

int http_read_body(const struct http_request *r, uint64_t max, struct buf *body,
                   struct http_answer *a)
{
    const struct http_source *source = r->source;
    uint64_t length;
    if (!r->content_length || parse_u64(r->content_length, 0, UINT64_MAX, &length) < 0)
        return http_refuse(a, 400, "", "Content-Length is missing");
    if (length > max)
        return http_refuse(a, 413, "", "The body is over SANDCGI_MAX_BODY");
    char *room = buf_reserve(body, (size_t)length + 1);
    size_t got = 0;
    /* Asking for one byte more also takes the end of the body off the wire. */
    for (long n; got <= length; got += (size_t)n)
        if ((n = source->read(source->ctx, room + got, (size_t)length + 1 - got)) <= 0)
            break;
    if (got != length)
        return http_refuse(a, 400, "", "The body is not as long as Content-Length says");
    buf_grew(body, got);
    return 0;
}
