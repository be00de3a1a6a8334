#include "config.h"

#include "fcgi/hub/hub_stream.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/share.h"
#include "common/mcp/call.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "fcgi/http/http_request.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define REQUEST_MS 10000 /* for the request to arrive: nginx has all of it before it connects */
#define END_MS     5000  /* for the web server to take the rest */
#define READ_CHUNK 32768

#define SPARE_FDS    (64 + HUB_PENDING_MAX) /* besides those of the streams */
#define FDS_A_STREAM 2                      /* a replay has its file open */

#define LISTEN_METHOD "subscriptions/listen"
#define ALLOW         "Allow: POST, GET, DELETE, OPTIONS\r\n"

void hub_streams_reserve(uint64_t max_streams)
{
    fdio_allow(max_streams * FDS_A_STREAM + SPARE_FDS);
}

size_t hub_streams_allowed(uint64_t max_streams)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= 2 * SPARE_FDS)
        return (size_t)max_streams;
    uint64_t allowed = (limit.rlim_cur - SPARE_FDS) / FDS_A_STREAM;
    if (allowed >= max_streams)
        return (size_t)max_streams;
    log_warn("SANDCGI_MAX_STREAMS is limited to %ju by RLIMIT_NOFILE", (uintmax_t)allowed);
    return (size_t)allowed;
}

struct hub_stream *hub_stream_new(int take_fd, size_t body_max)
{
    struct hub_stream *s = mem_alloc(sizeof *s);

    *s = (struct hub_stream){.fd = take_fd,
                             .watch = LOOP_WATCH_INIT,
                             .reader = mem_alloc(sizeof *s->reader),
                             .replay_watch = -1,
                             .out = BUF_INIT(HUB_QUEUE_MAX),
                             .comment_at = DEADLINE_NEVER,
                             .give_up = deadline_in_ms(REQUEST_MS)};
    fcgi_reader_init(s->reader, body_max);
    return s;
}

static void drop_reader(struct hub_stream *s)
{
    if (s->reader)
        fcgi_reader_clear(s->reader);
    free(TAKE_PTR(s->reader));
}

void hub_stream_free(struct hub_stream *s)
{
    auto_close_fd(&s->fd);
    drop_reader(s);
    hub_ask_free(s->ask);
    mcp_listen_free(s->listen);
    mcp_replay_free(s->replay);
    buf_clear(&s->out);
    free(s);
}

