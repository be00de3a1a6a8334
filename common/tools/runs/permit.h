/*
 * What a caller may have its programs do: reach the network, with the user's consent where the
 * server wants it (SANDBOX_NETWORK=ask), and set environment variables.
 */
#pragma once

#include "common/base/err.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/run.h"
#include "common/tools/args.h"

/*
 * 1: the user has agreed to this very call. 0: *need asks for it, the call is made again with the
 * answer (or refused there when this client cannot ask). -1: ERR_DENIED, the user declined.
 */
/* What network: true gives this caller: SANDBOX_NETWORK, or what the web server says for it (none,
 * public, lan) when that is less. ERR_DENIED: nothing. */
int permit_network(const struct mcp_tool_call *c, bool wanted, enum network_tier *out,
                   struct err *e);

/* Must the caller's programs have containers of their own? The web server says so with "never", and
 * can't say less than SANDBOX_REUSE. What is not known is taken for "never". */
bool permit_single_use_only(const struct mcp_tool_call *c);

int consent_network(const struct mcp_tool_call *c, const char *language, struct run_text code,
                    struct mcp_need *need, struct err *e);

/* The same for everything that will run in a persistent sandbox. */
int consent_sandbox_network(const struct mcp_tool_call *c, struct mcp_need *need, struct err *e);

#define ENV_MAX      64 /* variables of one call */
#define ENV_NAME_MAX 128

/*
 * Checks the names in *map and drops those that the server sets itself. ERR_INVALID or ERR_DENIED,
 * naming the variable and the reason: a name that is not an ordinary one, or that changes how the
 * interpreter or the loader starts, so that other code than the given would run.
 */
int env_filter(struct arg_map *map, struct err *e);
