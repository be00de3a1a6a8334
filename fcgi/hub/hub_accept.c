#include "config.h"

#include "fcgi/hub/hub_accept.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/mcp/events/sse.h"
#include "common/mcp/failure.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "fcgi/http/http_guard.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define LISTEN_METHOD "subscriptions/listen"
#define BODY_MAX      (256u * 1024) /* a list of URIs */
#define CHUNK_MAX     (1 << 20)
#define IO_TIMEOUT_S  2 /* nginx has the whole body before it calls */
#define ALLOW         "Allow: POST, GET, DELETE, OPTIONS\r\n"
#define RETRY_AFTER   "Retry-After: 30\r\n"

static const char *param(void *ctx, const char *name)
{
    FCGX_Request *request = ctx;
    return FCGX_GetParam(name, request->envp);
}

static long read_some(void *ctx, char *data, size_t len)
{
    FCGX_Request *request = ctx;
    int n = FCGX_GetStr(data, len > CHUNK_MAX ? CHUNK_MAX : (int)len, request->in);
    return FCGX_GetError(request->in) ? -1 : n;
}

static struct mcp_origin origin_of(struct http_request *r)
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
                               .cancel_fd = -1};
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

static void take_answer(struct mcp_answer *from, struct http_answer *a)
{
    a->status = from->status;
    json_decref(a->body);
    a->body = from->body;
}

/* The stored messages of an earlier stream. */
static void open_replay(const struct http_request *r, struct hub_guest *g, struct http_answer *a)
{
    struct err e = ERR_INIT;

    g->replay = mcp_replay_open(g->server->sessions_fd, mcp_listen_session_id(g->listen),
                                r->last_event_id, &e);
    mcp_listen_free(g->listen);
    g->listen = NULL;
    if (g->replay)
        g->stays = true;
    else /* not 404: the session is alive */
        http_refuse(a, 400, "", e.text);
}

static void receive_get(const struct hub_door *door, struct http_request *r, struct hub_guest *g,
                        struct http_answer *a)
{
    const struct mcp_origin origin = origin_of(r);
    struct mcp_answer answer = {0};

    if (mcp_listen_session(g->server, &origin, &g->listen, &answer) < 0) {
        take_answer(&answer, a);
        a->headers = a->status == 405 ? ALLOW : "";
        return;
    }
    a->status = 200;
    if (r->last_event_id) {
        open_replay(r, g, a);
        return;
    }
    if (door->has_session(door->ctx, mcp_listen_session_id(g->listen))) {
        http_refuse(a, 409, "", "this session has a stream already");
        mcp_listen_free(g->listen);
        g->listen = NULL;
        return;
    }
    g->stays = true;
    sse_add_comment(&g->bytes);
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

static void handle_listen(struct http_request *r, const json_t *message, struct hub_guest *g,
                          struct http_answer *a)
{
    const struct mcp_origin origin = origin_of(r);
    struct mcp_answer answer = {0};

    mcp_handle(g->server, &origin, message, &answer);
    take_answer(&answer, a);
    if (!answer.listen)
        return;
    a->status = 200;
    g->listen = answer.listen;
    g->is_stream = true;
    g->stays = !mcp_listen_is_empty(g->listen);
    sse_add_message(&g->bytes, NULL, answer.body);
    json_auto_t *end = g->stays ? NULL : mcp_listen_end(g->listen, g->server);
    if (end)
        sse_add_message(&g->bytes, NULL, end);
}

static void receive_post(const struct hub_door *door, struct http_request *r, struct hub_guest *g,
                         struct http_answer *a)
{
    AUTO_BUF struct buf body = BUF_INIT(BODY_MAX + 1);
    struct err e = ERR_INIT;
    struct mcp_answer answer = {0};

