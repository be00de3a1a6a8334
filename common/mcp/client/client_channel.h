/*
 * One request's way to its client while it is being worked on: may messages be sent, which of
 * them does the client want, who is there to hear that it was cancelled. On the stack of the method
 * that offers it.
 */
#ifndef SANDCGI_MCP_CLIENT_CLIENT_CHANNEL_H
#define SANDCGI_MCP_CLIENT_CLIENT_CHANNEL_H

#include "common/mcp/client/notify.h"
#include "common/mcp/methods.h"
#include "common/mcp/session/mailbox.h"

struct mcp_channel {
    const struct mcp_call *call;
    struct mcp_mailbox mailbox; /* legacy sessions only */
    const json_t *token;        /* progressToken; NULL: no progress is wanted */
    int log_level;              /* -1: no messages are wanted */
    double progress;            /* the last one told */
    int64_t progress_at_ms;     /* 0: none yet */
    int64_t said_at_ms;         /* when anything was sent last; 0: never */
    bool broken;                /* the client cannot be reached any more */
};

#define MCP_CHANNEL_INIT                                                                           \
    {                                                                                              \
        .mailbox = MCP_MAILBOX_INIT, .log_level = -1                                               \
    }
#define AUTO_MCP_CHANNEL AUTO(mcp_channel_clear)

/* 0, or -1 with call->failure (a log level that is none). */
int mcp_channel_open(struct mcp_channel *w, struct mcp_call *call);
void mcp_channel_clear(struct mcp_channel *w);

/* Can anything but the answer reach the client? */
bool mcp_channel_can_send(const struct mcp_channel *w);
int mcp_channel_send(struct mcp_channel *w, const json_t *message);
/* Makes the stream's store if this client may come back for it; false: no such client. */
bool mcp_channel_store(struct mcp_channel *w);

/* What handlers give to poll: hangs up when the request is cancelled; -1: cannot be. */
int mcp_channel_cancel_fd(const struct mcp_channel *w);
/* Hangs up when the client has left without cancelling, and nobody keeps the answer for it; -1:
 * this cannot be told, or is the same. */
int mcp_channel_leave_fd(const struct mcp_channel *w);
bool mcp_channel_is_cancelled(const struct mcp_channel *w);

#endif
