#include "config.h"

#include "common/mcp/client/client_channel.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/mcp/client/stdio_client.h"
#include "common/mcp/events/sse.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define PROGRESS_PAUSE_MS 10 /* steps that follow more closely are not told */
#define SMALLEST_STEP     0.001
#define LOG_TEXT_MAX      4096

static const char *const levels[MCP_LOG_LEVELS] = {
    [MCP_LOG_EMERGENCY] = "emergency", [MCP_LOG_ALERT] = "alert",
    [MCP_LOG_CRITICAL] = "critical",   [MCP_LOG_ERROR] = "error",
    [MCP_LOG_WARNING] = "warning",     [MCP_LOG_NOTICE] = "notice",
    [MCP_LOG_INFO] = "info",           [MCP_LOG_DEBUG] = "debug",
};

const char *mcp_log_level_name(enum mcp_log_level level)
{
    return levels[level];
}

int mcp_log_level_parse(const char *name)
{
    for (int i = 0; name && i < MCP_LOG_LEVELS; i++)
        if (strcmp(levels[i], name) == 0)
            return i;
    return -1;
}

/* ---- what the client wants ---- */

static const json_t *token_of(const json_t *params)
{
    const json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

    return json_is_string(token) || json_is_integer(token) ? token : NULL;
}

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

int mcp_channel_open(struct mcp_channel *w, struct mcp_call *call)
{
    const json_t *meta = json_object_get(call->params, "_meta");

    *w = (struct mcp_channel)MCP_CHANNEL_INIT;
    w->call = call;
    w->log_level = find_log_level(call);
    if ((call->era.features & MCP_IS_MODERN) && w->log_level < 0 &&
        json_object_get(meta, MCP_META_LOG_LEVEL))
        return mcp_fail(&call->failure, 400, RPC_INVALID_PARAMS, NULL,
                        "params._meta: \"" MCP_META_LOG_LEVEL "\" is not a log level");
    w->token = token_of(call->params);
    if (call->session)
        mcp_mailbox_open(&w->mailbox, call->server->sessions_fd, call->session->id, call->id);
    return 0;
}

void mcp_channel_clear(struct mcp_channel *w)
{
    mcp_mailbox_clear(&w->mailbox);
}

/* ---- sending ---- */

static bool accepts_streams(const struct mcp_origin *origin)
{
    return !origin->http || (origin->accept && strcasestr(origin->accept, "text/event-stream"));
}

bool mcp_channel_can_send(const struct mcp_channel *w)
{
    return w && !w->broken && w->call->origin->out && accepts_streams(w->call->origin);
}

bool mcp_channel_store(struct mcp_channel *w)
{
    const struct mcp_call *call = w->call;
    struct mcp_out *out = call->origin->out;
    struct err e = ERR_INIT;

    if (!out || !call->session || !(call->era.features & MCP_CAN_RESUME))
        return false;
    if (!out->store)
        out->store = mcp_stream_new(call->server->sessions_fd, call->session->id, &e);
    if (!out->store)
        log_debug("%s", e.text); /* the stream then simply cannot be taken up again */
    return out->store != NULL;
}

int mcp_channel_send(struct mcp_channel *w, const json_t *message)
{
    struct mcp_out *out = w->call->origin->out;

    if (!mcp_channel_can_send(w))
        return -1;
    mcp_channel_store(w);
    w->said_at_ms = clock_mono_ms();
    if (out->send(out->ctx, message) == 0)
        return 0;
    w->broken = true;
    return -1;
}

static void notify(struct mcp_channel *w, const char *method, json_t *take_params)
{
    json_auto_t *message = json_object();

    json_object_set_new(message, "jsonrpc", json_string("2.0"));
    json_object_set_new(message, "method", json_string(method));
    json_object_set_new(message, "params", take_params);
    mcp_channel_send(w, message);
}

/* ---- being cancelled ---- */

/* A lost connection is a wish to cancel in the modern revision only; legacy clients have
 * notifications/cancelled, if they have a session. On stdio the front end tells both alike. */
static bool leaving_cancels(const struct mcp_channel *w)
{
    return !w->call->origin->http || (w->call->era.features & MCP_IS_MODERN);
}

int mcp_channel_cancel_fd(const struct mcp_channel *w)
{
    return leaving_cancels(w) ? w->call->origin->cancel_fd : w->mailbox.cancel_fd;
}

/* Will there be a store, which takes the answer when the client is gone? */
static bool is_kept(const struct mcp_channel *w)
{
    const struct mcp_call *call = w->call;

    return mcp_channel_can_send(w) && call->session && (call->era.features & MCP_CAN_RESUME) &&
           (call->origin->out->store || w->token);
}

