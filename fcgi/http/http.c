#include "config.h"

#include "fcgi/commands.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/session.h"
#include "common/protocol/client_call.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "fcgi/http/body_pace.h"
#include "fcgi/http/fastcgi.h"
#include "fcgi/http/http_request.h"
#include "fcgi/oauth/resource.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ALLOW          "Allow: POST, DELETE, OPTIONS\r\n"
#define AWAY           "Retry-After: 5\r\n" /* MCP_AWAY_RETRY_MS */
#define HEALTH         "healthz"
#define READY          "readyz"
#define HEALTH_MS      20000 /* for the broker's answer */
#define PLACE_MCP      "mcp" /* values of SANDCGI_PLACE */
#define PLACE_HEALTH   "health"
#define PLACE_READY    "ready"
#define PLACE_UPLOAD   "upload"
#define PLACE_ARCHIVE  "archive"
#define PLACE_FILE     "file"
#define PLACE_METADATA "metadata"
#define CGI_CHUNK      65536

static void answer_from_mcp(const struct mcp_answer *from, struct http_answer *a)
{
    a->status = from->status;
    a->body = from->body;
    a->text = from->text;
    a->what = from->method ? from->method : "-";
    a->detail = from->detail ? from->detail : "";
    memcpy(a->session, from->session, sizeof a->session);
    a->error = from->error;
}

static void serve_post(const struct app *app, const struct mcp_server *server,
                       struct http_request *r, struct http_stream *stream, struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(app->settings->max_body + 1);
    struct err e = ERR_INIT;
    struct mcp_answer answer = {0};
    struct mcp_origin origin = http_request_origin(r);

    if (http_guard_shape(r, a) < 0 || http_read_body(r, app->settings->max_body, &body, a) < 0)
        return;
    json_auto_t *message = json_parse(buf_str(&body), body.len, JSON_MAX_DEPTH, &e);
    buf_clear(&body); /* the call may wait */
    if (r->must_free && !(message && mcp_frees(server, message))) {
        http_refuse_room(r, a);
        return;
    }
    if (message && http_guard_scopes(app, r, message, &server, a) < 0)
        return;
    origin.out = &stream->out;
    origin.takes_text = true;
    if (r->accept && strcasestr(r->accept, "text/event-stream"))
        client_while_waiting(http_stream_keep_alive, stream);
    a->status = 200; /* of an event stream, if one begins */
    if (message)
        mcp_handle(server, &origin, message, &answer);
    else
        mcp_parse_failed(server, &e, &answer);
    client_while_waiting(NULL, NULL);
    /* Clients of another server read errors only from an answer with 200. */
    if (answer.status == 400 && server->error_style && server->error_style->always_200)
        answer.status = 200;
    answer_from_mcp(&answer, a);
    if (answer.to.by != MCP_STAYS)
        http_send_on(r, &answer.to, a);
    else if (answer.status == 503)
        a->headers = AWAY;
    if (answer.body && (answer.listen || stream->started))
        http_stream_send(stream, answer.body);
    if (answer.listen) { /* nginx passes subscriptions to the hub; a worker ends one at once */
        json_auto_t *end = mcp_listen_end(answer.listen, server);
        if (end)
            http_stream_send(stream, end);
        mcp_listen_free(answer.listen);
    }
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
    if (http_guard_who(app, r, a) < 0 || http_guard_room(app, r, a) < 0 ||
        !(server = http_guard_tools(app, r, a)))
        return;
    client_use_limits(r->limits);
    if (http_request_is(r, "POST"))
        serve_post(app, server, r, stream, a);
    else if (http_request_is(r, "DELETE"))
        serve_delete(server, r, a);
    else
        http_refuse(a, 405, ALLOW, "Use POST");
    client_use_limits(NULL);
}

/* Alive: the broker answers. Ready: programs can run. Unauthenticated, so neither tells more. */
static void serve_health(const struct app *app, struct http_request *r,
                         int (*ask)(const struct broker_client *, struct err *),
                         struct http_answer *a)
{
    const struct broker_client broker = {
        .path = app->settings->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = HEALTH_MS};
    struct err e = ERR_INIT;

