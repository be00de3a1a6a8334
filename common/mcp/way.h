/*
 * One request's way to its client while it is being worked on: may messages be sent, which of them
 * does the client want, who is there to hear that it was cancelled. On the stack of the method that
 * offers it.
 */
#ifndef SANDCGI_MCP_WAY_H
#define SANDCGI_MCP_WAY_H

#include "common/mcp/mailbox.h"
#include "common/mcp/methods.h"
#include "common/mcp/notify.h"

struct mcp_way {
    const struct mcp_call *call;
    struct mcp_mailbox mailbox; /* legacy sessions only */
    const json_t *token;        /* progressToken; NULL: no progress is wanted */
    int log_level;              /* -1: no messages are wanted */
    double progress;            /* the last one told */
    int64_t progress_at_ms;     /* 0: none yet */
    int64_t said_at_ms;         /* when anything was sent last; 0: never */
    bool broken;                /* the client cannot be reached any more */
};

#define MCP_WAY_INIT                                                                               \
    {                                                                                              \
        .mailbox = MCP_MAILBOX_INIT, .log_level = -1                                               \
    }
#define AUTO_MCP_WAY AUTO(mcp_way_clear)

/* 0, or -1 with call->failure (a log level that is none). */
int mcp_way_open(struct mcp_way *w, struct mcp_call *call);
void mcp_way_clear(struct mcp_way *w);

/* Can anything but the answer reach the client? */
bool mcp_way_can_send(const struct mcp_way *w);
int mcp_way_send(struct mcp_way *w, const json_t *message);
/* Makes the stream's store if this client may come back for it; false: no such client. */
bool mcp_way_store(struct mcp_way *w);

/* What handlers give to poll: hangs up when the request is cancelled; -1: cannot be. */
int mcp_way_cancel_fd(const struct mcp_way *w);
/* Hangs up when the client has left without cancelling, and nobody keeps the answer for it; -1:
 * this cannot be told, or is the same. */
int mcp_way_leave_fd(const struct mcp_way *w);
bool mcp_way_is_cancelled(const struct mcp_way *w);

#endif