int mcp_channel_leave_fd(const struct mcp_channel *w)
{
    return leaving_cancels(w) || is_kept(w) ? -1 : w->call->origin->cancel_fd;
}

bool mcp_channel_is_cancelled(const struct mcp_channel *w)
{
    struct pollfd p = {.fd = mcp_channel_cancel_fd(w), .events = POLLRDHUP};

    return p.fd >= 0 && poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

/* ---- what handlers say ---- */

bool mcp_progress_wanted(const struct mcp_tool_call *call)
{
    return call->channel && call->channel->token && mcp_channel_can_send(call->channel);
}

static bool is_next_step(struct mcp_channel *w, double progress, double total)
{
    int64_t now = clock_mono_ms();
    bool last = total > 0 && progress >= total;

    if (w->progress_at_ms != 0 &&
        (!(progress > w->progress) || (!last && now - w->progress_at_ms < PROGRESS_PAUSE_MS)))
        return false;
    w->progress = progress;
    w->progress_at_ms = now;
    return true;
}

static json_t *number_new(double x)
{
    return x >= -1e15 && x <= 1e15 && x == (double)(json_int_t)x ? json_integer((json_int_t)x)
                                                                 : json_real(x);
}

void mcp_progress(const struct mcp_tool_call *call, double progress, double total,
                  const char *message)
{
    struct mcp_channel *w = call->channel;
    json_t *params;

    if (!mcp_progress_wanted(call) || !is_next_step(w, progress, total))
        return;
    params = json_object();
    json_object_set_new(params, "progressToken", json_deep_copy(w->token));
    json_object_set_new(params, "progress", number_new(progress));
    if (total > 0)
        json_object_set_new(params, "total", number_new(total));
    if (message && (w->call->era.features & MCP_CAN_EXPLAIN))
        json_object_set_new(params, "message", json_from_bytes(message, strlen(message)));
    notify(w, "notifications/progress", params);
}

void mcp_progress_text(const struct mcp_tool_call *call, double progress, const json_t *text)
{
    struct mcp_channel *w = call->channel;
    json_t *params;

    if (!mcp_progress_wanted(call))
        return;
    w->progress = w->progress_at_ms == 0 || progress > w->progress ? progress
                                                                   : w->progress + SMALLEST_STEP;
    w->progress_at_ms = clock_mono_ms();
    params = json_object();
    json_object_set_new(params, "progressToken", json_deep_copy(w->token));
    json_object_set_new(params, "progress", number_new(w->progress));
    /* Where the revision has no message it is one more member that a client may pass over. */
    json_object_set(params, "message", (json_t *)(uintptr_t)text);
    notify(w, "notifications/progress", params);
}

int64_t mcp_silence_ms(const struct mcp_tool_call *call)
{
    int64_t said = call->channel ? call->channel->said_at_ms : 0;

    return said > 0 ? clock_mono_ms() - said : INT64_MAX;
}

void mcp_keep_alive(const struct mcp_tool_call *call)
{
    struct mcp_out *out = call->channel ? call->channel->call->origin->out : NULL;

    if (!out || !out->keep_alive || !mcp_channel_can_send(call->channel) ||
        call->channel->said_at_ms == 0 || mcp_silence_ms(call) < SSE_KEEP_ALIVE_MS)
        return;
    call->channel->said_at_ms = clock_mono_ms();
    out->keep_alive(out->ctx);
}

void mcp_log(const struct mcp_tool_call *call, enum mcp_log_level level, const char *logger,
             const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(LOG_TEXT_MAX);
    va_list ap;
    json_t *params;

    if (!call->channel || call->channel->log_level < (int)level ||
        !mcp_channel_can_send(call->channel))
        return;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    params = json_object();
    json_object_set_new(params, "level", json_string(levels[level]));
    if (logger)
        json_object_set_new(params, "logger", json_string(logger));
    json_object_set_new(params, "data", json_from_bytes(buf_str(&text), text.len));
    notify(call->channel, "notifications/message", params);
}

bool mcp_hang_up(const struct mcp_tool_call *call, int retry_ms)
{
    struct mcp_out *out = call->channel ? call->channel->call->origin->out : NULL;

    if (!out || !out->hang_up || !mcp_channel_can_send(call->channel) ||
        !mcp_channel_store(call->channel))
        return false;
    out->hang_up(out->ctx, retry_ms);
    return true;
}
