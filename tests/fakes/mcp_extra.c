#include "config.h"

#include "tests/fakes/mcp_extra.h"

#include "common/rpc/json.h"

#define LOG_TEXT_MAX 4096

void mcp_log(struct mcp_channel *c, const char *level, const char *logger, const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(LOG_TEXT_MAX);
    va_list ap;

    if (!c || c->log_level < mcp_log_level_parse(level))
        return;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    json_auto_t *message = rpc_notification_new(
        "notifications/message", json_pack("{s:s, s:s*, s:o}", "level", level, "logger", logger,
                                           "data", json_from_bytes(buf_str(&text), text.len)));
    mcp_channel_send(c, message);
}

bool mcp_hang_up(struct mcp_channel *c, int retry_ms)
{
    struct mcp_out *out = c ? c->call->origin->out : NULL;

    if (!out || !out->hang_up || !mcp_channel_can_send(c) || !mcp_channel_store(c))
        return false;
    out->hang_up(out->ctx, retry_ms);
    return true;
}
