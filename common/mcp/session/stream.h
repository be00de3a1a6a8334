/*
 * Event streams that can be taken up again (2025-11-25, "Resumability and Redelivery"). Each stream
 * is a file in the sessions' directory; the worker that serves the request appends, the hub replays
 * to a GET with Last-Event-ID and follows the file to its end. Bounded in messages, bytes and time
 * after its end.
 *
 * Event ids are "<stream>-<number>", stream being 16 hex digits of its tenant and 16 random ones;
 * number 0 is the priming event. Clients get them with the node's name in front (node.h).
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MCP_STREAM_MESSAGES_MAX 1000
#define MCP_STREAM_BYTES_MAX    (8u * 1024 * 1024)
/* Of them, notifications: */
#define MCP_STREAM_NOTES_MAX       900
#define MCP_STREAM_NOTES_BYTES_MAX (4u * 1024 * 1024)
#define MCP_STREAM_KEPT_S          300 /* after its end */
/* All of one tenant; above it, its oldest that have ended go: */
#define MCP_STREAMS_MAX       200
#define MCP_STREAMS_BYTES_MAX (64u * 1024 * 1024)
#define MCP_EVENT_ID_MAX      64
#define MCP_STREAM_SUFFIX     ".stream" /* of the files' names */

struct mcp_stream; /* the writer */

struct mcp_stream *mcp_stream_new(int sessions_fd, const char *tenant, const char *session,
                                  struct err *e);
/* Appends a message; out_id is the id to send with it. ERR_LIMIT over the bounds: the message can
 * then only be sent live. */
int mcp_stream_add(struct mcp_stream *s, const json_t *message, char out_id[MCP_EVENT_ID_MAX],
                   struct err *e);
/* The id of the priming event. */
void mcp_stream_first_id(const struct mcp_stream *s, char out_id[MCP_EVENT_ID_MAX]);
/* Marks the end (the response was added) and frees the writer. A writer that dies without it leaves
 * a stream that ends after a while. */
void mcp_stream_end(struct mcp_stream *s);

struct mcp_replay; /* the reader */

/* Checks the Last-Event-ID (hostile text) against the session: ERR_INVALID, ERR_NOT_FOUND. */
struct mcp_replay *mcp_replay_open(int sessions_fd, const char *session, const char *last_event_id,
                                   struct err *e);
/* Has the stream ended, and the client all of it? */
bool mcp_replay_is_over(const struct mcp_replay *r);
/* The file's descriptor, for inotify. */
int mcp_replay_fd(const struct mcp_replay *r);
/* The next message after the given id: 1 with *out (new reference) and its id, 0 when there is none
 * yet, -1 at the end of the stream. */
int mcp_replay_next(struct mcp_replay *r, json_t **out, char out_id[MCP_EVENT_ID_MAX]);
void mcp_replay_free(struct mcp_replay *r);

/* Has the stream's file no writer any more? */
bool mcp_stream_is_left(int sessions_fd, const char *name);

/* ---- Server-Sent Events as MCP uses them: one message is one "data:" line ---- */

#define SSE_KEEP_ALIVE_MS 15000

/* "id: …\nevent: message\ndata: …\n\n"; id NULL: none. */
void sse_add_message(struct buf *out, const char *id, const json_t *message);
/* The priming event: "id: …\nretry: …\ndata: \n\n". */
void sse_add_priming(struct buf *out, const char *id, int retry_ms);
/* ": \n\n" */
void sse_add_comment(struct buf *out);
