#include "config.h"

#include "fcgi/commands.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/events/listen.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "fcgi/call_log.h"
#include "fcgi/stdio/stdio_calls.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TENANT      "local"
#define LISTENS_MAX 64
#define VALUE_SIZE  112 /* what a JSON value takes in memory, besides its text */

/* An open subscriptions/listen; id NULL: the notifications that a legacy client gets unasked. */
struct subscription {
    struct subscription *next;
    json_t *id;
    struct mcp_listen *listen;
};

/* What is polled besides the calls. */
enum { FD_IN, FD_OUT, FD_EVENTS, FD_CALL_EVENTS, FD_CALLS };

/* In a call's process it is a copy, which sends to the first process instead of the client. */
struct stdio {
    struct mcp_server server; /* the app's, publishing to the one client */
    struct mcp_stdio_client stdio_client;
    struct mcp_out mcp_out;
    struct mcp_origin origin;
    struct stdio_calls calls;
    struct stdio_request request; /* the message being served */
    struct subscription *subscriptions;
    size_t n_subscriptions;
    bool has_legacy; /* a legacy client's subscription exists */
    int events_fd;   /* the app's; -1: none */
    int call_events_fd;
    struct event_sender call_events; /* the calls' end of it */
    struct stdio_lines in;
    bool in_ended;
    struct buf out; /* for the client; the first out_sent bytes are sent */
    size_t out_sent;
    bool left;          /* standard output is closed */
    struct err failure; /* of input or output */
};

/* ---- out ---- */

static bool is_call(const struct stdio *s)
{
    return s->calls.fd >= 0;
}

static int send_line(void *ctx, const json_t *body)
{
    struct stdio *s = ctx;
    AUTO_BUF struct buf line = BUF_INIT(STDIO_ANSWER_MAX);
    struct err e = ERR_INIT;

    json_write(body, &line);
    buf_add_char(&line, '\n');
    if (!buf_ok(&line))
        log_error("a message is over %u bytes", STDIO_ANSWER_MAX);
    else if (!is_call(s))
        buf_add(&s->out, line.data, line.len);
    else if (fdio_write_all(s->calls.fd, line.data, line.len, &e) < 0)
        log_debug("%s", e.text); /* the client has left */
    return buf_ok(&line) && buf_ok(&s->out) && e.kind == ERR_NONE ? 0 : -1;
}

/* A pipe that is writable takes PIPE_BUF bytes without waiting. */
static void flush_out(struct stdio *s)
{
    size_t rest = s->out.len - s->out_sent;
    ssize_t n = write(STDOUT_FILENO, s->out.data + s->out_sent, rest < PIPE_BUF ? rest : PIPE_BUF);

    if (n < 0 && errno == EPIPE)
        s->left = true;
    else if (n < 0 && errno != EINTR && errno != EAGAIN)
        err_errno(&s->failure, "writing standard output");
    if (n > 0)
        s->out_sent += (size_t)n;
    if (s->out_sent == s->out.len) {
        buf_clear(&s->out);
        s->out_sent = 0;
    } else if (s->out_sent >= STDIO_OUT_MAX && s->out_sent >= s->out.len / 2) {
        buf_drop_front(&s->out, s->out_sent);
        s->out_sent = 0;
    }
}

/* ---- subscriptions ---- */

static void subscribe(struct stdio *s, json_t *id, struct mcp_listen *take_listen)
{
    struct subscription *new = mem_alloc(sizeof *new);

    *new = (struct subscription){s->subscriptions, json_incref(id), take_listen};
    s->subscriptions = new;
    s->n_subscriptions++;
}

static void remove_subscription(struct stdio *s, struct subscription **at)
{
    struct subscription *gone = *at;

    *at = gone->next;
    s->n_subscriptions--;
    json_decref(gone->id);
    mcp_listen_free(gone->listen);
    free(gone);
}

static bool unsubscribe(struct stdio *s, const json_t *id)
{
    for (struct subscription **at = &s->subscriptions; *at; at = &(*at)->next) {
        if ((*at)->id && json_equal((*at)->id, id)) {
            remove_subscription(s, at);
            return true;
        }
    }
    return false;
}

static bool wants_task(const struct stdio *s, const struct mcp_event *event)
{
    for (const struct subscription *x = s->subscriptions; x; x = x->next)
        if (mcp_listen_wants_task(x->listen, event->tenant, event->task))
            return true;
    return false;
}

/* A task's state is asked of the broker, which may take time: a call does that. */
static void publish(void *ctx, const struct mcp_event *event)
{
    struct stdio *s = ctx;
    struct err e = ERR_INIT;
    bool asks = event->kind == MCP_EVENT_TASK && wants_task(s, event);
    int where = asks ? stdio_calls_start(&s->calls, &(struct stdio_request){0}, &e) : -1;

    for (struct subscription *x = s->subscriptions; x && where <= 0; x = x->next) {
        bool end = false;
        json_auto_t *message = mcp_listen_message(x->listen, &s->server, event, &end);
        if (message)
            send_line(s, message);
    }
    if (is_call(s))
        _exit(0);
}

