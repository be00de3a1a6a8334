#include "config.h"

#include "fcgi/http.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/broker/client.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define HEAD_MAX   4096
#define ANSWER_MAX (96u * 1024 * 1024) /* output and pictures, twice, escaped: far below this */

/* The parameters that matter, by their CGI names. Nothing else of the request is ever looked at. */
struct http_request {
    const char *method, *uri, *content_type, *content_length;
    const char *origin, *accept, *authorization;
    const char *mcp_version, *mcp_method, *mcp_name;
    const char *tenant, *secret;
};

static const struct {
    const char *name;
    size_t offset;
} params[] = {
    {"REQUEST_METHOD", offsetof(struct http_request, method)},
    {"REQUEST_URI", offsetof(struct http_request, uri)},
    {"CONTENT_TYPE", offsetof(struct http_request, content_type)},
    {"CONTENT_LENGTH", offsetof(struct http_request, content_length)},
    {"HTTP_ORIGIN", offsetof(struct http_request, origin)},
    {"HTTP_ACCEPT", offsetof(struct http_request, accept)},
    {"HTTP_AUTHORIZATION", offsetof(struct http_request, authorization)},
    {"HTTP_MCP_PROTOCOL_VERSION", offsetof(struct http_request, mcp_version)},
    {"HTTP_MCP_METHOD", offsetof(struct http_request, mcp_method)},
    {"HTTP_MCP_NAME", offsetof(struct http_request, mcp_name)},
    {"SANDCGI_TENANT", offsetof(struct http_request, tenant)},
    {"SANDCGI_SECRET", offsetof(struct http_request, secret)},
};

