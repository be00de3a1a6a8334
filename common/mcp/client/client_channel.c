#include "config.h"

#include "common/mcp/client/client_channel.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <string.h>

#define PROGRESS_PAUSE_MS 10 /* steps that follow more closely are dropped */
#define SMALLEST_STEP     0.001

static const char *const levels[] = {"emergency", "alert",  "critical", "error",
                                     "warning",   "notice", "info",     "debug"};

int mcp_log_level_parse(const char *name)
{
    for (size_t i = 0; name && i < ARRAY_LEN(levels); i++)
        if (strcmp(levels[i], name) == 0)
            return (int)i;
    return -1;
}

/* ---- what the client wants ---- */

/* Legacy clients set a level for their session; modern ones for each request. */
static int find_log_level(const struct mcp_call *call)
{
    if (call->era.features & MCP_IS_MODERN)
        return mcp_log_level_parse(
            json_get_string(json_object_get(call->params, "_meta"), MCP_META_LOG_LEVEL));
    if (call->session)
        return mcp_log_level_parse(json_get_string(call->session->record, "logLevel"));
    return call->origin->stdio_client ? call->origin->stdio_client->log_level : -1;
}

int mcp_channel_open(struct mcp_channel *c, struct mcp_call *call)
{
    const json_t *meta = json_object_get(call->params, "_meta");
    const json_t *token = json_object_get(meta, "progressToken");

    *c = MCP_CHANNEL_INIT;
    c->call = call;
    c->log_level = find_log_level(call);
    if ((call->era.features & MCP_IS_MODERN) && c->log_level < 0 &&
        json_object_get(meta, MCP_META_LOG_LEVEL))
        return mcp_fail(&call->failure, 400, RPC_INVALID_PARAMS, NULL,
                        "params._meta: \"" MCP_META_LOG_LEVEL "\" is not a log level");
    c->token = json_is_string(token) || json_is_integer(token) ? token : NULL;
    if (call->session)
        mcp_mailbox_open(&c->mailbox, call->server->sessions_fd, call->session->id, call->id);
    return 0;
}

void mcp_channel_clear(struct mcp_channel *c)
{
    mcp_mailbox_clear(&c->mailbox);
}

/* ---- sending ---- */

bool mcp_channel_can_send(const struct mcp_channel *c)
{
    const struct mcp_origin *origin = c ? c->call->origin : NULL;

    return c && !c->broken && origin->out &&
           (!origin->http || (origin->accept && strcasestr(origin->accept, "text/event-stream")));
}

bool mcp_channel_store(struct mcp_channel *c)
{
    const struct mcp_call *call = c->call;
    struct mcp_out *out = call->origin->out;
    struct err e = ERR_INIT;

    if (!out || !call->session || !(call->era.features & MCP_CAN_RESUME))
        return false;
    if (!out->store)
        out->store = mcp_stream_new(call->server->sessions_fd, call->origin->tenant,
                                    call->session->id, &e);
    if (!out->store)
        log_debug("%s", e.text); /* the client cannot resume this stream */
    return out->store != NULL;
}

int mcp_channel_send(struct mcp_channel *c, const json_t *message)
{
    struct mcp_out *out = c->call->origin->out;

    if (!mcp_channel_can_send(c))
        return -1;
    mcp_channel_store(c);
    c->sent_at_ms = clock_mono_ms();
    if (out->send(out->ctx, message) == 0)
        return 0;
    c->broken = true;
    return -1;
}

/* ---- being cancelled ---- */

/* A lost connection cancels the request in the modern revision only; legacy clients have
 * notifications/cancelled, if they have a session. On stdio the front end reports both alike. */
static bool leaving_cancels(const struct mcp_channel *c)
{
    return !c->call->origin->http || (c->call->era.features & MCP_IS_MODERN);
}

int mcp_channel_cancel_fd(const struct mcp_channel *c)
{
    return leaving_cancels(c) ? c->call->origin->cancel_fd : c->mailbox.cancel_fd;
}

int mcp_channel_leave_fd(const struct mcp_channel *c)
{
    const struct mcp_call *call = c->call;
    /* There will be a store, which takes the answer when the client has left. */
    bool kept = mcp_channel_can_send(c) && call->session && (call->era.features & MCP_CAN_RESUME) &&
                (call->origin->out->store || c->token);

    return leaving_cancels(c) || kept ? -1 : call->origin->cancel_fd;
}

bool mcp_channel_is_cancelled(const struct mcp_channel *c)
{
    struct pollfd p = {.fd = mcp_channel_cancel_fd(c), .events = POLLRDHUP};

    return p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

/* ---- what handlers send ---- */

bool mcp_progress_wanted(const struct mcp_channel *c)
{
    return c && c->token && mcp_channel_can_send(c);
}

static json_t *number_new(double x)
{
    return x >= -1e15 && x <= 1e15 && x == (double)(json_int_t)x ? json_integer((json_int_t)x)
                                                                 : json_real(x);
}

static void send_progress(struct mcp_channel *c, double progress, double total,
                          json_t *take_message, const json_t *meta)
{
    json_auto_t *message = rpc_notification_new(
        "notifications/progress",
        json_pack("{s:o, s:o, s:o*, s:o*, s:O*}", "progressToken", json_deep_copy(c->token),
                  "progress", number_new(progress), "total", total > 0 ? number_new(total) : NULL,
                  "message", take_message, "_meta", meta));

    c->progress = progress;
    c->progress_at_ms = clock_mono_ms();
    mcp_channel_send(c, message);
}

void mcp_progress(struct mcp_channel *c, double progress, double total, const char *message)
{
    bool last = total > 0 && progress >= total;

    if (!mcp_progress_wanted(c) ||
        (c->progress_at_ms != 0 &&
         (!(progress > c->progress) ||
          (!last && clock_mono_ms() - c->progress_at_ms < PROGRESS_PAUSE_MS))))
        return;
    send_progress(c, progress, total,
                  message && (c->call->era.features & MCP_CAN_EXPLAIN)
                      ? json_from_bytes(message, strlen(message))
                      : NULL,
                  NULL);
}

void mcp_progress_text(struct mcp_channel *c, double progress, const json_t *text,
                       const json_t *meta)
{
    if (!mcp_progress_wanted(c))
        return;
    if (c->progress_at_ms != 0 && !(progress > c->progress))
        progress = c->progress + SMALLEST_STEP;
    /* A revision without "message" lets clients ignore unknown members. */
    send_progress(c, progress, 0, json_incref((json_t *)(uintptr_t)text), meta);
}

int64_t mcp_silence_ms(const struct mcp_channel *c)
{
    return c && c->sent_at_ms > 0 ? clock_mono_ms() - c->sent_at_ms : INT64_MAX;
}
