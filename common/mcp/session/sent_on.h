/*
 * Calls of a legacy session that were sent on to another node. A file of fixed size in the
 * sessions' directory, "<session>.n", holds where the latest of them went, so that
 * notifications/cancelled, which reaches the session's node, follows.
 */
#pragma once

#include "common/mcp/server.h"

#include <jansson.h>
#include <stdbool.h>

#define SENT_ON_SUFFIX ".n"

/* Without it (no room, …) the call cannot be cancelled. */
void sent_on_note(int sessions_fd, const char *session, const json_t *request_id,
                  const struct mcp_elsewhere *where);
/* false: nothing is noted about the request. */
bool sent_on_find(int sessions_fd, const char *session, const json_t *request_id,
                  struct mcp_elsewhere *out);
