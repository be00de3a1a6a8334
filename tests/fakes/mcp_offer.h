/* What the server of mcp_world.h offers: one tool for each thing that a tool can do on the way,
 * tasks in every status, prompts, resources. Linked by tests only. */
#ifndef SANDCGI_TESTS_MCP_OFFER_H
#define SANDCGI_TESTS_MCP_OFFER_H

#include "common/mcp/prompt.h"
#include "common/mcp/resource.h"
#include "common/mcp/task.h"
#include "common/mcp/tool.h"

extern const struct mcp_tool *const mcp_offer_tools[];
extern const size_t mcp_offer_n_tools;
extern const struct mcp_prompt *const mcp_offer_prompts[];
extern const size_t mcp_offer_n_prompts;
extern const struct mcp_resources mcp_offer_resources;
extern const struct mcp_tasks mcp_offer_tasks;

#endif
