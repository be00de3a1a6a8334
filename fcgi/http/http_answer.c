#include "config.h"

#include "fcgi/http/http_answer.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"

#include <string.h>
#include <strings.h>

#define ASKED_HEADERS_MAX 32
#define RETRY_MS          1000 /* after which a client that lost its connection comes back */
#define TOKEN_CHARS       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"

static const struct {
    int status;
    const char *reason;
} reasons[] = {{200, "OK"},
               {201, "Created"},
               {202, "Accepted"},
               {204, "No Content"},
               {206, "Partial Content"},
               {304, "Not Modified"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {406, "Not Acceptable"},
               {408, "Request Timeout"},
               {409, "Conflict"},
               {410, "Gone"},
               {412, "Precondition Failed"},
               {413, "Content Too Large"},
               {415, "Unsupported Media Type"},
               {416, "Range Not Satisfiable"},
               {421, "Misdirected Request"},
               {429, "Too Many Requests"},
               {503, "Service Unavailable"}};

const char *http_reason(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

int http_refuse(struct http_answer *a, int status, const char *headers, const char *message)
{
    a->status = status;
    a->headers = headers;
    json_decref(a->body);
    a->body = rpc_error_new(NULL, RPC_INVALID_REQUEST, message, NULL);
    return -1;
}

/* Headers that mirror arguments (x-mcp-header) are recognized by their prefix. */
static void add_asked_headers(const char *asked, struct buf *out)
{
    static const char prefix[] = "mcp-param-";
    int n = 0;

    for (const char *s = asked; *s && n < ASKED_HEADERS_MAX;) {
        s += strspn(s, ", \t");
        size_t len = strcspn(s, ", \t");
        if (len >= sizeof prefix && len < 128 && strncasecmp(s, prefix, sizeof prefix - 1) == 0 &&
            strspn(s, TOKEN_CHARS) == len) {
            buf_addf(out, ", %.*s", (int)len, s);
            n++;
        }
        s += len;
    }
}

static void add_cors(const struct http_answer *a, struct buf *out)
{
    buf_addf(out,
             "Access-Control-Allow-Origin: %s\r\n"
             "Vary: Origin\r\n"
             "Access-Control-Expose-Headers: Mcp-Session-Id, WWW-Authenticate\r\n",
             a->allowed);
    if (!a->asked_headers)
        return;
    buf_add_str(out, "Access-Control-Allow-Methods: POST, GET, DELETE\r\n"
                     "Access-Control-Max-Age: 600\r\n"
                     "Access-Control-Allow-Headers: Content-Type, Accept, Authorization, "
                     "MCP-Protocol-Version, Mcp-Session-Id, Last-Event-ID, Mcp-Method, Mcp-Name");
    add_asked_headers(a->asked_headers, out);
    buf_add_str(out, "\r\n");
}

static void add_common(const struct http_answer *a, struct buf *out)
{
    buf_addf(out, "Status: %d %s\r\n%s", a->status, http_reason(a->status), a->headers);
    if (a->allowed)
        add_cors(a, out);
    if (a->session[0])
        buf_addf(out, "Mcp-Session-Id: %s\r\n", a->session);
    if (*log_noted(LOG_TRACE))
        buf_addf(out, "Traceresponse: %s\r\n", log_noted(LOG_TRACE));
}

void http_answer_write(const struct http_answer *a, struct buf *out)
{
    AUTO_BUF struct buf written = BUF_INIT(HTTP_ANSWER_MAX);
    const struct buf *body = a->text.len > 0 ? &a->text : &written;

    add_common(a, out);
    buf_add_str(out, "Cache-Control: no-store\r\n");
    if (a->body)
        json_write(a->body, &written);
    if (body->len > 0)
        buf_add_str(out, "Content-Type: application/json\r\n");
    if (a->status != 204)
        buf_addf(out, "Content-Length: %zu\r\n", body->len);
    buf_add_str(out, "\r\n");
    buf_add(out, body->data, body->len);
}

void http_answer_write_stream_head(const struct http_answer *a, struct buf *out)
{
    add_common(a, out);
    buf_add_str(out, "Content-Type: text/event-stream\r\n"
                     "Cache-Control: no-cache, no-transform\r\n"
                     "X-Accel-Buffering: no\r\n\r\n");
}

/* ---- event streams ---- */

static void stream_write(struct http_stream *s, const struct buf *text)
{
    s->written_ms = clock_mono_ms();
    if (!s->gone && s->source->write(s->source->ctx, text->data, text->len) < 0) {
        log_debug("client left its event stream");
        s->gone = true;
    }
}

static void stream_start(struct http_stream *s, int retry_ms, struct buf *out)
{
    char id[MCP_EVENT_ID_MAX];

    if (s->started)
        return;
    s->started = true;
    http_answer_write_stream_head(s->head, out);
    if (s->out.store) {
        mcp_stream_first_id(s->out.store, id);
        sse_add_priming(out, id, retry_ms);
    }
}

int http_stream_send(void *ctx, const json_t *message)
{
    struct http_stream *s = ctx;
    AUTO_BUF struct buf text = BUF_INIT(HTTP_ANSWER_MAX + HTTP_HEAD_MAX);
    char id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;
    bool stored = s->out.store && mcp_stream_add(s->out.store, message, id, &e) == 0;

    if (s->out.store && !stored)
        log_debug("event not stored: %s", e.text);
    stream_start(s, RETRY_MS, &text);
    sse_add_message(&text, stored ? id : NULL, message);
    stream_write(s, &text);
    return stored || !s->gone ? 0 : -1;
}

void http_stream_keep_alive(void *ctx)
{
    struct http_stream *s = ctx;
    AUTO_BUF struct buf text = BUF_INIT(HTTP_HEAD_MAX);

    if (clock_mono_ms() - s->written_ms < SSE_KEEP_ALIVE_MS)
        return;
    stream_start(s, RETRY_MS, &text);
    sse_add_comment(&text);
    stream_write(s, &text);
}

/* To resume the stream the client needs the id of the priming event, or of a later one. */
static void stream_hang_up(void *ctx, int retry_ms)
{
    struct http_stream *s = ctx;
    AUTO_BUF struct buf text = BUF_INIT(HTTP_HEAD_MAX);

    if (!s->out.store || s->gone)
        return;
    if (s->started)
        buf_addf(&text, "retry: %d\n\n", retry_ms);
    else
        stream_start(s, retry_ms, &text);
    stream_write(s, &text);
    s->source->hang_up(s->source->ctx);
    s->gone = true;
}

void http_stream_init(struct http_stream *s, const struct http_source *source,
                      const struct http_answer *head)
{
    *s = (struct http_stream){.source = source, .head = head, .written_ms = clock_mono_ms()};
    s->out = (struct mcp_out){.send = http_stream_send,
                              .keep_alive = http_stream_keep_alive,
                              .hang_up = source->hang_up ? stream_hang_up : NULL,
                              .ctx = s};
}

void http_stream_finish(struct http_stream *s)
{
    if (s->out.store)
        mcp_stream_end(s->out.store);
    s->out.store = NULL;
}
