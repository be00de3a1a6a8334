/*
 * What a handler may tell its client while it works: progress, log messages. Whether the client
 * wants to hear it, and how it gets there, is decided here; a handler simply says it. All functions
 * take a NULL call->channel (nobody listens) and never block longer than a write to the client.
 */
#ifndef SANDCGI_MCP_CLIENT_NOTIFY_H
#define SANDCGI_MCP_CLIENT_NOTIFY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct mcp_tool_call; /* tool.h */
struct mcp_channel;   /* the call's way to its client; channel.h */

/* The levels of notifications/message, most urgent first (RFC 5424). */
enum mcp_log_level {
    MCP_LOG_EMERGENCY,
    MCP_LOG_ALERT,
    MCP_LOG_CRITICAL,
    MCP_LOG_ERROR,
    MCP_LOG_WARNING,
    MCP_LOG_NOTICE,
    MCP_LOG_INFO,
    MCP_LOG_DEBUG,
    MCP_LOG_LEVELS,
};

/* "warning"; and back: -1 when it is none. */
const char *mcp_log_level_name(enum mcp_log_level level);
int mcp_log_level_parse(const char *name);

/* Would mcp_progress be heard? For handlers whose progress costs something to find out. */
bool mcp_progress_wanted(const struct mcp_tool_call *call);

/*
 * notifications/progress. total <= 0: unknown; message NULL: none. Steps that do not increase, and
 * those that follow too quickly, are dropped.
 */
void mcp_progress(const struct mcp_tool_call *call, double progress, double total,
                  const char *message);

/*
 * notifications/progress whose message is a piece of what the work has produced (a string): none is
 * dropped. progress is raised a little where it would not increase.
 */
void mcp_progress_text(const struct mcp_tool_call *call, double progress, const json_t *text);

/* How long nothing has been sent to the client; INT64_MAX: nothing was yet. */
int64_t mcp_silence_ms(const struct mcp_tool_call *call);

/* To be called now and then during long work: an open stream that was silent for SSE_KEEP_ALIVE_MS
 * shows that we are still there. */
void mcp_keep_alive(const struct mcp_tool_call *call);

/* notifications/message with a text; logger NULL: none. Never program output, code, secrets. */
void mcp_log(const struct mcp_tool_call *call, enum mcp_log_level level, const char *logger,
             const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Ends the connection while the call goes on; the client comes back for the rest after retry_ms
 * (2025-11-25 sessions only). False: not possible for this client, nothing happened.
 */
bool mcp_hang_up(const struct mcp_tool_call *call, int retry_ms);

#endif