int hub_stream_receive(struct hub_stream *s, struct err *e)
{
    char room[READ_CHUNK];
    ssize_t n = recv(s->fd, room, sizeof room, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : err_errno(e, "receiving a request");
    if (n == 0)
        return err_set(e, ERR_IO, "the connection ended before the request");
    return fcgi_reader_feed(s->reader, room, (size_t)n, e);
}

void hub_stream_begin(struct hub_stream *s, struct mcp_listen *take_listen,
                      struct mcp_replay *take_replay)
{
    s->request_id = s->reader->request_id;
    s->listen = take_listen;
    s->replay = take_replay;
    if (s->replay)
        s->out.max = HUB_REPLAY_MAX;
    s->comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    s->give_up = DEADLINE_NEVER;
    drop_reader(s);
}

int hub_stream_add(struct hub_stream *s, const void *data, size_t len)
{
    if (s->ending)
        return 0;
    for (const char *at = data, *end = at + len; at < end;) {
        size_t n = end - at < FCGI_RECORD_MAX ? (size_t)(end - at) : FCGI_RECORD_MAX;
        fcgi_record_add(&s->out, FCGI_STDOUT, s->request_id, at, n);
        at += n;
    }
    s->comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    return buf_ok(&s->out) ? 0 : -1;
}

void hub_stream_end(struct hub_stream *s)
{
    if (s->ending)
        return;
    fcgi_record_add_end(&s->out, s->request_id);
    s->ending = true;
    s->comment_at = DEADLINE_NEVER;
    s->give_up = deadline_in_ms(END_MS);
}

int hub_stream_flush(struct hub_stream *s)
{
    while (s->written < s->out.len) {
        ssize_t n = send(s->fd, s->out.data + s->written, s->out.len - s->written,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        s->written += (size_t)n;
    }
    buf_clear(&s->out);
    s->written = 0;
    return 0;
}

/* ---- requests ---- */

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
    a->headers = "Retry-After: 30\r\n";
    refuse_request(
        a, 429, message, RPC_INTERNAL_ERROR,
        "too many streams are open, or too many of this tenant (SANDCGI_MAX_STREAMS); try "
        "again later");
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
    if (!out->replay) { /* not 404: the session is alive */
        http_refuse(a, 400, "", e.text);
    } else if (mcp_replay_is_over(out->replay)) { /* clients take up an empty stream forever */
        mcp_replay_free(out->replay);
        out->replay = NULL;
        http_refuse(a, 405, ALLOW, "the stream has ended, and its last message was sent");
    } else {
        out->stays = true;
    }
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
    if (r->last_event_id && !origin.bare_stream) {
        open_replay(r, out, a);
        return;
    }
    if (!origin.bare_stream && rules->has_session(rules->ctx, mcp_listen_session_id(out->listen))) {
        http_refuse(a, 409, "", "this session has a stream already");
        mcp_listen_free(out->listen);
        out->listen = NULL;
        return;
    }
    out->stays = true;
    sse_add_comment(&out->bytes);
}

static void handle_listen(struct http_request *r, const json_t *message, struct hub_request *out,
                          struct http_answer *a)
{
    const struct mcp_origin origin = http_request_origin(r);
    struct mcp_answer answer = {0};

    mcp_handle(out->server, &origin, message, &answer);
    answer_from_mcp(&answer, a);
    if (answer.to.by != MCP_STAYS)
        http_send_on(r, &answer.to, a);
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
    const char *method = json_get_string(message, "method");
    if (!message) {
        mcp_parse_failed(out->server, &e, &answer);
        answer_from_mcp(&answer, a);
    } else if (!method || strcmp(method, LISTEN_METHOD) != 0) {
        /* The web server has judged by the header Mcp-Method. A call would stop every stream. */
        refuse_request(a, 400, message, MCP_HEADER_MISMATCH,
                       "the header Mcp-Method differs from method");
    } else if (rules->is_full(rules->ctx, r->tenant)) {
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
    else if (rules->is_full(rules->ctx, r->tenant))
        refuse_full(a, NULL);
    else
        judge_get(rules, r, out, a);
}

static struct hub_ask *ask_begin(const struct app *app, const char *authorization,
                                 struct loop *loop, loop_handler *on_ready, void *item)
{
    struct hub_ask *ask = mem_alloc(sizeof *ask);
    struct judge_question *q = &ask->question;

    ask->loop = loop;
    ask->watch = LOOP_WATCH_INIT;
    judge_question_begin(q, app->asks_fd, app->settings->access.check, authorization);
    if (q->fd >= 0 &&
        loop_add(loop, &ask->watch, q->fd, EPOLLIN, on_ready, item, &q->verdict.why) < 0)
        auto_close_fd(&q->fd);
    return ask;
}

struct hub_ask *hub_ask_new(const struct app *app, const struct fcgi_reader *in, struct loop *loop,
                            loop_handler *on_ready, void *item)
{
    struct received received = {.in = in};
    const struct http_source source = {
        .param = received_param, .read = received_read, .ctx = &received, .cancel_fd = -1};
    struct http_answer refusal = HTTP_ANSWER_INIT;
    struct hub_ask *ask = NULL;
    struct http_request r;

    http_request_read(&source, &r);
    if (http_guard_origin(app, &r, &refusal) == 0 && http_must_ask(app, &r))
        ask = ask_begin(app, r.authorization, loop, on_ready, item);
    json_decref(refusal.body);
    return ask;
}

void hub_ask_free(struct hub_ask *ask)
{
    if (!ask)
        return;
    loop_remove(ask->loop, &ask->watch);
    judge_question_clear(&ask->question);
    free(ask);
}

void hub_request_judge(const struct hub_rules *rules, const struct fcgi_reader *in,
                       const struct judge_verdict *asked, struct hub_request *out)
{
    struct received received = {.in = in};
    const struct http_source source = {
        .param = received_param, .read = received_read, .ctx = &received, .cancel_fd = -1};
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_request r;
    int64_t start = clock_mono_us();

    *out = (struct hub_request){.bytes = BUF_INIT(HUB_BODY_MAX)};
    http_request_read(&source, &r);
    r.asked = asked;
    http_request_note(&r);
    request_judge(rules, &r, out, &a);
    mem_give_back();
    out->tenant = share_key(r.tenant);
    struct buf all = BUF_INIT(HTTP_HEAD_MAX + HUB_BODY_MAX);
    if (out->is_stream || out->stays) {
        http_answer_write_stream_head(&a, &all);
        buf_add(&all, out->bytes.data, out->bytes.len);
    } else {
        http_answer_write(&a, &all);
    }
    buf_clear(&out->bytes);
    out->bytes = all;
    a.what = http_request_is(&r, "GET") ? "GET" : "POST";
    a.detail = out->replay ? "replay" : "listen";
    http_request_log(&r, &a, out->stays, clock_mono_us() - start);
    json_decref(a.body);
}
