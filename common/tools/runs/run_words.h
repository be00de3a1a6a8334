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

/* How a program or command ended: "exit code 3, 0.2 s". row: a result, or one of exec's results. */
void run_words_end(struct buf *line, const struct mcp_tool_call *c, const json_t *row);

/* For output that was cut, and is not kept. */
void run_words_advise_cut(struct mcp_result *out);

/* The advice that the end of what was printed calls for, such as what is not installed. */
void run_words_advise(struct mcp_result *out, const struct mcp_tool_call *c, const char *text,
                      size_t len);
