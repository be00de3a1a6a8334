/* What a prompt is to this layer: a row, like a tool. */
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
