/* A run in words, for a model: its output, how it ended, its files, and what to do next. */
#pragma once

#include "common/mcp/features/tool.h"

#include <jansson.h>

struct run_wording {
    const char *detail; /* the call's; NULL: concise */
    bool no_output;     /* what it printed says nothing (an installation that went well) */
};

/* Makes the text of *out, whose pictures are there already, from the broker's result. */
void run_words(const struct mcp_tool_call *c, const struct run_wording *how, const json_t *result,
               struct mcp_result *out);
