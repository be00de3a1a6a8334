/* Prompts (a row each, like a tool) and resources (one provider per server) to this layer. */
#pragma once

#include "common/base/err.h"
#include "common/mcp/client/elicitation.h"

#include <jansson.h>
#include <stdbool.h>

struct mcp_prompt_argument {
    const char *name;
    const char *title;
    const char *help;
    bool required;
};

struct mcp_prompt_call {
    void *app;
    const char *tenant;
    const json_t *arguments; /* object of strings, checked against the table; NULL: none */
    const struct mcp_elicitation *elicitation; /* what the user answered so far */
};

struct mcp_prompt {
    const char *name;
    const char *title;
    const char *help;
    const struct mcp_prompt_argument *arguments; /* ends with a NULL name */
    /* The messages: array of {role, content}; new reference. NULL: with input still needed in
     * *need, or an error in *e. */
    json_t *(*get)(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e);
    /* Up to 100 values for an argument that begin with value; array of strings, new reference;
     * NULL: no suggestions. context: the arguments given so far, may be NULL. */
    json_t *(*complete)(void *app, const char *tenant, const char *argument, const char *value,
                        const json_t *context);
};

struct mcp_resources {
    /* One page: array of {uri, name, title?, mimeType?, size?, annotations?}. named: the values of
     * mcp_server.named_argument that the session has named, may be NULL. cursor NULL or "": the
     * first; *out_next (heap) NULL: the last. ERR_INVALID: not a cursor of ours. */
    json_t *(*list)(void *app, const char *tenant, const json_t *named, const char *cursor,
                    char **out_next, struct err *e);
    /* Array of {uriTemplate, name, …}; new reference. */
    json_t *(*templates)(void *app);
    /* The contents array: [{uri, mimeType, text | blob}]. ERR_NOT_FOUND: unknown to this tenant;
     * ERR_LIMIT: too large to be read whole. */
    json_t *(*read)(void *app, const char *tenant, const char *uri, struct err *e);
    /* What decides about the node of a resource, on the heap: its conversation, or else an id; both
     * stay NULL where no node has it. NULL function: of all. */
    void (*belongs)(const char *uri, char **out_conversation, char **out_id);
    /* May this tenant subscribe to uri? (It need not exist yet.) */
    bool (*can_subscribe)(void *app, const char *tenant, const char *uri);
    /* As mcp_prompt.complete, for a variable of the template uri. */
    json_t *(*complete)(void *app, const char *tenant, const char *uri_template,
                        const char *argument, const char *value, const json_t *context);
};
