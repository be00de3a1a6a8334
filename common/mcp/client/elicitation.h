/*
 * Asking the client's user in the middle of a call, the same way for both eras. A handler that
 * lacks an answer states what it needs (mcp_need) and returns; it is called again with the answers
 * (mcp_elicitation) and the state it left. Modern clients get input_required and repeat the request
 * themselves: one round per request. For legacy clients this layer sends the requests on the call's
 * stream, waits, and calls the handler again.
 */
#pragma once

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>

#define MCP_ROUNDS_MAX         8 /* legacy */
#define MCP_ROUND_WAIT_MS      (600 * 1000)
#define MCP_ROUND_REQUESTS_MAX 16

struct mcp_call;    /* call.h */
struct mcp_channel; /* client_channel.h */

/* What came back. Borrowed. */
struct mcp_elicitation {
    const json_t *capabilities; /* of the client: object; NULL: none declared */
    const json_t *responses;    /* object key → result; NULL: nothing yet */
    const json_t *state; /* what the handler put into mcp_need.state last time; NULL: first call */
};

/* What is needed. Owned by its creator; mcp_need_clear. */
struct mcp_need {
    json_t *requests; /* object key → {method, params}; NULL or empty: none */
    json_t *state;    /* any value; sealed on its way through the client, which can read but not
                         change it; NULL: none */
};

void mcp_need_clear(struct mcp_need *n);
bool mcp_need_is_empty(const struct mcp_need *n);

/* Adds a request; takes params. */
void mcp_need_add(struct mcp_need *n, const char *key, const char *method, json_t *take_params);

/* Does the client support this method ("elicitation/create", "sampling/createMessage",
 * "roots/list")? */
bool mcp_elicitation_possible(const struct mcp_elicitation *elicitation, const char *method);

/* The response under key when it is an object, else NULL. */
const json_t *mcp_elicitation_response(const struct mcp_elicitation *elicitation, const char *key);

/* ---- for this layer ---- */

struct mcp_rounds {
    /* One round. *need is empty before; what is in it afterwards is sent to the client, and the
     * handler called again. */
    void (*round)(void *ctx, const struct mcp_elicitation *elicitation, struct mcp_need *need);
    void *ctx;
    const char *name; /* of the tool or prompt; with the arguments what a state belongs to */
    const json_t *arguments;
};

enum mcp_rounds_end {
    MCP_ROUNDS_DONE,           /* the handler needed nothing (more): its outcome stands */
    MCP_ROUNDS_INPUT_REQUIRED, /* *out_result is an InputRequiredResult, to be sent as it is */
    MCP_ROUNDS_REFUSED,        /* see call->failure */
    MCP_ROUNDS_NO_ANSWER       /* the client cannot be asked, or gave no usable answer: *e */
};

enum mcp_rounds_end mcp_rounds_run(struct mcp_call *call, struct mcp_channel *channel,
                                   const struct mcp_rounds *rounds, json_t **out_result,
                                   struct err *e);

/* Does a client with these capabilities support this method with these params (NULL: any)? */
bool mcp_client_can(const json_t *capabilities, const char *method, const json_t *params);

/* Refuses because of a missing capability: HTTP 400, -32021. Always returns -1. */
int mcp_fail_capability(struct mcp_call *call, const char *method, const json_t *params);
