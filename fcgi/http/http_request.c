#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/parse.h"

#include <string.h>
#include <strings.h>

#define PARAM_PREFIX   "HTTP_MCP_PARAM_"
#define PARAM_NAME_MAX 128

static const struct {
    const char *name;
    size_t offset;
} params[] = {
    {"REQUEST_METHOD", offsetof(struct http_request, method)},
    {"REQUEST_URI", offsetof(struct http_request, uri)},
    {"CONTENT_TYPE", offsetof(struct http_request, content_type)},
    {"CONTENT_LENGTH", offsetof(struct http_request, content_length)},
    {"HTTP_HOST", offsetof(struct http_request, host)},
    {"HTTP_ORIGIN", offsetof(struct http_request, origin)},
    {"HTTP_ACCEPT", offsetof(struct http_request, accept)},
    {"HTTP_AUTHORIZATION", offsetof(struct http_request, authorization)},
    {"HTTP_MCP_PROTOCOL_VERSION", offsetof(struct http_request, mcp_version)},
    {"HTTP_MCP_METHOD", offsetof(struct http_request, mcp_method)},
    {"HTTP_MCP_NAME", offsetof(struct http_request, mcp_name)},
    {"HTTP_MCP_SESSION_ID", offsetof(struct http_request, mcp_session)},
    {"HTTP_LAST_EVENT_ID", offsetof(struct http_request, last_event_id)},
    {"HTTP_ACCESS_CONTROL_REQUEST_HEADERS", offsetof(struct http_request, asked_headers)},
    {"SANDCGI_TENANT", offsetof(struct http_request, tenant)},
    {"SANDCGI_SECRET", offsetof(struct http_request, secret)},
    {"SANDCGI_TOOLS", offsetof(struct http_request, tools)},
    {"SANDCGI_CHECK", offsetof(struct http_request, check)},
    {"SANDCGI_PATH", offsetof(struct http_request, path)},
    {"SANDCGI_BODY_FILE", offsetof(struct http_request, body_file)},
};

void http_request_read(const struct http_source *source, struct http_request *out)
{
    *out = (struct http_request){.source = source};
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        const char *value = source->param(source->ctx, params[i].name);
        if (value && *value)
            *(const char **)((char *)out + params[i].offset) = value;
    }
}

/* Maps a header name to its CGI parameter name; 0: not a character of a header name. */
static char param_char(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)(c - 'a' + 'A');
    if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return c;
    return c == '-' ? '_' : '\0';
}

const char *http_request_param_header(void *ctx, const char *name)
{
    const struct http_request *r = ctx;
    char full[sizeof PARAM_PREFIX + PARAM_NAME_MAX] = PARAM_PREFIX;
    size_t at = sizeof PARAM_PREFIX - 1;

    for (; *name; name++, at++) {
        if (at + 1 >= sizeof full || !param_char(*name))
            return NULL;
        full[at] = param_char(*name);
    }
    full[at] = '\0';
    return r->source->param(r->source->ctx, full);
}

struct mcp_origin http_request_origin(struct http_request *r)
{
    return (struct mcp_origin){.http = true,
                               .tenant = r->tenant,
                               .protocol_version = r->mcp_version,
                               .method = r->mcp_method,
                               .name = r->mcp_name,
                               .session = r->mcp_session,
                               .accept = r->accept,
                               .param_header = http_request_param_header,
                               .param_ctx = r,
                               .cancel_fd = r->source->cancel_fd};
}

bool http_request_is(const struct http_request *r, const char *method)
{
    return r->method && strcmp(r->method, method) == 0;
}

/* ---- checks ---- */

/* A piece of a longer text. */
struct piece {
    const char *text;
    size_t len;
};

static bool piece_is(struct piece p, const char *text, size_t len)
{
    return p.len == len && strncasecmp(p.text, text, len) == 0;
}

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

/* The scheme and authority of PUBLIC_BASE_URL. */
static bool is_own_origin(const char *base_url, const char *origin)
{
    size_t len = strlen(origin);
    return strncasecmp(base_url, origin, len) == 0 &&
           (base_url[len] == '\0' || base_url[len] == '/');
}

/* A page of the called host, whose name has been checked. */
static bool is_same_origin(const char *host, const char *origin)
{
    if (!host ||
        (strncasecmp(origin, "http://", 7) != 0 && strncasecmp(origin, "https://", 8) != 0))
        return false;
    const char *authority = strstr(origin, "://") + 3;
    return strcasecmp(authority, host) == 0;
}

/* It is repeated in a header line of the answer. */
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

/* Behind our nginx the secret proves that nginx, not the client, has named the tenant. */
int http_guard_front(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    if (app->settings->auth != SETTINGS_AUTH_NGINX)
        return 0;
    if (r->secret &&
        crypto_equal(app->front_secret, strlen(app->front_secret), r->secret, strlen(r->secret)))
        return 0;
    return http_refuse(a, 403, "", "Requests must come from the web server");
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
    return r->tenant
               ? 0
               : http_refuse(a, 401, "WWW-Authenticate: Bearer\r\n", "No tenant (SANDCGI_TENANT)");
}

const struct mcp_server *http_guard_tools(const struct app *app, const struct http_request *r,
                                          struct http_answer *a)
{
    const struct mcp_server *server = app_server(app, r->tools);

    if (!server)
        http_refuse(a, 404, "", "No such set of tools (SANDCGI_TOOLS)");
    return server;
}

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t n = sizeof json - 1;
    return type && strncasecmp(type, json, n) == 0 && (!type[n] || strchr("; \t", type[n]));
}

/* Refuses only an Accept that excludes every format we send: many clients send it wrongly. */
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
    /* One byte more than expected also consumes the end of the body. */
    for (long n; got <= length; got += (size_t)n)
        if ((n = source->read(source->ctx, room + got, (size_t)length + 1 - got)) <= 0)
            break;
    if (got != length)
        return http_refuse(a, 400, "", "The body is not as long as Content-Length says");
    buf_grew(body, got);
    return 0;
}