/* After the handshake a legacy client gets notifications without asking. */
static void subscribe_legacy(struct stdio *s, const struct mcp_origin *origin)
{
    struct mcp_listen *listen = NULL;
    struct mcp_answer refusal = {0};

    if (s->has_legacy || !s->stdio_client.negotiated)
        return;
    s->has_legacy = true;
    if (mcp_listen_session(&s->server, origin, &listen, &refusal) == 0)
        subscribe(s, NULL, listen);
    json_decref(refusal.body);
}

/* ---- in ---- */

static void begin_listen(struct stdio *s, json_t *id, struct mcp_answer *a)
{
    send_line(s, a->body);
    bool too_many = s->n_subscriptions >= LISTENS_MAX;
    if (!too_many && !mcp_listen_is_empty(a->listen)) {
        subscribe(s, id, a->listen);
        return;
    }
    if (too_many)
        log_warn("more than %d subscriptions; refused", LISTENS_MAX);
    json_auto_t *end = mcp_listen_end(a->listen, &s->server);
    if (end)
        send_line(s, end);
    mcp_listen_free(a->listen);
}

/* mcp_stdio_client.hand_over. */
static int hand_over(void *ctx, struct err *e)
{
    struct stdio *s = ctx;
    int where = stdio_calls_start(&s->calls, &s->request, e);

    if (where != 0)
        return where;
    s->origin.cancel_fd = s->calls.fd;
    s->server.publish = event_sender_publish;
    s->server.publish_ctx = &s->call_events;
    s->stdio_client.hand_over = NULL;
    s->stdio_client.call = s->calls.last;
    return 0;
}

static json_t *next_message(void *ctx, int timeout_ms)
{
    struct stdio *s = ctx;

    return stdio_calls_next_response(&s->calls, timeout_ms);
}

static int send_answer(struct stdio *s, const json_t *body)
{
    struct err e = ERR_INIT;

    return is_call(s) && stdio_calls_begin_answer(&s->calls, &e) < 0 ? -1 : send_line(s, body);
}

/* A call's process ends in here. */
static void serve_message(struct stdio *s, json_t *message, size_t size)
{
    json_t *null = json_null();
    json_t *id = json_is_array(message) ? null : json_object_get(message, "id");
    struct mcp_answer a = {0};

    s->request = (struct stdio_request){
        .id = id, .size = size, .frees = mcp_frees(&s->server, message)};
    mcp_handle(&s->server, &s->origin, message, &a);
    if (a.error || a.status >= 400)
        call_log_refusal(&a);
    log_forget_reason();
    if (a.listen)
        begin_listen(s, id, &a);
    else if (a.body && send_answer(s, a.body) < 0 && is_call(s))
        _exit(1);
    if (is_call(s))
        _exit(0);
    json_decref(a.body);
    subscribe_legacy(s, &s->origin);
}

/* The id of the request that a notifications/cancelled names; NULL: another message. */
static const json_t *cancelled_id(const json_t *message)
{
    const char *method = json_get_string(message, "method");

    if (!method || strcmp(method, "notifications/cancelled") != 0)
        return NULL;
    return json_object_get(json_object_get(message, "params"), "requestId");
}

/* Of a line as it will lie in memory. Marks in strings count, too: it is at most that much. */
static size_t size_of(const char *line, size_t len)
{
    size_t size = len;

    for (const char *c = line; c < line + len; c++)
        if (*c == '[' || *c == '{' || *c == ',' || *c == ':')
            size += VALUE_SIZE;
    return size;
}

static void refuse_line(struct stdio *s, const struct err *problem)
{
    struct mcp_answer a = {0};

    mcp_parse_failed(&s->server, problem, &a);
    call_log_refusal(&a);
    send_line(s, a.body);
    json_decref(a.body);
}

static void serve_line(struct stdio *s, const char *line, size_t len)
{
    struct err problem = ERR_INIT;

    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (len == 0)
        return;
    json_auto_t *message = json_parse(line, len, JSON_MAX_DEPTH, &problem);
    const json_t *cancelled = message ? cancelled_id(message) : NULL;
    if (!message)
        refuse_line(s, &problem);
    else if (!(cancelled &&
               (stdio_calls_cancel(&s->calls, cancelled) || unsubscribe(s, cancelled))) &&
             !stdio_calls_respond(&s->calls, message))
        serve_message(s, message, size_of(line, len));
}

