/*
 * Asking the client's user in the middle of a call: one style for both eras. A handler that lacks
 * an answer says what it needs (mcp_need) and returns; it is called again with the answers
 * (mcp_ask) and the state it gave along. Modern clients get input_required and call again
 * themselves; for legacy ones this layer sends the requests on the call's stream, waits, and calls
 * again (at most 8 rounds, 600 s each).
 */
#ifndef SANDCGI_MCP_CLIENT_ELICITATION_H
#define SANDCGI_MCP_CLIENT_ELICITATION_H

#include <jansson.h>
#include <stdbool.h>

/* What came back. Borrowed. */
struct mcp_ask {
    const json_t *capabilities; /* of the client: object; NULL: none declared */
    const json_t *responses;    /* object key → result; NULL: nothing yet */
    const json_t *state; /* what the handler put into mcp_need.state last time; NULL: first call */
};

/* What is needed. Owned by whoever made it; mcp_need_clear. */
struct mcp_need {
    json_t *requests; /* object key → {method, params}; NULL or empty: nothing */
    json_t *state;    /* any value; sealed on its way through the client, which can read but not
                         change    it; NULL: none */
};

void mcp_need_clear(struct mcp_need *n);

/* May the client be asked by this method ("elicitation/create", "sampling/createMessage",
 * "roots/list")? */
bool mcp_ask_possible(const struct mcp_ask *ask, const char *method);

/* The response under key when it is an object, else NULL. */
const json_t *mcp_ask_response(const struct mcp_ask *ask, const char *key);

/* Adds a request; takes params. */
void mcp_need_add(struct mcp_need *n, const char *key, const char *method, json_t *take_params);

/* ---- for this layer ---- */

bool mcp_need_is_empty(const struct mcp_need *n);

/* May a client with these capabilities be asked by this method with these params (NULL: any)? */
bool mcp_client_can(const json_t *capabilities, const char *method, const json_t *params);

/* The ClientCapabilities that such a request needs, as an object; new reference. */
json_t *mcp_capability_new(const char *method, const json_t *params);

#endif
