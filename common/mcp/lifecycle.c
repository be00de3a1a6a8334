/* initialize, server/discover, ping: who we are and what we can do. */
#include "config.h"

#include "common/base/log.h"
#include "common/mcp/client/stdio_client.h"
#include "common/mcp/features/prompt.h"
#include "common/mcp/features/resource.h"
#include "common/mcp/features/task.h"
#include "common/mcp/methods.h"

static bool has_completion(const struct mcp_server *server)
{
    for (size_t i = 0; i < server->n_prompts; i++)
        if (server->prompts[i]->complete)
            return true;
    return server->resources && server->resources->complete;
}

/* What changes is only announced where somebody listens. */
static json_t *list_capability_new(const struct mcp_server *server, bool changes)
{
    json_t *capability = json_object();

    if (server->publish && changes)
        json_object_set_new(capability, "listChanged", json_true());
    return capability;
}

/* Prompts and resources are named even where there are none: the methods answer, with empty lists.
 */
static json_t *capabilities_new(const struct mcp_server *server, unsigned features)
{
    json_t *capabilities = json_object();
    json_t *resources = list_capability_new(server, server->resources != NULL);

    if (server->publish && server->resources && server->resources->can_subscribe)
        json_object_set_new(resources, "subscribe", json_true());
    json_object_set_new(capabilities, "tools",
                        list_capability_new(server, mcp_tools_can_change(server)));
    json_object_set_new(capabilities, "resources", resources);
    json_object_set_new(capabilities, "prompts",
                        list_capability_new(server, server->n_prompts > 0));
    json_object_set_new(capabilities, "logging", json_object());
    if (has_completion(server))
        json_object_set_new(capabilities, "completions", json_object());
    if (server->tasks && (features & MCP_IS_MODERN))
        json_object_set_new(capabilities, "extensions", json_pack("{s:{}}", MCP_EXTENSION_TASKS));
    return capabilities;
}

json_t *mcp_server_info_new(const struct mcp_server *server, unsigned features)
{
    json_t *info = json_object();

    json_object_set_new(info, "name", json_string(server->name));
    if (server->title && (features & MCP_CAN_TITLE))
        json_object_set_new(info, "title", json_string(server->title));
    json_object_set_new(info, "version", json_string(server->version));
    return info;
}

/* Where no session can be made the client is served without one. */
static void start_session(struct mcp_call *call)
{
    const json_t *capabilities = json_object_get(call->params, "capabilities");
    const struct mcp_origin *origin = call->origin;
    struct err e = ERR_INIT;

    if (origin->stdio_client) {
        json_decref(origin->stdio_client->capabilities);
        origin->stdio_client->capabilities = json_deep_copy(capabilities);
        origin->stdio_client->negotiated = mcp_revision_name(call->era.revision);
    } else if (origin->http && origin->tenant && call->server->sessions_fd >= 0 &&
               mcp_session_create(call->server, origin->tenant, call->era.revision, capabilities,
                                  json_object_get(call->params, "clientInfo"),
                                  call->answer->session, &e) < 0) {
        log_debug("%s", e.text);
    }
}

/* The revision was settled by era_decide. A missing protocolVersion is forgiven: a client that says
 * nothing gets ours. */
int mcp_initialize(struct mcp_call *call, json_t **out_result)
{
    const json_t *asked = json_object_get(call->params, "protocolVersion");
    json_t *result;

    if (asked && !json_is_string(asked))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.protocolVersion must be a string");
    start_session(call);
    result = json_object();
    json_object_set_new(result, "protocolVersion",
                        json_string(mcp_revision_name(call->era.revision)));
    json_object_set_new(result, "capabilities", capabilities_new(call->server, call->era.features));
    json_object_set_new(result, "serverInfo",
                        mcp_server_info_new(call->server, call->era.features));
    if (call->server->instructions)
        json_object_set_new(result, "instructions", json_string(call->server->instructions));
    *out_result = result;
    return 0;
}

/* Only modern revisions are named: clients take the list as what to retry with, without a
 * handshake. */
int mcp_discover(struct mcp_call *call, json_t **out_result)
{
    json_t *result = json_object();

    json_object_set_new(result, "supportedVersions", mcp_revision_list(MCP_ANY_MODERN));
    json_object_set_new(result, "capabilities", capabilities_new(call->server, call->era.features));
    if (call->server->instructions)
        json_object_set_new(result, "instructions", json_string(call->server->instructions));
    *out_result = result;
    return 0;
}

int mcp_ping(struct mcp_call *call, json_t **out_result)
{
    (void)call;
    *out_result = json_object();
    return 0;
}
