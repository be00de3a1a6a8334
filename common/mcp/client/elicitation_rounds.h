/*
 * The rounds of a handler that may ask its client's user (ask.h). Modern clients carry the
 * questions and the answers themselves: one round per request. For legacy ones the rounds are all
 * here.
 */
#ifndef SANDCGI_MCP_CLIENT_ELICITATION_ROUNDS_H
#define SANDCGI_MCP_CLIENT_ELICITATION_ROUNDS_H

#include "common/mcp/client/client_channel.h"
#include "common/mcp/client/elicitation.h"

#define MCP_ASK_ROUNDS_MAX 8
#define MCP_ASK_WAIT_MS    (600 * 1000)
#define MCP_ASK_MAX        16 /* questions per round */

struct mcp_asking {
    /* One round. *need is empty before; what is in it afterwards is asked, and the handler called
     * again. */
    void (*round)(void *ctx, const struct mcp_ask *ask, struct mcp_need *need);
    void *ctx;
    const char *name; /* of the tool or prompt; with the arguments what a state belongs to */
    const json_t *arguments;
};

enum mcp_asked {
    MCP_ASKED_DONE,     /* the handler needed nothing (more): its outcome stands */
    MCP_ASKED_INPUT,    /* *out_result is an InputRequiredResult, to be sent as it is */
    MCP_ASKED_REFUSED,  /* call->failure says why */
    MCP_ASKED_NO_ANSWER /* the client cannot be asked, or did not answer as it should: *e */
};

enum mcp_asked mcp_asking_run(struct mcp_call *call, struct mcp_channel *channel,
                              const struct mcp_asking *asking, json_t **out_result, struct err *e);

/* What the client declared; NULL: nothing is known. */
const json_t *mcp_call_capabilities(const struct mcp_call *call);

/* Refuses because of a missing capability: HTTP 400, -32021. Always returns -1. */
int mcp_fail_capability(struct mcp_call *call, const char *method, const json_t *params);

#endif
