#include "config.h"

#include "fcgi/http/http_request.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/network.h"
#include "common/base/parse.h"
#include "common/base/trace.h"
#include "fcgi/call_log.h"
#include "fcgi/http/body_pace.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PARAM_PREFIX     "HTTP_MCP_PARAM_"
#define PARAM_NAME_MAX   128
#define JSON_TYPE        "application/json"
#define FREEING_BODY_MAX 4096 /* of a message that has room only if it ends something */

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
    {"HTTP_RANGE", offsetof(struct http_request, range)},
    {"HTTP_IF_RANGE", offsetof(struct http_request, if_range)},
    {"HTTP_IF_MATCH", offsetof(struct http_request, if_match)},
    {"HTTP_IF_NONE_MATCH", offsetof(struct http_request, if_none_match)},
    {"HTTP_IF_MODIFIED_SINCE", offsetof(struct http_request, if_modified_since)},
    {"HTTP_IF_UNMODIFIED_SINCE", offsetof(struct http_request, if_unmodified_since)},
    {"HTTP_ACCESS_CONTROL_REQUEST_HEADERS", offsetof(struct http_request, asked_headers)},
    {"HTTP_SANDCGI_EDGE", offsetof(struct http_request, edge_secret)},
    {"HTTP_SANDCGI_ROUTE", offsetof(struct http_request, edge_route)},
    {"HTTP_SANDCGI_AGAIN", offsetof(struct http_request, edge_again)},
    {"HTTP_SANDCGI_STANDIN", offsetof(struct http_request, edge_standin)},
    {"REMOTE_ADDR", offsetof(struct http_request, address)},
    {"HTTP_TRACEPARENT", offsetof(struct http_request, trace)},
    {"SANDCGI_TENANT", offsetof(struct http_request, tenant)},
    {"SANDCGI_SCOPES", offsetof(struct http_request, scope_list)},
    {"SANDCGI_SECRET", offsetof(struct http_request, secret)},
    {"SANDCGI_TOOLS", offsetof(struct http_request, tools)},
    {"SANDCGI_ANSWERS", offsetof(struct http_request, answers)},
    {"SANDCGI_PLACE", offsetof(struct http_request, place)},
    {"SANDCGI_NETWORK", offsetof(struct http_request, network)},
    {"SANDCGI_REUSE", offsetof(struct http_request, reuse)},
    {"SANDCGI_CHECK", offsetof(struct http_request, check)},
    {"SANDCGI_BODY_FILE", offsetof(struct http_request, body_file)},
    {"SANDCGI_CALLS", offsetof(struct http_request, calls)},
    {"SANDCGI_RATE", offsetof(struct http_request, rate)},
    {"SANDCGI_BEARER", offsetof(struct http_request, bearer)},
    {"SANDCGI_LIMITS", offsetof(struct http_request, limits)},
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

/* Clients of the tools of runner had their stream there, before there were sessions. */
static bool is_early_stream(const char *uri)
{
    static const char place[] = "/mcp/events";
    const size_t len = sizeof place - 1;

    return uri && strncmp(uri, place, len) == 0 && strcspn(uri + len, "/?") == 0;
}

struct mcp_origin http_request_origin(struct http_request *r)
{
    return (struct mcp_origin){.http = true,
                               .tenant = r->tenant,
                               .network = r->scopes & SCOPE_NETWORK ? r->network
                                                                    : network_name(NETWORK_NONE),
                               .reuse = r->reuse,
                               .edge = r->behind_edge ? &r->edge : NULL,
                               .protocol_version = r->mcp_version,
                               .method = r->mcp_method,
                               .name = r->mcp_name,
                               .session = r->mcp_session,
                               .bare_stream = is_early_stream(r->uri),
                               .accept = r->accept,
                               .structured = r->answers && strcmp(r->answers, "structured") == 0,
                               .param_header = http_request_param_header,
                               .param_ctx = r,
                               .refused = call_log_refusal,
                               .cancel_fd = r->source->cancel_fd};
}

