/* What the server of mcp_world.h offers: one tool for each thing that a tool can do on the way,
 * tasks in every status, prompts, resources. Linked by tests only. */
#pragma once

#include "common/mcp/features/offer.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"

extern const struct mcp_tool *const mcp_offer_tools[];
extern const size_t mcp_offer_n_tools;
extern const struct mcp_prompt *const mcp_offer_prompts[];
extern const size_t mcp_offer_n_prompts;
extern const struct mcp_resources mcp_offer_resources;
extern const struct mcp_tasks mcp_offer_tasks;
