/* The user's consent to network access, where the server wants it (SANDBOX_NETWORK=ask). */
#ifndef SANDCGI_TOOLS_RUNS_CONSENT_H
#define SANDCGI_TOOLS_RUNS_CONSENT_H

#include "common/base/err.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/run.h"

/*
 * 1: the user has agreed to this very call. 0: *need asks for it, the call is made again with the
 * answer (or refused there when this client cannot ask). -1: ERR_DENIED, the user declined.
 */
int consent_network(const struct mcp_tool_call *c, const char *language, struct run_text code,
                    struct mcp_need *need, struct err *e);

/* The same for everything that will run in a sandbox that stays. */
int consent_sandbox_network(const struct mcp_tool_call *c, struct mcp_need *need, struct err *e);

#endif
