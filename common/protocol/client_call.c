#include "config.h"

#include "common/protocol/client_call.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/node.h"
#include "common/base/sock.h"
#include "common/base/trace.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define CANCEL_MS 2000 /* for {"cancel":true} to be taken by the broker */

/* A call under way. */
struct talk {
    const struct client_call *call;
    int fd;
    struct sock_inbox inbox;
    size_t sent; /* bytes of the body */
    struct deadline tick;
    struct deadline is_long, sign;
    struct deadline end;
};

static int connect_over = -1;
static const char *limits_section;

/* Where calls that last are told, once and again and again. */
static struct {
    void (*f)(void *ctx);
    void *ctx;
} long_call, waiting;

void client_on_long_call(void (*f)(void *ctx), void *ctx)
{
    long_call.f = f;
    long_call.ctx = ctx;
}

void client_while_waiting(void (*f)(void *ctx), void *ctx)
{
    waiting.f = f;
    waiting.ctx = ctx;
}

/* ---- messages of the broker ---- */

static uint64_t member_count(const json_t *object, const char *name)
{
    json_int_t n = json_get_integer(object, name, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static void on_live(const struct broker_callbacks *callbacks, const json_t *message,
                    const json_t *piece)
{
    static const char *const names[] = {
        [BROKER_LIVE_STDOUT] = "stdout", [BROKER_LIVE_STDERR] = "stderr"};
    struct broker_live live = {.kind = BROKER_LIVE_SKIPPED,
                               .skipped = member_count(piece, "skipped"),
                               .next_byte = member_count(message, "nextByte")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *text = json_object_get(piece, names[i]);
        if (json_is_string(text)) {
            live.kind = (enum broker_live_kind)i;
            live.text = (struct run_text){json_string_value(text), json_string_length(text)};
        }
    }
    callbacks->live(callbacks->ctx, &live);
}

static void on_progress(const struct broker_callbacks *callbacks, const json_t *message)
{
    const json_t *piece = json_object_get(message, "live");
    const json_t *queued = json_object_get(message, "queued");

    if (callbacks && callbacks->live && piece)
        on_live(callbacks, message, piece);
    if (callbacks && callbacks->queued && queued)
        callbacks->queued(callbacks->ctx, member_count(queued, "position"));
}

/* Which process ended without an answer. */
static const char *lost_text(enum broker_op op)
{
    if (op == OP_RUN || op == OP_SESSION || op == OP_CREATE_PSANDBOX ||
        op_row(op)->by == OP_BY_SUPERVISOR)
        return "what ran is lost: its supervisor ended; try again";
    return "the broker closed the connection without an answer; try again";
}

/* After an error of the connection: a peer that closed it has ended. */
static int fail_talk(const struct client_call *call, struct err *e)
{
    if (e->kind == ERR_CANCELLED)
        err_set(e, ERR_LOST, "%s", lost_text(op_of(call->head)));
    return -1;
}

/* Reads what has arrived: 1 the answer with *out_result, 0 go on, -1. */
static int on_readable(struct talk *t, json_t **out_result, struct err *e)
{
    const struct client_call *call = t->call;
    int whole = sock_inbox_take(&t->inbox, t->fd, e);
    json_auto_t *message = whole > 0 ? wire_parse(&t->inbox.message, e) : NULL;

    if (whole == 0)
        return 0;
    if (!message)
        return fail_talk(call, e);
    const json_t *error = json_object_get(message, "error");
    json_t *result = json_object_get(message, "result");
    if (error) {
        if (call->callbacks && call->callbacks->busy)
            *call->callbacks->busy = (struct broker_busy){
                .retry_after_ms = member_count(error, "retryAfterMs"),
                .position = member_count(error, "position")};
        return wire_error_take(error, e);
    }
    if (!result) {
        on_progress(call->callbacks, message);
        return 0;
    }
    if (call->out_fds)
        fds_move(call->out_fds, &t->inbox.passed);
    *out_result = json_incref(result); /* outlives the message */
    return 1;
}

/* ---- the request's body ---- */

static bool all_sent(const struct talk *t)
{
    return !t->call->body || t->sent == t->call->body->len;
}

/* Never blocks: the broker reads the body when the run begins. */
static int send_some(struct talk *t, struct err *e)
{
    const struct buf *body = t->call->body;
    ssize_t n = send(t->fd, body->data + t->sent, body->len - t->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        t->sent += (size_t)n;
    else if (errno == EPIPE || errno == ECONNRESET)
        t->sent = body->len; /* the answer is there already */
    else if (errno != EAGAIN && errno != EINTR)
        return err_errno(e, "cannot send to the broker");
    return 0;
}

/* A run without its whole body has not begun and needs no message. */
static int cancel(struct talk *t, struct err *e)
{
    static const struct timeval timeout = {.tv_sec = CANCEL_MS / 1000};
    struct err ignored = ERR_INIT;
    if (t->call->cancel_on_hang_up && all_sent(t)) {
        json_auto_t *message = json_pack("{s:b}", "cancel", 1);
        setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        wire_send(t->fd, message, -1, &ignored);
    }
    return err_set(e, ERR_CANCELLED, "the client closed the connection");
}

/* ---- the call ---- */

/* Waits for the next event: 1 the answer came, 0 go on, -1. */
static int call_tick(struct talk *t, json_t **out_result, struct err *e)
{
    const struct broker_client *c = t->call->client;
    short wanted = all_sent(t) ? POLLIN : POLLIN | POLLOUT;
    /* Only a hang-up counts: a web server may have left bytes of the request's end unread. */
    struct pollfd p[] = {{.fd = t->fd, .events = wanted},
                         {.fd = c->cancel_fd, .events = POLLRDHUP},
                         {.fd = c->leave_fd, .events = POLLRDHUP}};

    if (c->tick && deadline_passed(t->tick)) {
        c->tick(c->tick_ctx);
        t->tick = deadline_in_ms(c->tick_ms);
    }
    if (deadline_passed(t->is_long)) {
        long_call.f(long_call.ctx);
        t->is_long = DEADLINE_NEVER;
    }
    if (deadline_passed(t->sign)) {
        waiting.f(waiting.ctx);
        t->sign = deadline_in_ms(CLIENT_SIGN_MS);
    }
    if (deadline_passed(t->end))
        return err_set(e, ERR_TIMEOUT, "the broker did not answer in time");
    struct deadline next = deadline_min(deadline_min(t->tick, t->sign),
                                        deadline_min(t->is_long, t->end));
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(next)) < 0)
        return errno == EINTR ? 0 : err_errno(e, "waiting for the broker");
    if (p[1].revents)
        return cancel(t, e);
    if (p[2].revents)
        return err_set(e, ERR_CANCELLED, "the client closed the connection");
    if (p[0].revents & ~POLLOUT)
        return on_readable(t, out_result, e);
    return p[0].revents ? send_some(t, e) : 0;
}

void client_connect_over(int fd)
{
    connect_over = fd;
}

void client_use_limits(const char *section)
{
    limits_section = section;
}

int client_connect(const struct broker_client *c, struct err *e)
{
    int fd = connect_over >= 0 ? sock_connect_over(connect_over, e) : sock_connect_unix(c->path, e);

    if (fd < 0 && e->kind == ERR_UNAVAILABLE) /* of the broker, the same means its engine */
        e->kind = ERR_AWAY;
    return fd;
}

static int call_begin(struct talk *t, struct err *e)
{
    const struct client_call *call = t->call;
    t->fd = client_connect(call->client, e);
    if (t->fd < 0)
        return -1;
    return wire_send(t->fd, call->head, call->pass_fd, e) < 0 ? fail_talk(call, e) : 0;
}

static json_t *call_once(const struct client_call *call, struct err *e)
{
    struct talk t = {.call = call,
                     .fd = -1,
                     .inbox = SOCK_INBOX_INIT(WIRE_MESSAGE_MAX),
                     .tick = call->client->tick ? deadline_in_ms(0) : DEADLINE_NEVER,
                     .is_long = long_call.f ? deadline_in_ms(CLIENT_LONG_MS) : DEADLINE_NEVER,
                     .sign = waiting.f ? deadline_in_ms(CLIENT_SIGN_MS) : DEADLINE_NEVER,
                     .end = call->client->limit_ms > 0 ? deadline_in_ms(call->client->limit_ms)
                                                       : DEADLINE_NEVER};
    json_t *result = NULL;
    int done = 0;

    t.inbox.passed.max = call->out_fds ? call->out_fds->max : 0;
    if (call->callbacks && call->callbacks->busy)
        *call->callbacks->busy = (struct broker_busy){0};
    if (call_begin(&t, e) == 0)
        while (done == 0)
            done = call_tick(&t, &result, e);
    auto_close_fd(&t.fd);
    sock_inbox_clear(&t.inbox);
    return result;
}

/* ---- ids: clients' have the node's name, the broker's have none ---- */

static const char *const ids[] = {"runId", "sandboxId"};
static const char conversation_id[] = "conversationId"; /* see node_inside */

#define IDS_DEPTH 3 /* of the objects of an answer that have them */

static void add_node(json_t *value, int depth)
{
    const char *key;
    json_t *member;
    char id[NODE_NAME_MAX + PSANDBOX_ID_MAX + 2];
    size_t i;

    if (depth > IDS_DEPTH)
        return;
    json_array_foreach(value, i, member) add_node(member, depth + 1);
    json_object_foreach(value, key, member) add_node(member, depth + 1);
    for (i = 0; i < ARRAY_LEN(ids); i++) {
        const char *bare = json_get_string(value, ids[i]);
        if (!bare)
            continue;
        node_add(bare, id, sizeof id);
        json_object_set_new(value, ids[i], json_string(id));
    }
    const char *inside = json_get_string(value, conversation_id);
    if (inside && node_outside(inside) != inside)
        json_object_set_new(value, conversation_id, json_string(node_outside(inside)));
}

/* A new reference. */
static json_t *without_node(const json_t *head)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)head);

    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const char *id = json_get_string(head, ids[i]);
        if (id)
            json_object_set_new(copy, ids[i], json_string(node_strip(id)));
    }
    const char *conversation = json_get_string(head, conversation_id);
    if (conversation)
        json_object_set_new(copy, conversation_id, json_string(node_inside(conversation)));
    return copy;
}

