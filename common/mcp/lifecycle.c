/* initialize, server/discover, ping: who we are and what we can do. */
#include "config.h"

#include "common/mcp/methods.h"
#include "common/mcp/pin.h"

static json_t *capabilities_new(void)
{
    json_t *capabilities = json_object();

    json_object_set_new(capabilities, "tools", json_object());
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

/* The revision was settled by era_decide. A missing protocolVersion is forgiven: a client that says
 * nothing gets ours. */
int mcp_initialize(struct mcp_call *call, json_t **out_result)
{
    const json_t *asked = json_object_get(call->params, "protocolVersion");
    const char *name = mcp_revision_name(call->era.revision);
    json_t *result;

    if (asked && !json_is_string(asked))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.protocolVersion must be a string");
    if (call->origin->pin)
        call->origin->pin->negotiated = name;

    result = json_object();
    json_object_set_new(result, "protocolVersion", json_string(name));
    json_object_set_new(result, "capabilities", capabilities_new());
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
    json_object_set_new(result, "capabilities", capabilities_new());
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
