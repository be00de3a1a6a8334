/*
 * Arguments that a tool wants mirrored in headers (2026-07-28, "x-mcp-header"), so that a web
 * server can route by them: the headers must say what the body says.
 */
#ifndef SANDCGI_MCP_FEATURES_HEADER_PARAMS_H
#define SANDCGI_MCP_FEATURES_HEADER_PARAMS_H

#include "common/mcp/methods.h"

/* schema: the tool's input schema; arguments may be NULL. 0, or -1 with call->failure. */
int mcp_check_header_params(struct mcp_call *call, const json_t *schema, const json_t *arguments);

#endif