static void read_in(struct stdio *s)
{
    static const struct err too_long = {.kind = ERR_LIMIT,
                                        .text = "the message is over SANDCGI_MAX_BODY"};
    ssize_t n = stdio_lines_read(&s->in, STDIN_FILENO);
    const char *line = NULL;
    size_t len;

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0)
        err_errno(&s->failure, "reading standard input");
    for (int whole; n > 0 && (whole = stdio_lines_next(&s->in, &line, &len)) != 0;)
        if (whole > 0)
            serve_line(s, line, len);
        else
            refuse_line(s, &too_long);
    if (n <= 0) {
        s->in_ended = true;
        stdio_calls_end_input(&s->calls);
    }
    mem_give_back();
}

/* ---- the loop ---- */

static void read_events(struct stdio *s, int fd)
{
    struct mcp_event event;
    json_t *source;

    while ((source = events_receive(fd, &event))) {
        publish(s, &event);
        json_decref(source);
    }
}

/* Events come before the answer of the call that has sent them. */
static void serve_next(struct stdio *s)
{
    bool room = s->out.len < STDIO_OUT_MAX;
    struct pollfd p[FD_CALLS + STDIO_PLACES] = {
        [FD_IN] = {.fd = room && !s->in_ended ? STDIN_FILENO : -1, .events = POLLIN},
        [FD_OUT] = {.fd = STDOUT_FILENO, .events = s->out.len > 0 ? POLLOUT : 0},
        [FD_EVENTS] = {.fd = room ? s->events_fd : -1, .events = POLLIN},
        [FD_CALL_EVENTS] = {.fd = room ? s->call_events_fd : -1, .events = POLLIN},
    };

    stdio_calls_poll(&s->calls, &s->out, p + FD_CALLS);
    if (poll(p, ARRAY_LEN(p), -1) < 0)
        return;
    if (p[FD_EVENTS].revents)
        read_events(s, s->events_fd);
    if (p[FD_CALL_EVENTS].revents)
        read_events(s, s->call_events_fd);
    stdio_calls_move(&s->calls, p + FD_CALLS, &s->out);
    if (p[FD_IN].revents)
        read_in(s);
    if (p[FD_OUT].revents & (POLLERR | POLLHUP))
        s->left = true;
    else if (p[FD_OUT].revents & POLLOUT)
        flush_out(s);
    if (!buf_ok(&s->out))
        err_set(&s->failure, ERR_LIMIT, "the client does not read its messages");
}

static int open_call_events(struct stdio *s, struct err *e)
{
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(e, "cannot create a socket");
    s->call_events_fd = ends[0];
    s->call_events = (struct event_sender){
        .fd = ends[1], .timeout_ms = EVENTS_TIMEOUT_MS, .no_wait_until = deadline_in_ms(0)};
    return 0;
}

/* A client may end its input long before its answers are out ("echo … | sandcgi stdio"): the calls
 * go on until standard output is closed as well. */
static void serve_client(struct stdio *s)
{
    while (!s->left && s->failure.kind == ERR_NONE &&
           (!s->in_ended || s->calls.n > 0 || s->out.len > 0))
        serve_next(s);
}

static void stdio_clear(struct stdio *s)
{
    stdio_calls_clear(&s->calls);
    while (s->subscriptions)
        remove_subscription(s, &s->subscriptions);
    mcp_stdio_client_clear(&s->stdio_client);
    auto_close_fd(&s->call_events_fd);
    event_sender_clear(&s->call_events);
    stdio_lines_clear(&s->in);
    buf_clear(&s->out);
}

int stdio_serve(const struct app *app, int events_fd, struct err *e)
{
    AUTO(stdio_clear)
    struct stdio s = {.server = *app_server(app, NULL, SCOPE_ALL),
                      .stdio_client = MCP_STDIO_CLIENT_INIT,
                      .events_fd = events_fd,
                      .call_events_fd = -1,
                      .call_events = {.fd = -1},
                      .out = BUF_INIT(2 * STDIO_ANSWER_MAX)};

    s.server.publish = publish;
    s.server.publish_ctx = &s;
    s.mcp_out = (struct mcp_out){.send = send_line, .ctx = &s};
    s.stdio_client.next_message = next_message;
    s.stdio_client.hand_over = hand_over;
    s.stdio_client.ctx = &s;
    s.origin = (struct mcp_origin){.refused = call_log_refusal,
                                   .tenant = TENANT,
                                   .out = &s.mcp_out,
                                   .cancel_fd = -1,
                                   .stdio_client = &s.stdio_client};
    stdio_calls_init(&s.calls, app->settings->max_body);
    stdio_lines_init(&s.in, app->settings->max_body);
    if (open_call_events(&s, e) < 0)
        return -1;
    serve_client(&s);
    *e = s.failure;
    return e->kind == ERR_NONE ? 0 : -1;
}