void http_send_on(struct http_request *r, const struct mcp_elsewhere *to, struct http_answer *a)
{
    if (to->by == MCP_BY_KEY)
        snprintf(r->challenge, sizeof r->challenge,
                 "X-Accel-Redirect: @by_key\r\nSandcgi-Key: %s:%s\r\n", r->tenant, to->name);
    else
        snprintf(r->challenge, sizeof r->challenge,
                 "X-Accel-Redirect: @by_node\r\nSandcgi-Node: %s\r\n", to->name);
    a->status = 421;
    a->headers = r->challenge;
}

void http_request_note(const struct http_request *r)
{
    log_forget();
    log_note(LOG_CLIENT, r->address);
    if (!trace_take(r->trace))
        trace_begin();
}

/* Methods, and what else requests are for: a.what, which a client does not choose freely. */
static void http_count(const struct http_request *r, const char *route, const char *outcome)
{
    AUTO_BUF struct buf labels = BUF_INIT(200);
    uint64_t length = 0;

    metrics_label(&labels, "route", route);
    if (r->content_length && parse_u64(r->content_length, 0, INT64_MAX, &length) == 0)
        metrics_add(METRIC_BYTES_RECEIVED, buf_str(&labels), length);
    if (r->source->sent)
        metrics_add(METRIC_BYTES_SENT, buf_str(&labels), *r->source->sent);
    metrics_label(&labels, "outcome", outcome);
    metrics_add(METRIC_REQUESTS, buf_str(&labels), 1);
}

