#include "config.h"

#include "common/protocol/client_call.h"

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/sock.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define CANCEL_MS 2000 /* for the broker's side to take the word that the run is not wanted */

/* A call under way. */
struct talk {
    const struct client_call *call;
    int fd;
    struct buf body; /* as it goes over the socket */
    size_t sent;     /* bytes of it */
    struct deadline tick;
    struct deadline end;
};

/* ---- what comes ---- */

static uint64_t count_of(const json_t *object, const char *name)
{
    json_int_t n = json_get_integer(object, name, 0);
    return n > 0 ? (uint64_t)n : 0;
}

static void tell_live(const struct broker_callbacks *callbacks, const json_t *message,
                      const json_t *piece)
{
    static const char *const names[] = {
        [BROKER_LIVE_STDOUT] = "stdout", [BROKER_LIVE_STDERR] = "stderr"};
    struct broker_live live = {.kind = BROKER_LIVE_SKIPPED,
                               .skipped = count_of(piece, "skipped"),
                               .next_byte = count_of(message, "nextByte")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const json_t *text = json_object_get(piece, names[i]);
        if (json_is_string(text)) {
            live.kind = (enum broker_live_kind)i;
            live.text = (struct run_text){json_string_value(text), json_string_length(text)};
        }
    }
    callbacks->live(callbacks->ctx, &live);
}

/* A word before the answer. */
static void hear(const struct broker_callbacks *callbacks, const json_t *message)
{
    const json_t *piece = json_object_get(message, "live");
    const json_t *queued = json_object_get(message, "queued");

    if (callbacks && callbacks->live && piece)
        tell_live(callbacks, message, piece);
    if (callbacks && callbacks->queued && queued)
        callbacks->queued(callbacks->ctx, count_of(queued, "position"));
}

static int take_error(const struct broker_callbacks *callbacks, const json_t *error, struct err *e)
{
    if (callbacks && callbacks->busy)
        *callbacks->busy = (struct broker_busy){.retry_after_ms = count_of(error, "retryAfterMs"),
                                                .position = count_of(error, "position")};
    return wire_error_take(error, e);
}

/* The next message: 1 the answer with *out_result, 0 something before it, -1. */
static int take_message(struct talk *t, json_t **out_result, struct err *e)
{
    const struct client_call *call = t->call;
    AUTO_FDS struct fds passed = FDS_INIT(call->out_fds ? call->out_fds->max : 0);
    json_auto_t *message = wire_recv_with_fds(t->fd, &passed, DEADLINE_NEVER, e);
    if (!message) {
        if (e->kind == ERR_CANCELLED) /* the broker's side ended without a word */
            err_set(e, ERR_LOST, "the run was lost: its supervisor ended; try again");
        return -1;
    }
    const json_t *error = json_object_get(message, "error");
    json_t *result = json_object_get(message, "result");
    if (error)
        return take_error(call->callbacks, error, e);
    if (!result) {
        hear(call->callbacks, message);
        return 0;
    }
    if (call->out_fds)
        fds_move(call->out_fds, &passed);
    *out_result = json_incref(result); /* the message goes, its result stays */
    return 1;
}

/* ---- what goes ---- */

static bool all_sent(const struct talk *t)
{
    return t->sent == t->body.len;
}

/* As much as the broker's side takes: it reads the body when the run's turn has come. */
static int send_some(struct talk *t, struct err *e)
{
    ssize_t n = send(t->fd, t->body.data + t->sent, t->body.len - t->sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0)
        t->sent += (size_t)n;
    else if (errno == EPIPE || errno == ECONNRESET)
        t->sent = t->body.len; /* it has said all it wants to say */
    else if (errno != EAGAIN && errno != EINTR)
        return err_errno(e, "cannot send to the broker");
    return 0;
}

/* A body that has not gone whole needs no word: nothing can be run. */
static int hang_up(struct talk *t, struct err *e)
{
    static const struct timeval patience = {.tv_sec = CANCEL_MS / 1000};
    struct err nobody = ERR_INIT;
    if (t->call->cancel_on_hang_up && all_sent(t)) {
        json_auto_t *word = json_pack("{s:b}", "cancel", 1);
        setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        wire_send(t->fd, word, -1, &nobody);
    }
    return err_set(e, ERR_CANCELLED, "the client went away");
}

/* ---- the call ---- */

/* One look at both ends: 1 the answer came, 0 go on, -1. */
static int turn(struct talk *t, json_t **out_result, struct err *e)
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
    if (deadline_passed(t->end))
        return err_set(e, ERR_TIMEOUT, "the broker took too long");
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(deadline_min(t->tick, t->end))) < 0)
        return errno == EINTR ? 0 : err_errno(e, "waiting for the broker");
    if (p[1].revents)
        return hang_up(t, e);
    if (p[2].revents)
        return err_set(e, ERR_CANCELLED, "the client has left");
    if (p[0].revents & ~POLLOUT)
        return take_message(t, out_result, e);
    if (p[0].revents)
        return send_some(t, e);
    return 0;
}

static int begin(struct talk *t, struct err *e)
{
    const struct client_call *call = t->call;
    t->fd = sock_connect_unix(call->client->path, e);
    if (t->fd < 0)
        return -1;
    if (call->body && wire_frame(call->body, &t->body, e) < 0)
        return -1;
    return wire_send(t->fd, call->head, call->pass_fd, e);
}

json_t *client_call(const struct client_call *call, struct err *e)
{
    struct talk t = {.call = call,
                     .fd = -1,
                     .body = BUF_INIT(WIRE_MESSAGE_MAX),
                     .tick = call->client->tick ? deadline_in_ms(0) : DEADLINE_NEVER,
                     .end = call->client->limit_ms > 0 ? deadline_in_ms(call->client->limit_ms)
                                                       : DEADLINE_NEVER};
    json_t *result = NULL;
    int done = 0;

    if (call->callbacks && call->callbacks->busy)
        *call->callbacks->busy = (struct broker_busy){0};
    if (begin(&t, e) == 0)
        while (done == 0)
            done = turn(&t, &result, e);
    auto_close_fd(&t.fd);
    buf_clear(&t.body);
    return result;
}

json_t *client_ask(const struct broker_client *c, const json_t *head, int pass_fd, int *out_fd,
                   struct err *e)
{
    AUTO_FDS struct fds came = FDS_INIT(out_fd ? 1 : 0);
    const struct client_call call = {
        .client = c, .head = head, .pass_fd = pass_fd, .out_fds = &came};
    json_t *result = client_call(&call, e);
    if (out_fd)
        *out_fd = fds_take(&came);
    return result;
}
