#include "config.h"

#include "common/mcp/methods.h"

#include <string.h>

/*
 * tools/list changes when a runner image comes or goes, so it may be kept for a minute only; it is
 * the same for every caller. What server/discover says changes with a new version of the program.
 */
#define MINUTE_MS (60 * 1000)
#define HOUR_MS   (60 * MINUTE_MS)

static const struct mcp_method methods[] = {
    {"initialize", MCP_ANY_LEGACY, RPC_REQUEST, mcp_initialize, NULL, NULL, 0},
    {"ping", MCP_ANY_LEGACY, RPC_REQUEST, mcp_ping, NULL, NULL, 0},
    {"server/discover", MCP_ANY_MODERN, RPC_REQUEST, mcp_discover, NULL, "public", HOUR_MS},
    {"tools/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_tools_list, NULL, "public", MINUTE_MS},
    {"tools/call", MCP_ANY_REVISION, RPC_REQUEST, mcp_tools_call, "name", NULL, 0},
    {"resources/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_list, NULL, "private", 0},
    {"resources/templates/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_templates, NULL,
     "public", HOUR_MS},
    {"resources/read", MCP_ANY_REVISION, RPC_REQUEST, mcp_resources_read, "uri", "private", 0},
    {"resources/subscribe", MCP_ANY_LEGACY, RPC_REQUEST, mcp_subscribe, NULL, NULL, 0},
    {"resources/unsubscribe", MCP_ANY_LEGACY, RPC_REQUEST, mcp_unsubscribe, NULL, NULL, 0},
    {"prompts/list", MCP_ANY_REVISION, RPC_REQUEST, mcp_prompts_list, NULL, "public", HOUR_MS},
    {"prompts/get", MCP_ANY_REVISION, RPC_REQUEST, mcp_prompts_get, "name", NULL, 0},
    {"completion/complete", MCP_ANY_REVISION, RPC_REQUEST, mcp_complete, NULL, NULL, 0},
    {"tasks/get", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_get, "taskId", NULL, 0},
    {"tasks/update", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_update, "taskId", NULL, 0},
    {"tasks/cancel", MCP_ANY_MODERN, RPC_REQUEST, mcp_tasks_cancel, "taskId", NULL, 0},
    {"logging/setLevel", MCP_ANY_LEGACY, RPC_REQUEST, mcp_set_level, NULL, NULL, 0},
    {"subscriptions/listen", MCP_ANY_MODERN, RPC_REQUEST, mcp_subscriptions_listen, NULL, NULL, 0},
    {"notifications/initialized", MCP_ANY_LEGACY, RPC_NOTIFICATION, NULL, NULL, NULL, 0},
    {"notifications/cancelled", MCP_ANY_REVISION, RPC_NOTIFICATION, mcp_cancelled, NULL, NULL, 0},
    {"notifications/progress", MCP_ANY_REVISION, RPC_NOTIFICATION, NULL, NULL, NULL, 0},
    {"notifications/roots/list_changed", MCP_ANY_LEGACY, RPC_NOTIFICATION, NULL, NULL, NULL, 0},
};

const struct mcp_method *mcp_method_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    }
    return NULL;
}
