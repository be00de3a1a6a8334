/* Messages that MCP allows and none of our tools sends: for the tools of tests. Linked by tests
 * only. */
#pragma once

#include "common/mcp/client/client_channel.h"

/* notifications/message with a text; logger NULL: none. */
void mcp_log(struct mcp_channel *c, const char *level, const char *logger, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Ends the connection while the call continues; the client resumes the stream after retry_ms
 * (2025-11-25 sessions only). False: not possible for this client, nothing happened. */
bool mcp_hang_up(struct mcp_channel *c, int retry_ms);
