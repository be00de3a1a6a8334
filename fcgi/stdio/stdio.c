#include "config.h"

#include "fcgi/commands.h"

#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/events/listen.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "fcgi/stdio/stdio_inbox.h"

#include <string.h>
#include <unistd.h>

#define TENANT      "local"
#define ANSWER_MAX  (96u * 1024 * 1024)
#define LISTENS_MAX 64

/* An open subscriptions/listen; id NULL: the notifications that a legacy client gets unasked. */
struct subscription {
    struct subscription *next;
    json_t *id;
    struct mcp_listen *listen;
};

struct stdio {
    struct mcp_server server; /* the app's, publishing to the one client */
    struct mcp_stdio_client stdio_client;
    struct mcp_out out;
    struct subscription *subscriptions;
    size_t n_subscriptions;
    bool has_legacy;   /* a legacy client's subscription exists */
    struct err output; /* why standard output failed */
};

/* Lives as long as its thread, which is as long as the process. */
static struct stdio_inbox inbox;

/* ---- out ---- */

static int send_line(void *ctx, const json_t *body)
{
    struct stdio *s = ctx;
    AUTO_BUF struct buf out = BUF_INIT(ANSWER_MAX);

    if (s->output.kind != ERR_NONE)
        return -1;
    json_write(body, &out);
    buf_add_char(&out, '\n');
    return fdio_write_all(STDOUT_FILENO, out.data, out.len, &s->output);
}

static json_t *next_message(void *ctx, int timeout_ms)
{
    (void)ctx;
    return stdio_inbox_next_response(&inbox, timeout_ms);
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

/* The client ends one of its subscriptions: notifications/cancelled with the listen's id. */
static bool unsubscribe(struct stdio *s, const json_t *message)
{
    const json_t *id = stdio_cancelled_id(message);

    for (struct subscription **at = &s->subscriptions; id && *at; at = &(*at)->next) {
        if ((*at)->id && json_equal((*at)->id, id)) {
            remove_subscription(s, at);
            return true;
        }
    }
    return false;
}

static void publish(void *ctx, const struct mcp_event *event)
{
    struct stdio *s = ctx;

    for (struct subscription *x = s->subscriptions; x; x = x->next) {
        bool end = false;
        json_auto_t *message = mcp_listen_message(x->listen, &s->server, event, &end);
        if (message)
            send_line(s, message);
    }
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

static void serve_message(struct stdio *s, const json_t *message)
{
    struct mcp_answer a = {0};
    json_t *id = json_object_get(message, "method") ? json_object_get(message, "id") : NULL;
    const struct mcp_origin origin = {.tenant = TENANT,
                                      .out = &s->out,
                                      .cancel_fd = stdio_inbox_begin(&inbox, id),
                                      .stdio_client = &s->stdio_client};

    mcp_handle(&s->server, &origin, message, &a);
    bool cancelled = stdio_inbox_finish(&inbox, origin.cancel_fd);
    if (a.listen)
        begin_listen(s, id, &a);
    else if (a.body && !cancelled)
        send_line(s, a.body);
    json_decref(a.body);
    subscribe_legacy(s, &origin);
}

static void serve_mail(struct stdio *s, const struct stdio_mail *m)
{
    struct mcp_answer a = {0};

    if (m->source) {
        publish(s, &m->event);
    } else if (!m->message && m->id) {
        json_auto_t *busy = rpc_error_new(m->id, RPC_INTERNAL_ERROR,
                                          "too many messages are queued; try again later", NULL);
        send_line(s, busy);
    } else if (!m->message) {
        mcp_parse_failed(&s->server, &m->problem, &a);
        send_line(s, a.body);
        json_decref(a.body);
    } else if (!unsubscribe(s, m->message)) {
        serve_message(s, m->message);
    }
}

int stdio_serve(const struct app *app, int events_fd, struct err *e)
{
    struct stdio s = {.server = *app_server(app, NULL), .stdio_client = MCP_STDIO_CLIENT_INIT};
    struct err input = ERR_INIT;
    struct stdio_mail *mail;

    s.server.publish = publish;
    s.server.publish_ctx = &s;
    s.out = (struct mcp_out){.send = send_line, .ctx = &s};
    s.stdio_client.next_message = next_message;
    if (stdio_inbox_start(&inbox, app->settings->max_body, events_fd, e) < 0)
        return -1;
    while (s.output.kind == ERR_NONE && (mail = stdio_inbox_next(&inbox, &input))) {
        serve_mail(&s, mail);
        stdio_mail_free(mail);
        mem_give_back();
    }
    while (s.subscriptions)
        remove_subscription(&s, &s.subscriptions);
    mcp_stdio_client_clear(&s.stdio_client);
    *e = s.output.kind != ERR_NONE ? s.output : input;
    return e->kind == ERR_NONE ? 0 : -1;
}