    a->what = ask == broker_ping ? HEALTH : READY;
    if (http_guard_front(app, r, a) < 0)
        return;
    if (!http_host_is_known(app->settings, r->host)) {
        http_refuse(a, 403, "", "Host not allowed (SANDCGI_ALLOWED_HOSTS)");
        return;
    }
    bool ends = ask == broker_ready && calls_are_draining(&app->place);
    bool ok = !ends && ask(&broker, &e) == 0;
    a->status = ok ? 200 : 503;
    a->quiet = ok;
    a->error = ok ? NULL : ends ? "draining" : err_kind_name(e.kind);
    a->body = json_pack("{s:s}", "status", ok ? "ok" : ends ? "draining" : "unavailable");
}

/* Of a protected resource (RFC 9728), without a token; 404 without SANDCGI_OAUTH. */
static void serve_metadata(const struct app *app, const struct http_request *r,
                           struct http_answer *a)
{
    a->what = "metadata";
    a->quiet = true;
    if (http_guard_front(app, r, a) < 0)
        return;
    a->allowed = "*"; /* it is everybody's */
    a->body = *app->settings->oauth && r->uri ? resource_metadata(app->settings, r->uri) : NULL;
    if (a->body && !http_request_is(r, "GET") && !http_request_is(r, "HEAD")) {
        json_decref(TAKE_PTR(a->body));
        http_refuse(a, 405, "Allow: GET, HEAD\r\n", "Use GET");
        return;
    }
    if (!a->body) {
        http_refuse(a, 404, "", "There is no such resource");
        return;
    }
    a->status = 200;
}

static bool ends_in(const char *path, size_t len, const char *end)
{
    size_t n = strlen(end);

    return len >= n && memcmp(path + len - n, end, n) == 0;
}

/* The first of these in a path says what it is: behind it anything may stand. */
static const struct {
    const char *folder, *place;
} folders[] = {{"/uploads/", PLACE_UPLOAD},
               {"/archives/", PLACE_ARCHIVE},
               {"/files/", PLACE_FILE},
               {RESOURCE_WELL_KNOWN, PLACE_METADATA}};

/* /mcp or /mcp/NAME, below any path. */
static bool is_mcp(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] == '/')
        len--;
    const char *slash = memrchr(path, '/', len);

    return ends_in(path, len, "/" PLACE_MCP) ||
           (slash && ends_in(path, (size_t)(slash - path), "/" PLACE_MCP));
}

/* NULL: there is no such place. */
static const char *place_of_path(const char *path, size_t len)
{
    const char *place = NULL, *first = path + len;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const char *at = memmem(path, len, folders[i].folder, strlen(folders[i].folder));
        if (at && at < first) {
            first = at;
            place = folders[i].place;
        }
    }
    if (place)
        return place;
    if (ends_in(path, len, "/" HEALTH))
        return PLACE_HEALTH;
    if (ends_in(path, len, "/" READY))
        return PLACE_READY;
    return is_mcp(path, len) ? PLACE_MCP : NULL;
}

/* Behind our nginx its location decides: it reads a path such as /archives/../mcp differently. */
static const char *place_of(const struct app *app, const struct http_request *r)
{
    if (app->settings->auth == SETTINGS_AUTH_NGINX)
        return r->place ? r->place : PLACE_MCP;
    return r->uri && !r->tools ? place_of_path(r->uri, strcspn(r->uri, "?")) : PLACE_MCP;
}

/* The places of nginx's site: the path says which tools, /mcp/api also that programs read the
 * results, and /mcp/events is where clients of the tools of runner had their stream. */
static void take_place(struct http_request *r)
{
    size_t len = strcspn(r->uri, "?");

    while (len > 0 && r->uri[len - 1] == '/')
        len--;
    const char *slash = memrchr(r->uri, '/', len);
    const size_t n = slash ? (size_t)(r->uri + len - slash - 1) : 0;
    if (!slash || !ends_in(r->uri, (size_t)(slash - r->uri), "/" PLACE_MCP))
        return;
    if (n >= sizeof r->tools_at) { /* longer than any: there is no such set */
        r->tools = slash + 1;
        return;
    }
    const bool api = n == 3 && memcmp(slash + 1, "api", n) == 0;
    const bool events = n == 6 && memcmp(slash + 1, "events", n) == 0;
    memcpy(r->tools_at, slash + 1, n);
    r->tools = api ? "all" : events ? "runner" : r->tools_at;
    r->answers = api ? "structured" : r->answers;
}

