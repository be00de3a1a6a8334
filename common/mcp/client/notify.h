/*
 * What a handler may send to its client while it works. Whether the client wants it is decided
 * here. All functions accept a NULL channel (no client listens) and never block longer than a write
 * to the client.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct mcp_channel; /* client_channel.h */

/* The severity of a level of notifications/message, 0 the most urgent (RFC 5424); -1: unknown. */
int mcp_log_level_parse(const char *name);

/* Would mcp_progress send anything? For handlers whose progress is expensive to find out. */
bool mcp_progress_wanted(const struct mcp_channel *c);

/*
 * notifications/progress. total <= 0: unknown; message NULL: none. Steps that do not increase, and
 * those that follow too quickly, are dropped.
 */
void mcp_progress(struct mcp_channel *c, double progress, double total, const char *message);

/*
 * notifications/progress whose message is a piece of output (a string): none is dropped. progress
 * is raised a little where it would not increase. meta (borrowed): its _meta; NULL: none.
 */
void mcp_progress_text(struct mcp_channel *c, double progress, const json_t *text,
                       const json_t *meta);

/* Time since the last message to the client; INT64_MAX: there was none yet. */
int64_t mcp_silence_ms(const struct mcp_channel *c);