static json_t *call_broker(const struct client_call *call, struct err *e)
{
    const enum op_by by = op_row(op_of(call->head))->by;
    struct err first = ERR_INIT;
    trace_conversation(json_get_string(call->head, "tenant"),
                       json_get_string(call->head, "conversationId"));
    log_note(LOG_RUN, json_get_string(call->head, "runId"));
    json_t *result = call_once(call, &first);

    if (json_get_string(result, "runId"))
        log_note(LOG_RUN, json_get_string(result, "runId"));
    if (result)
        return result;
    /* The process that the head names may just have ended; its record answers then. */
    if (first.kind == ERR_LOST && !call->body && by == OP_BY_SUPERVISOR)
        return call_once(call, e);
    *e = first;
    return NULL;
}

json_t *client_call(const struct client_call *call, struct err *e)
{
    struct client_call inside = *call;

    if (!*node_name())
        return call_broker(call, e);
    json_auto_t *head = without_node(call->head);
    inside.head = head;
    json_t *result = call_broker(&inside, e);
    add_node(result, 0);
    return result;
}

void client_head_add_limits(json_t *head)
{
    if (limits_section)
        json_object_set_new(head, "limits", json_string(limits_section));
}

static json_t *head_vnew(const struct broker_client *c, enum broker_op op, const char *format,
                         va_list members)
{
    json_t *head = op_head_vnew(op, format, members);
    if (c->tenant) {
        json_object_set_new(head, "tenant", json_string(c->tenant));
        client_head_add_limits(head);
    }
    return head;
}

json_t *client_head_new(const struct broker_client *c, enum broker_op op, const char *format, ...)
{
    va_list members;

    va_start(members, format);
    json_t *head = head_vnew(c, op, format, members);
    va_end(members);
    return head;
}

json_t *client_ask_with_fd(const struct broker_client *c, json_t *take_head, int pass_fd,
                           int *out_fd, struct err *e)
{
    json_auto_t *head = take_head;
    AUTO_FDS struct fds came = FDS_INIT(out_fd ? 1 : 0);
    const struct client_call call = {
        .client = c, .head = head, .pass_fd = pass_fd, .out_fds = &came};
    json_t *result = client_call(&call, e);
    if (out_fd)
        *out_fd = fds_take(&came);
    return result;
}

json_t *client_ask(const struct broker_client *c, struct err *e, enum broker_op op,
                   const char *format, ...)
{
    va_list members;

    va_start(members, format);
    json_t *head = head_vnew(c, op, format, members);
    va_end(members);
    return client_ask_with_fd(c, head, -1, NULL, e);
}
