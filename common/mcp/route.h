/*
 * Which of several nodes serves a message. What a call belongs to (a run, a sandbox, a
 * conversation) is on one node, its home; a call that arrives at another is sent on by the edge,
 * before anything of it is done. Without an edge (mcp_origin.edge) all is served where it arrives.
 */
#pragma once

#include "common/mcp/call.h"
#include "common/sandbox/stand_in.h"

#define MCP_CONVERSATION_MAX 256                   /* bytes of its name */
#define MCP_MADE_DIGITS      20                    /* decimal ones cost a model least */
#define MCP_MADE_MAX         (MCP_MADE_DIGITS + 2) /* of such a name, with its NUL */

/* Are the two names equal but for case, '_', '-' and blanks (conversation_id)? */
bool mcp_argument_is(const char *name, const char *argument);

/* The header Mcp-Param-<name> that mirrors an argument by which calls are routed; NULL: it is none.
 */
const char *mcp_route_header(const char *argument);

/* Makes an unguessable name for a new conversation. */
void mcp_conversation_make(char out[MCP_MADE_MAX]);

/* What is found out about a request beside its place. */
struct mcp_route {
    char made[MCP_MADE_MAX]; /* name of the conversation that it begins, which the edge has already
                                sent to its home; "": any */
    char conversation[MCP_CONVERSATION_MAX + 1]; /* that it is about; "": none */
    char inside[SANDBOX_ID_MAX + 1]; /* its name here while its home is away (stand_in.h) */
};

/*
 * Where a request is served: 0 here, 1 elsewhere with call->answer->to, or -1 with call->failure:
 * the node is away, or the edge's key is none of ours. When this node stands in for the home,
 * node_stand_in is set, until mcp_route_end.
 */
int mcp_route_request(struct mcp_call *call, struct mcp_route *out);
void mcp_route_end(void);

/* The same of a response to a request of ours, whose id names the node that asked, and of
 * notifications/cancelled. */
int mcp_route_other(const struct mcp_call *call, const struct rpc_message *message);
