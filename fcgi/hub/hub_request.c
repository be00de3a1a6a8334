#include "config.h"

#include "fcgi/hub/hub_request.h"

#include "common/base/log.h"
#include "common/mcp/call.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "fcgi/http/http_request.h"

#include <string.h>

#define LISTEN_METHOD "subscriptions/listen"
#define ALLOW         "Allow: POST, GET, DELETE, OPTIONS\r\n"
#define RETRY_AFTER   "Retry-After: 30\r\n"

/* A received request as the HTTP rules read it. */
struct received {
    const struct fcgi_reader *in;
    size_t taken; /* of the body */
};

static const char *received_param(void *ctx, const char *name)
{
    const struct received *r = ctx;

    return fcgi_reader_param(r->in, name);
}

static long received_read(void *ctx, char *data, size_t len)
{
    struct received *r = ctx;
    size_t left = r->in->body.len - r->taken, n = len < left ? len : left;

    memcpy(data, buf_str(&r->in->body) + r->taken, n);
    r->taken += n;
    return (long)n;
}

/* A refusal that names the request. */
static void refuse_request(struct http_answer *a, int status, const json_t *message, int code,
                           const char *text)
{
    struct rpc_message parsed = {0};
    struct err e = ERR_INIT;

    if (message)
        (void)rpc_classify(message, &parsed, &e); /* sets the id when there is a usable one */
    a->status = status;
    json_decref(a->body);
    a->body = rpc_error_new(parsed.id, code, text, NULL);
}

static void refuse_full(struct http_answer *a, const json_t *message)
{
    a->headers = RETRY_AFTER;
    refuse_request(a, 429, message, RPC_INTERNAL_ERROR,
                   "too many streams are open (SANDCGI_MAX_STREAMS); try again later");
}

static void answer_from_mcp(struct mcp_answer *from, struct http_answer *a)
{
    a->status = from->status;
    json_decref(a->body);
    a->body = from->body;
}

/* The stored messages of an earlier stream. */
static void open_replay(const struct http_request *r, struct hub_request *out,
                        struct http_answer *a)
{
    struct err e = ERR_INIT;

    out->replay = mcp_replay_open(out->server->sessions_fd, mcp_listen_session_id(out->listen),
                                  r->last_event_id, &e);
    mcp_listen_free(out->listen);
    out->listen = NULL;
    if (out->replay)
        out->stays = true;
    else /* not 404: the session is alive */
        http_refuse(a, 400, "", e.text);
}

static void judge_get(const struct hub_rules *rules, struct http_request *r,
                      struct hub_request *out, struct http_answer *a)
{
    const struct mcp_origin origin = http_request_origin(r);
    struct mcp_answer answer = {0};

    if (mcp_listen_session(out->server, &origin, &out->listen, &answer) < 0) {
        answer_from_mcp(&answer, a);
        a->headers = a->status == 405 ? ALLOW : "";
        return;
    }
    a->status = 200;
    if (r->last_event_id) {
        open_replay(r, out, a);
        return;
    }
    if (rules->has_session(rules->ctx, mcp_listen_session_id(out->listen))) {
        http_refuse(a, 409, "", "this session has a stream already");
        mcp_listen_free(out->listen);
        out->listen = NULL;
        return;
    }
    out->stays = true;
    sse_add_comment(&out->bytes);
}

/*
 * The web server has judged by the header Mcp-Method. Whatever else the body says must not be done
 * here: a call that takes its time would hold up every stream.
 */
static bool is_listen(const json_t *message)
{
    const char *method = json_get_string(message, "method");
    return method && strcmp(method, LISTEN_METHOD) == 0;
}

static void handle_listen(struct http_request *r, const json_t *message, struct hub_request *out,
                          struct http_answer *a)
{
    const struct mcp_origin origin = http_request_origin(r);
    struct mcp_answer answer = {0};

    mcp_handle(out->server, &origin, message, &answer);
    answer_from_mcp(&answer, a);
    if (!answer.listen)
        return;
    a->status = 200;
    out->listen = answer.listen;
    out->is_stream = true;
    out->stays = !mcp_listen_is_empty(out->listen);
    sse_add_message(&out->bytes, NULL, answer.body);
    json_auto_t *end = out->stays ? NULL : mcp_listen_end(out->listen, out->server);
    if (end)
        sse_add_message(&out->bytes, NULL, end);
}

static void judge_post(const struct hub_rules *rules, struct http_request *r,
                       struct hub_request *out, struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(HUB_BODY_MAX + 1);
    struct err e = ERR_INIT;
    struct mcp_answer answer = {0};

    if (http_guard_shape(r, a) < 0 || http_read_body(r, HUB_BODY_MAX, &body, a) < 0)
        return;
    json_auto_t *message = json_parse(buf_str(&body), body.len, JSON_MAX_DEPTH, &e);
    if (!message) {
        mcp_parse_failed(out->server, &e, &answer);
        answer_from_mcp(&answer, a);
    } else if (!is_listen(message)) {
        refuse_request(a, 400, message, MCP_HEADER_MISMATCH,
                       "the header Mcp-Method differs from method");
    } else if (rules->is_full(rules->ctx)) {
        refuse_full(a, message);
    } else {
        handle_listen(r, message, out, a);
    }
}

static void request_judge(const struct hub_rules *rules, struct http_request *r,
                          struct hub_request *out, struct http_answer *a)
{
    if (http_guard_origin(rules->app, r, a) < 0 || http_guard_who(rules->app, r, a) < 0 ||
        !(out->server = http_guard_tools(rules->app, r, a)))
        return;
    if (http_request_is(r, "POST"))
        judge_post(rules, r, out, a);
    else if (!http_request_is(r, "GET"))
        http_refuse(a, 405, ALLOW, "Use POST");
    else if (rules->is_full(rules->ctx))
        refuse_full(a, NULL);
    else
        judge_get(rules, r, out, a);
}

/* The head in front of what the stream begins with; an answer that is none is complete. */
static void request_write_head(struct hub_request *out, const struct http_answer *a)
{
    struct buf all = BUF_INIT(HTTP_HEAD_MAX + HUB_BODY_MAX);

    if (out->is_stream || out->stays) {
        http_answer_write_stream_head(a, &all);
        buf_add(&all, out->bytes.data, out->bytes.len);
    } else {
        http_answer_write(a, &all);
    }
    buf_clear(&out->bytes);
    out->bytes = all;
}

void hub_request_judge(const struct hub_rules *rules, const struct fcgi_reader *in,
                       struct hub_request *out)
{
    struct received received = {.in = in};
    const struct http_source source = {
        .param = received_param, .read = received_read, .ctx = &received, .cancel_fd = -1};
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_request r;

    *out = (struct hub_request){.bytes = BUF_INIT(HUB_BODY_MAX)};
    http_request_read(&source, &r);
    request_judge(rules, &r, out, &a);
    request_write_head(out, &a);
    log_info("%s %s status=%d%s tenant=%s", http_request_is(&r, "GET") ? "GET" : "POST",
             out->replay ? "replay" : "listen", a.status, out->stays ? " stream" : "",
             r.tenant ? r.tenant : "-");
    json_decref(a.body);
}
