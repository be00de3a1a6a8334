/* The real tools over the fake broker, ready to be asked. Linked by tests only. */
#pragma once

#include "common/mcp/server.h"
#include "common/tools/tools.h"

struct tools_world {
    struct tools_app app;
    struct mcp_server server;
    const char *reuse, *network; /* of its calls' origin */
};

/* Resets the fake broker, too: python and bash are there, and nothing is in trouble but runs
 * without a result. */
void tools_world_init(struct tools_world *w);
/* From now on it offers another server's set of tools, those for local use among them. */
void tools_world_offer(struct tools_world *w, const char *name);
void tools_world_clear(struct tools_world *w);

/*
 * Calls a tool as a 2025-11-25 client; arguments is JSON text. The result (or, when the call itself
 * is refused, the error) is a new reference.
 */
json_t *tools_world_call(struct tools_world *w, const char *tool, const char *arguments);

/* The text of the result's n-th content block; NULL when it has none. Borrowed. */
const char *tools_world_text(const json_t *result, size_t n);

/* The row of a tool in tools/list; new reference. */
json_t *tools_world_row(struct tools_world *w, const char *tool);
