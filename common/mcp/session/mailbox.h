/*
 * Messages to a call in progress from other workers that serve the same session. Files in the
 * sessions' directory, named after session and call, for as long as the call lasts:
 *
 * - "<session>.c<hash of the request's id>", a FIFO: the worker that gets notifications/cancelled
 *   opens and closes it, and the call's end hangs up (POLLHUP), as a client's connection would.
 * - "<session>.r<random>", a FIFO, made when the call sends its client a request: the ids of its
 *   requests contain the random part, so any worker can forward the response. It writes that to a
 *   file "<session>.a<random>", and the file's name to the FIFO: workers have no sockets of their
 *   own.
 *
 * Without a reader the message is dropped.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MCP_MAILBOX_HEX      16 /* digits */
#define MCP_MAILBOX_NAME_MAX 96
#define MCP_REQUEST_ID_MAX   32

struct mcp_mailbox {
    int dir;         /* borrowed */
    int cancel_fd;   /* hangs up when the call is cancelled; -1: cannot be */
    int response_fd; /* readable when a response came; -1 before mcp_mailbox_bind */
    char cancel[MCP_MAILBOX_NAME_MAX];
    char response[MCP_MAILBOX_NAME_MAX];
    char hex[MCP_MAILBOX_HEX + 1];
};

#define MCP_MAILBOX_INIT ((struct mcp_mailbox){.dir = -1, .cancel_fd = -1, .response_fd = -1})

/* Makes the call's FIFO; without it (no room, …) the call simply cannot be cancelled. */
void mcp_mailbox_open(struct mcp_mailbox *m, int sessions_fd, const char *session,
                      const json_t *request_id);
/* Makes the FIFO for responses. */
int mcp_mailbox_bind(struct mcp_mailbox *m, const char *session, struct err *e);
/* The next response (new reference), or NULL. Does not wait. */
json_t *mcp_mailbox_take(const struct mcp_mailbox *m);
/* Removes all. */
void mcp_mailbox_clear(struct mcp_mailbox *m);

/* The other side; false without a reader. */
bool mcp_mailbox_cancel(int sessions_fd, const char *session, const json_t *request_id);
bool mcp_mailbox_deliver(int sessions_fd, const char *session, const json_t *id,
                         const json_t *response);

/* Is it left of a reader that has ended? age_s: since its last change. */
bool mcp_mailbox_is_dead(int sessions_fd, const char *name, int64_t age_s);
