/*
 * The tools, prompts and resources that the server offers. The conformance suite's server is the
 * same program linked with another registry.c (tests/conformance).
 */
#pragma once

#include "common/mcp/server.h"

struct registry {
    const struct mcp_tool *const *tools; /* in the order of tools/list */
    size_t n_tools;
    const struct mcp_prompt *const *prompts; /* in the order of prompts/list; NULL: none */
    size_t n_prompts;
    const struct mcp_resources *resources;
    const struct mcp_tasks *tasks; /* NULL: none */
};

/* Constant for the life of the process. */
const struct registry *registry_of_server(void);