    if (http_guard_shape(r, a) < 0 || http_read_body(r, BODY_MAX, &body, a) < 0)
        return;
    json_auto_t *message = json_parse(buf_str(&body), body.len, JSON_MAX_DEPTH, &e);
    if (!message) {
        mcp_parse_failed(g->server, &e, &answer);
        take_answer(&answer, a);
    } else if (!is_listen(message)) {
        refuse_request(a, 400, message, MCP_HEADER_MISMATCH,
                       "the header Mcp-Method differs from method");
    } else if (door->is_full(door->ctx)) {
        refuse_full(a, message);
    } else {
        handle_listen(r, message, g, a);
    }
}

static void judge(const struct hub_door *door, struct http_request *r, struct hub_guest *g,
                  struct http_answer *a)
{
    if (http_guard_origin(door->app, r, a) < 0 || http_guard_who(door->app, r, a) < 0 ||
        !(g->server = http_guard_tools(door->app, r, a)))
        return;
    if (http_request_is(r, "POST"))
        receive_post(door, r, g, a);
    else if (!http_request_is(r, "GET"))
        http_refuse(a, 405, ALLOW, "Use POST");
    else if (door->is_full(door->ctx))
        refuse_full(a, NULL);
    else
        receive_get(door, r, g, a);
}

/* The head in front of what the stream begins with; an answer that is none is complete. */
static void write_head(struct hub_guest *g, const struct http_answer *a)
{
    struct buf all = BUF_INIT(HTTP_HEAD_MAX + BODY_MAX);

    if (g->is_stream || g->stays) {
        http_answer_write_stream_head(a, &all);
        buf_add(&all, g->bytes.data, g->bytes.len);
    } else {
        http_answer_write(a, &all);
    }
    buf_clear(&g->bytes);
    g->bytes = all;
}

static void serve(const struct hub_door *door, FCGX_Request *request, struct hub_guest *g)
{
    const struct http_source source = {
        .param = param, .read = read_some, .ctx = request, .cancel_fd = -1};
    struct http_answer a = HTTP_ANSWER_INIT;
    struct http_request r;

    http_request_read(&source, &r);
    judge(door, &r, g, &a);
    write_head(g, &a);
    log_info("%s %s status=%d%s tenant=%s", http_request_is(&r, "GET") ? "GET" : "POST",
             g->replay ? "replay" : "listen", a.status, g->stays ? " stream" : "",
             r.tenant ? r.tenant : "-");
    json_decref(a.body);
}

/* What a failed accept means: -1 give up, 0 go on. */
static int accept_failed(int error, struct err *e)
{
    if (error == EINTR || error == EAGAIN || error == ECONNABORTED || error == EPROTO)
        return 0;
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        log_error("accept: %s", strerror(error));
        return 0;
    }
    return err_set(e, ERR_IO, "accept on the hub's socket: %s", strerror(error));
}

int hub_accept_init(struct err *e)
{
    return FCGX_Init() == 0 ? 0 : err_set(e, ERR_INTERNAL, "libfcgi does not start");
}

int hub_accept_receive(const struct hub_door *door, struct hub_guest *out, struct err *e)
{
    const struct timeval timeout = {.tv_sec = IO_TIMEOUT_S};
    struct err problem = ERR_INIT;
    FCGX_Request request;

    *out = (struct hub_guest){.fd = -1, .bytes = BUF_INIT(BODY_MAX)};
    if (FCGX_InitRequest(&request, door->listen_fd, FCGI_FAIL_ACCEPT_ON_INTR) != 0)
        return err_set(e, ERR_INTERNAL, "libfcgi does not start");
    int rc = FCGX_Accept_r(&request);
    if (rc != 0)
        return accept_failed(-rc, e);
    fcntl(request.ipcFd, F_SETFD, FD_CLOEXEC);
    setsockopt(request.ipcFd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    serve(door, &request, out);
    out->fd = request.ipcFd;
    out->request_id = request.requestId;
    FCGX_Free(&request, 0);
    if (fdio_set_nonblocking(out->fd, &problem) < 0)
        log_warn("%s", problem.text);
    return 1;
}
