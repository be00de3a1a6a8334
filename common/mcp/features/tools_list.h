/*
 * The tools array of tools/list. It depends on a few features of the revision and on the tools' own
 * versions, so it is built once per set of features and kept until a tool's version changes.
 */
#ifndef SANDCGI_MCP_FEATURES_TOOLS_LIST_H
#define SANDCGI_MCP_FEATURES_TOOLS_LIST_H

#include "common/mcp/server.h"

/* For mcp_server.lists. */
struct mcp_lists *mcp_lists_new(void);
void mcp_lists_free(struct mcp_lists *l);

/* A new reference to the array, shared with later callers: not to be changed. */
json_t *mcp_lists_tools(const struct mcp_server *server, unsigned features);

/*
 * The text of a whole result of tools/list, written at the first call for these features after a
 * change and kept. result is what mcp_lists_tools's array has become just now. NULL without lists
 * or when it is too long. Borrowed, until the next call.
 */
const struct buf *mcp_lists_text(const struct mcp_server *server, unsigned features,
                                 const json_t *result);

/* The input schema of the i-th tool; a new reference, not to be changed. */
json_t *mcp_lists_input_schema(const struct mcp_server *server, size_t i);

#endif
