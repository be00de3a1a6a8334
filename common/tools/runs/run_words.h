/* A run in words, for a model: its output, how it ended, its files, and what to do next. */
#pragma once

#include "common/mcp/features/tool.h"

#include <jansson.h>

/* "running", "ok", …; "" when the result has none. */
const char *run_words_status(const json_t *result);
bool run_words_has_status(const json_t *result, const char *status);

/* What the call asked for that ran it. */
struct run_asked {
    bool network, session, input;
    bool begins; /* the conversation is new */
};

struct run_wording {
    const char *detail; /* the call's; NULL: concise */
    bool no_output;     /* what it printed says nothing (an installation that went well) */
    const struct run_asked *asked; /* NULL: not known */
    const char *pictures;          /* a line about those in *out; NULL: none */
};

/* Makes the text of *out, whose pictures are there already, from the broker's result, which gets
 * the member advice. */
void run_words(const struct mcp_tool_call *c, const struct run_wording *how, json_t *result,
               struct mcp_result *out);
