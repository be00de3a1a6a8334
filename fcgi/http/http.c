#include "config.h"

#include "fcgi/http/http.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/session.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_links.h"
#include "fcgi/http/http_request.h"

#include <inttypes.h>
#include <string.h>

#define ALLOW "Allow: POST, DELETE, OPTIONS\r\n"

static void answer_from_mcp(const struct mcp_answer *from, struct http_answer *a)
{
    a->status = from->status;
    a->body = from->body;
    a->text = from->text;
    a->what = from->method ? from->method : "-";
    a->detail = from->detail ? from->detail : "";
    memcpy(a->session, from->session, sizeof a->session);
    memcpy(a->trace, from->trace, sizeof a->trace);
}

/* A subscription, which a worker does not hold open: acknowledges and ends it. nginx sends such
 * requests to the hub. */
static void serve_listen(const struct mcp_server *server, struct http_stream *stream,
                         struct mcp_listen *l, const json_t *acknowledgement)
{
    json_auto_t *end = mcp_listen_end(l, server);

    http_stream_send(stream, acknowledgement);
    if (end)
        http_stream_send(stream, end);
    mcp_listen_free(l);
}

/* Clients of another server read errors only from an answer with 200. */
static int status_of(const struct mcp_server *server, const struct mcp_answer *answer)
{
    bool always_200 = server->error_style && server->error_style->always_200;

    return always_200 && answer->status == 400 ? 200 : answer->status;
}

static void handle_message(const struct mcp_server *server, struct http_request *r,
                           const struct buf *body, struct http_stream *stream,
                           struct http_answer *a)
{
    struct err e = ERR_INIT;
    struct mcp_answer answer = {0};
    json_auto_t *message = json_parse(buf_str(body), body->len, JSON_MAX_DEPTH, &e);
    struct mcp_origin origin = http_request_origin(r);

    origin.out = &stream->out;
    origin.takes_text = true;
    a->status = 200; /* of an event stream, if one begins */
    if (message)
        mcp_handle(server, &origin, message, &answer);
    else
        mcp_parse_failed(server, &e, &answer);
    answer.status = status_of(server, &answer);
    answer_from_mcp(&answer, a);
    if (answer.listen)
        serve_listen(server, stream, answer.listen, answer.body);
    else if (stream->started && answer.body)
        http_stream_send(stream, answer.body);
}

static void serve_post(const struct app *app, const struct mcp_server *server,
                       struct http_request *r, struct http_stream *stream, struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(app->settings->max_body + 1);

    if (http_guard_shape(r, a) == 0 && http_read_body(r, app->settings->max_body, &body, a) == 0)
        handle_message(server, r, &body, stream, a);
}

static void serve_delete(const struct mcp_server *server, struct http_request *r,
                         struct http_answer *a)
{
    const struct mcp_origin origin = http_request_origin(r);
    struct mcp_answer answer = {0};

    mcp_session_delete(server, &origin, &answer);
    answer_from_mcp(&answer, a);
    a->what = "DELETE";
    if (a->status == 405)
        a->headers = ALLOW;
}

static void serve_mcp(const struct app *app, struct http_request *r, struct http_stream *stream,
                      struct http_answer *a)
{
    const struct mcp_server *server;

    if (http_guard_origin(app, r, a) < 0)
        return;
    if (http_request_is(r, "OPTIONS")) { /* preflight of a browser, sent without a token */
        a->status = 204;
        a->headers = ALLOW;
        a->asked_headers = r->asked_headers ? r->asked_headers : "";
        return;
    }
    if (http_guard_who(app, r, a) < 0 || !(server = http_guard_tools(app, r, a)))
        return;
    if (http_request_is(r, "POST"))
        serve_post(app, server, r, stream, a);
    else if (http_request_is(r, "DELETE"))
        serve_delete(server, r, a);
    else
        http_refuse(a, 405, ALLOW, "Use POST");
}

/* Healthy: the broker answers. Unauthenticated, so it tells nothing else. */
static void serve_health(const struct app *app, struct http_request *r, struct http_answer *a)
{
    const struct broker_client broker = {
        .path = app->settings->broker, .cancel_fd = -1, .leave_fd = -1};
    struct err e = ERR_INIT;

    a->what = "healthz";
    if (http_guard_front(app, r, a) < 0)
        return;
    bool ok = broker_ping(&broker, &e) == 0;
    a->status = ok ? 200 : 503;
    a->quiet = ok;
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
    AUTO_BUF struct buf out = BUF_INIT(HTTP_ANSWER_MAX + HTTP_HEAD_MAX);

    http_answer_write(a, &out);
    if (source->write(source->ctx, out.data, out.len) < 0)
        log_debug("client left before the answer");
}

void http_serve(const struct app *app, const struct http_source *source)
{
    struct http_request r;
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_stream stream;
    int64_t start = clock_mono_us();

    http_request_read(source, &r);
    http_stream_init(&stream, source, &a);
    if (r.check)
        http_check_serve(app, &r, &a);
    else if (is_health(&r))
        serve_health(app, &r, &a);
    else if (http_upload_is(&r))
        http_upload_serve(app, &r, &a);
    else if (http_archive_is(&r))
        http_archive_serve(app, &r, &a);
    else
        serve_mcp(app, &r, &stream, &a);
    if (!stream.started && !a.sent)
        send_answer(source, &a);
    http_stream_finish(&stream);
    json_decref(a.body);
    buf_clear(&a.text);
    log_at(a.quiet ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
           "%s %s status=%d%s tenant=%s us=%" PRId64 "%s%s", a.what, a.detail, a.status,
           stream.started ? " stream" : "", r.tenant ? r.tenant : "-", clock_mono_us() - start,
           a.trace[0] ? " trace=" : "", a.trace);
}
