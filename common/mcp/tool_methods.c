/* tools/list and tools/call. */
#include "config.h"

#include "common/base/buf.h"
#include "common/mcp/lists.h"
#include "common/mcp/methods.h"
#include "common/mcp/tool.h"

#include <string.h>

/* The list has one page and we never hand out a cursor, so any but the empty one is made up. */
static bool cursor_is_ours(const json_t *cursor)
{
    return !cursor || json_is_null(cursor) ||
           (json_is_string(cursor) && json_string_length(cursor) == 0);
}

int mcp_tools_list(struct mcp_call *call, json_t **out_result)
{
    json_t *result;

    if (!cursor_is_ours(json_object_get(call->params, "cursor")))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "unknown cursor");
    result = json_object();
    json_object_set_new(result, "tools", mcp_lists_tools(call->server, call->era.features));
    *out_result = result;
    return 0;
}

static bool answers_to(const struct mcp_tool *tool, const char *name)
{
    if (strcmp(tool->name, name) == 0)
        return true;
    for (const char *const *alias = tool->aliases; alias && *alias; alias++) {
        if (strcmp(*alias, name) == 0)
            return true;
    }
    return false;
}

static const struct mcp_tool *find_tool(const struct mcp_server *server, const json_t *name)
{
    if (strlen(json_string_value(name)) != json_string_length(name))
        return NULL; /* a NUL inside */
    for (size_t i = 0; i < server->n_tools; i++) {
        if (answers_to(server->tools[i], json_string_value(name)))
            return server->tools[i];
    }
    return NULL;
}

static int fail_unknown_tool(struct mcp_call *call)
{
    const struct mcp_server *server = call->server;
    AUTO_BUF struct buf names = BUF_INIT(4096);

    for (size_t i = 0; i < server->n_tools; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", server->tools[i]->name);
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                    "unknown tool: this server has %s", buf_str(&names));
}

int mcp_tools_call(struct mcp_call *call, json_t **out_result)
{
    const json_t *name = json_object_get(call->params, "name");
    const json_t *arguments = json_object_get(call->params, "arguments");
    const struct mcp_tool *tool;
    AUTO_MCP_RESULT struct mcp_result result = MCP_RESULT_INIT;

    if (!json_is_string(name))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.name must be a string: the name of a tool");
    if (json_is_null(arguments))
        arguments = NULL;
    if (arguments && !json_is_object(arguments))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.arguments must be an object");
    tool = find_tool(call->server, name);
    if (!tool)
        return fail_unknown_tool(call);

    call->detail = tool->name;
    struct mcp_tool_call tool_call = {
        .server = call->server,
        .app = call->server->app,
        .tenant = call->origin->tenant,
        .cancel_fd = call->origin->cancel_fd,
        .arguments = arguments,
    };
    tool->call(&tool_call, &result);
    *out_result = mcp_result_to_json(&result, call->era.features);
    return 0;
}