/* An answer being made: a status, extra header lines, a JSON body or none. */
struct http_answer {
    int status;
    const char *headers; /* each line ends in CRLF */
    json_t *body;
    const char *what, *detail; /* for the log line */
};

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {202, "Accepted"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {429, "Too Many Requests"},
    {503, "Service Unavailable"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

static void read_params(const struct http_source *source, struct http_request *r)
{
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        const char *value = source->param(source->ctx, params[i].name);
        if (value && *value)
            *(const char **)((char *)r + params[i].offset) = value;
    }
}

/* Refuses the request with a JSON-RPC error that names no id. Always returns -1. */
static int refuse(struct http_answer *a, int status, const char *headers, const char *message)
{
    a->status = status;
    a->headers = headers;
    a->body = rpc_error_new(NULL, RPC_INVALID_REQUEST, message, NULL);
    return -1;
}

/* Is origin in the comma-separated list? */
static bool in_list(const char *list, const char *origin)
{
    size_t len = strlen(origin);
    for (const char *s = list; *s;) {
        s += strspn(s, ", ");
        size_t n = strcspn(s, ", ");
        if (n == len && strncasecmp(s, origin, n) == 0)
            return true;
        s += n;
    }
    return false;
}

/* The scheme and authority that begin the public URL. */
static bool is_own_origin(const char *base_url, const char *origin)
{
    size_t len = strlen(origin);
    return strncasecmp(base_url, origin, len) == 0 &&
           (base_url[len] == '\0' || base_url[len] == '/');
}

/* No Origin header: not a browser. A foreign one is a page that has no business here (DNS
 * rebinding). */
static int check_origin(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    const struct settings *s = app->settings;
    if (!r->origin || is_own_origin(s->public_base_url, r->origin) ||
        in_list(s->allowed_origins, r->origin))
        return 0;
    return refuse(a, 403, "", "Origin not allowed (SANDCGI_ALLOWED_ORIGINS)");
}

/* Behind our nginx the secret proves that the tenant is nginx's word and not the client's. */
static int check_front(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    if (r->secret &&
        crypto_equal(app->front_secret, strlen(app->front_secret), r->secret, strlen(r->secret)))
        return 0;
    return refuse(a, 403, "", "This server answers only through its web server");
}

static const char *bearer_token(const struct http_request *r)
{
    if (!r->authorization || strncasecmp(r->authorization, "Bearer ", 7) != 0)
        return NULL;
    const char *token = r->authorization + 7;
    return token + strspn(token, " ");
}

/* Who is asking? Sets r->tenant. */
static int check_token(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const char *token = bearer_token(r);
    r->tenant = token ? app_tenant_of_token(app, token) : NULL;
    if (r->tenant)
        return 0;
    if (!token)
        return refuse(a, 401, "WWW-Authenticate: Bearer\r\n",
                      "Send the header Authorization: Bearer <token>");
    return refuse(a, 401, "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n", "Invalid token");
}

static int check_who(const struct app *app, struct http_request *r, struct http_answer *a)
{
    if (app->settings->auth == SETTINGS_AUTH_TOKEN)
        return check_token(app, r, a);
    if (check_front(app, r, a) < 0)
        return -1;
    return r->tenant ? 0 : refuse(a, 401, "WWW-Authenticate: Bearer\r\n", "No tenant was named");
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

static int check_shape(const struct http_request *r, struct http_answer *a)
{
    if (!r->method || strcmp(r->method, "POST") != 0)
        return refuse(a, 405, "Allow: POST\r\n", "Use POST");
    if (!is_json_type(r->content_type))
        return refuse(a, 415, "", "Content-Type must be application/json");
    if (!acceptable(r->accept))
        return refuse(a, 406, "", "Accept must allow application/json");
    return 0;
}

static int read_body(const struct app *app, const struct http_source *source,
                     const struct http_request *r, struct buf *body, struct http_answer *a)
{
    uint64_t length;
    if (!r->content_length || parse_u64(r->content_length, 0, UINT64_MAX, &length) < 0)
        return refuse(a, 400, "", "Content-Length is missing");
    if (length > app->settings->max_body)
        return refuse(a, 413, "", "The body is over SANDCGI_MAX_BODY");
    char *room = buf_reserve(body, (size_t)length + 1);
    size_t got = 0;
    /* Asking for one byte more also takes the end of the body off the wire. */
    for (long n; got <= length; got += (size_t)n)
        if ((n = source->read(source->ctx, room + got, (size_t)length + 1 - got)) <= 0)
            break;
    if (got != length)
        return refuse(a, 400, "", "The body is not as long as Content-Length says");
    buf_grew(body, got);
    return 0;
}

static void serve_mcp(const struct app *app, const struct http_source *source,
                      struct http_request *r, struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(app->settings->max_body + 1);
    struct err e = ERR_INIT;
    struct mcp_answer answer = {0};

    if (check_origin(app, r, a) < 0 || check_who(app, r, a) < 0 || check_shape(r, a) < 0 ||
        read_body(app, source, r, &body, a) < 0)
        return;
    json_auto_t *message = json_parse(buf_str(&body), body.len, JSON_MAX_DEPTH, &e);
    const struct mcp_origin origin = {.http = true,
                                      .tenant = r->tenant,
                                      .protocol_version = r->mcp_version,
                                      .method = r->mcp_method,
                                      .name = r->mcp_name,
                                      .cancel_fd = source->cancel_fd};
    if (message)
        mcp_handle(&app->server, &origin, message, &answer);
    else
        mcp_parse_failed(&e, &answer);
    a->status = answer.status;
    a->body = answer.body;
    a->what = answer.method ? answer.method : "-";
    a->detail = answer.detail ? answer.detail : "";
}

/* Healthy means that a call could be served: the broker answers. Tells a stranger nothing else. */
static void serve_health(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const struct broker_client broker = {.path = app->settings->broker, .cancel_fd = -1};
    struct err e = ERR_INIT;

    a->what = "healthz";
    if (app->settings->auth == SETTINGS_AUTH_NGINX && check_front(app, r, a) < 0)
        return;
    bool ok = broker_ping(&broker, &e) == 0;
    a->status = ok ? 200 : 503;
    a->body = json_pack("{s:s}", "status", ok ? "ok" : "unavailable");
}

static bool is_health(const struct http_request *r)
{
    static const char path[] = "/healthz";
    size_t len = r->uri ? strcspn(r->uri, "?") : 0;
    size_t n = sizeof path - 1;
    return len >= n && memcmp(r->uri + len - n, path, n) == 0;
}

static void send_answer(const struct http_source *source, const struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(ANSWER_MAX);
    AUTO_BUF struct buf out = BUF_INIT(ANSWER_MAX + HEAD_MAX);

    if (a->body)
        json_write(a->body, &body);
    buf_addf(&out, "Status: %d %s\r\n%sCache-Control: no-store\r\n", a->status,
             reason_of(a->status), a->headers);
    if (a->body)
        buf_add_str(&out, "Content-Type: application/json\r\n");
    buf_addf(&out, "Content-Length: %zu\r\n\r\n", body.len);
    buf_add(&out, body.data, body.len);
    if (source->write(source->ctx, out.data, out.len) < 0)
        log_debug("the client left before the answer");
}

void http_serve(const struct app *app, const struct http_source *source)
{
    struct http_request r = {0};
    struct http_answer a = {.status = 500, .headers = "", .what = "-", .detail = ""};
    int64_t start = clock_mono_us();

    read_params(source, &r);
    if (is_health(&r))
        serve_health(app, &r, &a);
    else
        serve_mcp(app, source, &r, &a);
    send_answer(source, &a);
    json_decref(a.body);
    log_at(a.status == 200 && a.what[0] == 'h' ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
           "%s %s status=%d tenant=%s us=%" PRId64, a.what, a.detail, a.status,
           r.tenant ? r.tenant : "-", clock_mono_us() - start);
}