void http_request_log(const struct http_request *r, const struct http_answer *a, bool stream,
                      int64_t us)
{
    const char *outcome = call_log_outcome(a->status, a->error);
    const bool went_well = strcmp(outcome, "ok") == 0;

    const struct log_field fields[] = {{.name = "status", .number = a->status},
                                       {.name = "outcome", .text = outcome},
                                       {.name = "error", .text = a->error ? a->error : ""},
                                       {.name = "stream", .text = stream ? "yes" : ""},
                                       {.name = "us", .number = us}};
    http_count(r, a->what, outcome);
    log_note(LOG_TENANT, r->tenant);
    if (!went_well && strcmp(a->what, "tools/call") == 0 && *a->detail)
        log_note(LOG_TOOL, a->detail);
    log_with(a->quiet && went_well ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, fields, ARRAY_LEN(fields),
             "%s%s%s", a->what, *a->detail ? " " : "", a->detail);
    log_forget();
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

/* Without the port; the brackets of an IPv6 address stay. */
static struct piece name_of(struct piece authority)
{
    bool bracket = authority.len > 0 && authority.text[0] == '[';
    const char *end = memchr(authority.text, bracket ? ']' : ':', authority.len);

    if (end)
        authority.len = (size_t)(end - authority.text) + bracket;
    return authority;
}

/* HTTP/1.0 needs no Host; a browser always sends one. */
static bool host_allowed(const struct settings *s, const char *host)
{
    static const char local[] = "localhost,127.0.0.1,[::1]";
    if (!host)
        return true;
    const char *base = strstr(s->public_base_url, "://");
    base = base ? base + 3 : s->public_base_url;
    struct piece name = name_of(whole(host));
    struct piece own = name_of((struct piece){base, strcspn(base, "/")});
    return in_list(local, name) || piece_is(name, own.text, own.len) ||
           in_list(s->allowed_hosts, name) || in_list(s->allowed_hosts, whole(host)) ||
           in_list(s->allowed_hosts, whole("*"));
}

bool http_host_is_known(const struct settings *s, const char *host)
{
    struct piece name = name_of(whole(host ? host : ""));

    return host_allowed(s, host) || (name.len > 0 && *name.text == '[') ||
           strspn(name.text, "0123456789.") == name.len;
}

/* A page of PUBLIC_BASE_URL, or of the called host, whose name has been checked. */
static bool is_own_origin(const char *base_url, const char *host, const char *origin)
{
    size_t len = strlen(origin);
    size_t scheme = strncasecmp(origin, "http://", 7) == 0 ? 7 : 8;

    if (strstr(origin, "://") && strncasecmp(base_url, origin, len) == 0 &&
        (!base_url[len] || base_url[len] == '/'))
        return true;
    return host && (scheme == 7 || strncasecmp(origin, "https://", 8) == 0) &&
           strcasecmp(origin + scheme, host) == 0;
}

int http_guard_origin(const struct app *app, const struct http_request *r, struct http_answer *a)
{
    const struct settings *s = app->settings;
    if (!host_allowed(s, r->host))
        log_reason("host", NULL);
    if (!host_allowed(s, r->host))
        return http_refuse(a, 403, "", "Host not allowed (SANDCGI_ALLOWED_HOSTS)");
    if (!r->origin)
        return 0;
    bool printable = true; /* it is repeated in a header line of the answer */
    for (const char *c = r->origin; *c; c++)
        printable = printable && *c > ' ' && *c <= '~';
    if (!printable || !(is_own_origin(s->public_base_url, r->host, r->origin) ||
                        in_list(s->allowed_origins, whole(r->origin)))) {
        log_reason("origin", NULL);
        return http_refuse(a, 403, "", "Origin not allowed (SANDCGI_ALLOWED_ORIGINS)");
    }
    a->allowed = r->origin;
    return 0;
}

int http_refuse_room(const struct http_request *r, struct http_answer *a)
{
    log_reason(r->rate ? "rate" : "max_calls", NULL);
    return http_refuse(
        a, 429, "Retry-After: 1\r\n",
        r->rate ? "Too many calls of this tenant in a short time (RATE); try again later"
                : "Too many calls of this tenant at once (SANDCGI_MAX_CALLS); try again later");
}

int http_guard_room(const struct app *app, struct http_request *r, struct http_answer *a)
{
    uint64_t most = SIZE_MAX, length = 0;
    enum call_room room;

    if (r->calls)
        parse_u64(r->calls, 1, SIZE_MAX, &most);
    room = call_admit(&app->place, r->tenant, most);
    if (room == CALL_HAS_ROOM && !r->rate)
        return 0;
    if (r->content_length && parse_u64(r->content_length, 0, FREEING_BODY_MAX, &length) < 0)
        return http_refuse_room(r, a);
    r->must_free = room != CALL_HAS_NO_ROOM && r->tenant;
    return r->must_free ? 0 : http_refuse_room(r, a);
}

int http_guard_shape(const struct http_request *r, struct http_answer *a)
{
    const char *type = r->content_type, *accept = r->accept;
    size_t n = strlen(JSON_TYPE);

    if (!type || strncasecmp(type, JSON_TYPE, n) != 0 || (type[n] && !strchr("; \t", type[n])))
        return http_refuse(a, 415, "", "Content-Type must be application/json");
    /* Refuses only an Accept that excludes every format we send: many clients send it wrongly. */
    if (accept && !strstr(accept, "*/*") && !strcasestr(accept, "application/") &&
        !strcasestr(accept, "text/event-stream"))
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
        return http_refuse(
            a, 413, "",
            "The body is over SANDCGI_MAX_BODY; at /mcp create_upload makes a link for larger "
            "files");
    char *room = buf_reserve(body, (size_t)length + 1);
    struct body_pace pace = {0};
    struct err e = ERR_INIT;
    size_t got = 0;
    /* One byte more than expected also consumes the end of the body. */
    for (long n; got <= length; got += (size_t)n)
        if ((n = body_read(&pace, source, room + got, (size_t)length + 1 - got, &e)) <= 0)
            break;
    if (e.kind == ERR_CANCELLED)
        return http_refuse(a, 408, "", e.text);
    if (got != length)
        return http_refuse(a, 400, "", "The body is not as long as Content-Length says");
    buf_grew(body, got);
    return 0;
}