/* Answers one request and logs one line about it. */
static void http_serve(const struct app *app, const struct http_source *source)
{
    struct http_request r;
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_stream stream;
    int64_t start = clock_mono_us();

    http_stream_init(&stream, source, &a);
    http_request_read(source, &r);
    http_request_note(&r);
    const char *place = place_of(app, &r);
    if (app->settings->auth == SETTINGS_AUTH_TOKEN && r.uri && !r.tools)
        take_place(&r);
    if (r.check)
        http_check_serve(app, &r, &a);
    else if (!place)
        http_refuse(&a, 404, "", "There is no such place; MCP is at /mcp");
    else if (strcmp(place, PLACE_HEALTH) == 0)
        serve_health(app, &r, broker_ping, &a);
    else if (strcmp(place, PLACE_READY) == 0)
        serve_health(app, &r, broker_ready, &a);
    else if (strcmp(place, PLACE_UPLOAD) == 0)
        http_upload_serve(app, &r, &a);
    else if (strcmp(place, PLACE_ARCHIVE) == 0)
        http_archive_serve(app, &r, &a);
    else if (strcmp(place, PLACE_FILE) == 0)
        http_file_serve(app, &r, &a);
    else if (strcmp(place, PLACE_METADATA) == 0)
        serve_metadata(app, &r, &a);
    else
        serve_mcp(app, &r, &stream, &a);
    if (!stream.started && !a.sent) {
        AUTO_BUF struct buf out = BUF_INIT(HTTP_ANSWER_MAX + HTTP_HEAD_MAX);
        http_answer_write(&a, &out);
        if (source->write(source->ctx, out.data, out.len) < 0)
            log_debug("client left before the answer");
    }
    http_stream_finish(&stream);
    json_decref(a.body);
    buf_clear(&a.text);
    http_request_log(&r, &a, stream.started, clock_mono_us() - start);
    mem_give_back();
}

/* ---- CGI ---- */

static const char *cgi_param(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

static long cgi_read(void *ctx, char *data, size_t len)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t *taken = ctx;
    ssize_t n = -1;

    do {
        errno = ETIMEDOUT;
        if (poll(&p, 1, BODY_LOOK_S * 1000) > 0)
            n = read(STDIN_FILENO, data, len);
    } while (n < 0 && errno == EINTR);
    *taken += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* Apache's mod_cgid has one socket for both ways: what is left unread at its end would take the
 * answer away. */
static void cgi_read_rest(uint64_t *taken)
{
    const char *text = getenv("CONTENT_LENGTH");
    char chunk[CGI_CHUNK];
    uint64_t length;

    if (!text || parse_u64(text, 0, UINT64_MAX, &length) < 0)
        return;
    while (*taken < length && cgi_read(taken, chunk, sizeof chunk) > 0)
        ;
}

static int cgi_write(void *ctx, const char *data, size_t len)
{
    struct err e = ERR_INIT;

    (void)ctx;
    return fdio_write_all(STDOUT_FILENO, data, len, &e);
}

/* mod_cgid closes one way of its socket behind the body, which is no client that leaves. It ends
 * the process then. */
static int cgi_cancel_fd(void)
{
    struct stat st;

    return fstat(STDOUT_FILENO, &st) == 0 && S_ISSOCK(st.st_mode) ? -1 : STDOUT_FILENO;
}

void cgi_serve(const struct app *app)
{
    uint64_t taken = 0;

    http_serve(app, &(struct http_source){.param = cgi_param,
                                          .read = cgi_read,
                                          .write = cgi_write,
                                          .ctx = &taken,
                                          .cancel_fd = cgi_cancel_fd()});
    cgi_read_rest(&taken);
}

/* ---- FastCGI ---- */

static void serve_one(const void *ctx, const struct http_source *source)
{
    http_serve(ctx, source);
}

int fastcgi_serve(const struct app *app, int listen_fd, struct err *e)
{
    return fastcgi_loop(listen_fd, &app->place, serve_one, app, e);
}
