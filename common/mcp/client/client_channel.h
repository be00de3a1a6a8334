/*
 * One request's channel to its client while the request is being processed: whether messages can be
 * sent, which of them the client wants, and whether the request was cancelled. Lives on the stack
 * of the method that offers it.
 */
#pragma once

#include "common/mcp/call.h"
#include "common/mcp/client/notify.h"
#include "common/mcp/session/mailbox.h"

struct mcp_channel {
    const struct mcp_call *call;
    struct mcp_mailbox mailbox; /* legacy sessions only */
    const json_t *token;        /* progressToken; NULL: no progress is wanted */
    int log_level;              /* -1: no log messages are wanted */
    double progress;            /* the last one sent */
    int64_t progress_at_ms;     /* 0: none yet */
    int64_t sent_at_ms;         /* when anything was sent last; 0: never */
    bool broken;                /* the client cannot be reached any more */
};

#define MCP_CHANNEL_INIT ((struct mcp_channel){.mailbox = MCP_MAILBOX_INIT, .log_level = -1})
#define AUTO_MCP_CHANNEL AUTO(mcp_channel_clear)

/* 0, or -1 with call->failure (an unknown log level). */
int mcp_channel_open(struct mcp_channel *c, struct mcp_call *call);
void mcp_channel_clear(struct mcp_channel *c);

/* Can anything but the answer reach the client? NULL cannot. */
bool mcp_channel_can_send(const struct mcp_channel *c);
int mcp_channel_send(struct mcp_channel *c, const json_t *message);
/* Creates the stream's store if this client can resume the stream; false: it cannot. */
bool mcp_channel_store(struct mcp_channel *c);

/* For poll in handlers: hangs up when the request is cancelled; -1: it cannot be. */
int mcp_channel_cancel_fd(const struct mcp_channel *c);
/* Hangs up when the client has left without cancelling and no store keeps the answer for it; -1:
 * unknown, or the same as cancelling. */
int mcp_channel_leave_fd(const struct mcp_channel *c);
bool mcp_channel_is_cancelled(const struct mcp_channel *c);
