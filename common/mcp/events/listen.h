/*
 * What one open stream subscribes to: a modern subscriptions/listen, or the GET stream of a legacy
 * session. Used by the hub (one per stream) and by stdio. Small: thousands of them are held at
 * once.
 */
#pragma once

#include "common/mcp/events/event.h"
#include "common/mcp/server.h"

struct mcp_listen;

/*
 * Of a legacy session's GET stream: checks session, tenant, version header and Accept; 0, or -1
 * with *out the refusal (400, 404, 405, 406). That there is one such stream per session (409) is
 * for the holder of the streams to check. On stdio (origin->stdio_client): of the process's one
 * client; the stdio_client must outlive it.
 */
int mcp_listen_session(const struct mcp_server *server, const struct mcp_origin *origin,
                       struct mcp_listen **out_listen, struct mcp_answer *out);

/* The notification to send for event on this stream (new reference), or NULL when it does not
 * concern it. SESSION events re-read the record; *out_end becomes true when the session is gone and
 * the stream must be closed. */
json_t *mcp_listen_message(struct mcp_listen *l, const struct mcp_server *server,
                           const struct mcp_event *event, bool *out_end);

/*
 * What mcp_listen_message does for a task, in parts: task_state asks the broker and may wait; a
 * process that must not wait leaves that to another.
 */
bool mcp_listen_wants_task(const struct mcp_listen *l, const char *tenant, const char *task);
/* What of the state is the stream's own: the form of a result (enum mcp_feature). */
unsigned mcp_listen_features(const struct mcp_listen *l);
/* New reference; NULL: the task cannot be looked up (any more). */
json_t *mcp_listen_task_state(const struct mcp_server *server, unsigned features,
                              const char *tenant, const char *id);
json_t *mcp_listen_task_message(const struct mcp_listen *l, const json_t *state);

/* The last message of a stream that the server ends itself: the response to subscriptions/listen;
 * NULL for GET streams. New reference. */
json_t *mcp_listen_end(const struct mcp_listen *l, const struct mcp_server *server);

/* Nothing of the request is honoured: send the acknowledgement, then mcp_listen_end. */
bool mcp_listen_is_empty(const struct mcp_listen *l);

/* The legacy session whose GET stream this is (at most one each); NULL: another kind of stream. */
const char *mcp_listen_session_id(const struct mcp_listen *l);
void mcp_listen_free(struct mcp_listen *l);
