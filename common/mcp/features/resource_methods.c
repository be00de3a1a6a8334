/* resources/list, resources/templates/list, resources/read. */
#include "config.h"

#include "common/mcp/call.h"
#include "common/mcp/features/resource.h"
#include "common/rpc/json.h"

int mcp_resources_list(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;
    const json_t *cursor = json_object_get(call->params, "cursor");
    AUTO_FREE char *next = NULL;
    struct err e = ERR_INIT;
    json_t *page;

    if (!r && mcp_refuse_cursor(call) < 0)
        return -1;
    if (cursor && !json_is_null(cursor) && !json_get_string(call->params, "cursor"))
        return mcp_fail_params(call, "unknown cursor");
    page = r ? r->list(call->server->app, call->origin->tenant,
                       json_get_string(call->params, "cursor"), &next, &e)
             : json_array();
    if (!page)
        return mcp_fail_err(call, &e);
    *out_result = json_pack("{s:o, s:s*}", "resources", page, "nextCursor", next);
    return 0;
}

int mcp_resources_templates(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;

    if (mcp_refuse_cursor(call) < 0)
        return -1;
    *out_result = json_pack("{s:o}", "resourceTemplates",
                            r && r->templates ? r->templates(call->server->app) : json_array());
    return 0;
}

static int fail_not_found(struct mcp_call *call, const char *uri)
{
    bool modern = call->era.features & MCP_IS_MODERN;

    return mcp_fail(&call->failure, 200, modern ? RPC_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
                    json_pack("{s:s}", "uri", uri), "resource not found");
}

int mcp_resources_read(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_resources *r = call->server->resources;
    const char *uri = json_get_string(call->params, "uri");
    struct err e = ERR_INIT;
    json_t *contents;

    if (!uri)
        return mcp_fail_params(call, "params.uri must be a string");
    if (!r)
        return fail_not_found(call, uri);
    contents = r->read(call->server->app, call->origin->tenant, uri, &e);
    if (!contents)
        return e.kind == ERR_NOT_FOUND ? fail_not_found(call, uri) : mcp_fail_err(call, &e);
    *out_result = json_pack("{s:o}", "contents", contents);
    return 0;
}

bool mcp_resource_can_subscribe(const struct mcp_server *server, const char *tenant,
                                const char *uri)
{
    const struct mcp_resources *r = server->resources;

    return server->publish && r && r->can_subscribe && r->can_subscribe(server->app, tenant, uri);
}
