/* tasks/get, tasks/update, tasks/cancel. */
#include "config.h"

#include "common/mcp/client/elicitation_rounds.h"
#include "common/mcp/features/task.h"
#include "common/mcp/methods.h"

#include <string.h>

bool mcp_client_can_task(const struct mcp_call *call)
{
    const json_t *extensions = json_object_get(mcp_call_capabilities(call), "extensions");

    return call->server->tasks && (call->era.features & MCP_IS_MODERN) &&
           json_is_object(json_object_get(extensions, MCP_EXTENSION_TASKS));
}

int mcp_fail_no_tasks(struct mcp_call *call)
{
    json_t *data = json_pack("{s:{s:{s:{}}}}", "requiredCapabilities", "extensions",
                             MCP_EXTENSION_TASKS);

    return mcp_fail(&call->failure, 400, MCP_MISSING_CAPABILITY, data,
                    "this needs a client that declares the extension " MCP_EXTENSION_TASKS);
}

/* The id that all of them name; NULL with call->failure. */
static const char *task_id(struct mcp_call *call)
{
    const json_t *id = json_object_get(call->params, "taskId");

    if (!call->server->tasks)
        mcp_fail(&call->failure, 404, RPC_METHOD_NOT_FOUND, NULL, "this server has no tasks");
    else if (!mcp_client_can_task(call))
        mcp_fail_no_tasks(call);
    else if (!json_is_string(id))
        mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "params.taskId must be a string");
    else if (json_string_length(id) > MCP_TASK_ID_MAX ||
             strlen(json_string_value(id)) != json_string_length(id))
        mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, MCP_NO_SUCH_TASK);
    else
        return json_string_value(id);
    return NULL;
}

static struct mcp_tool_call call_of(const struct mcp_call *call)
{
    return (struct mcp_tool_call){.server = call->server,
                                  .app = call->server->app,
                                  .tenant = call->origin->tenant,
                                  .cancel_fd = call->origin->cancel_fd,
                                  .leave_fd = -1};
}

static int fail_with(struct mcp_call *call, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, MCP_NO_SUCH_TASK);
    return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e->text);
}

int mcp_tasks_get(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_tool_call c = call_of(call);
    const char *id = task_id(call);
    AUTO_MCP_TASK struct mcp_task task = {.status = MCP_TASK_WORKING};
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (call->server->tasks->get(&c, id, false, &task, &e) < 0)
        return fail_with(call, &e);
    *out_result = mcp_task_to_json(&task, false);
    return 0;
}

int mcp_tasks_update(struct mcp_call *call, json_t **out_result)
{
    const json_t *responses = json_object_get(call->params, "inputResponses");
    const struct mcp_tool_call c = call_of(call);
    const char *id = task_id(call);
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (!json_is_object(responses))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.inputResponses must be an object");
    if (call->server->tasks->update(&c, id, responses, &e) < 0)
        return fail_with(call, &e);
    *out_result = json_object();
    return 0;
}

int mcp_tasks_cancel(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_tool_call c = call_of(call);
    const char *id = task_id(call);
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (call->server->tasks->cancel(&c, id, &e) < 0)
        return fail_with(call, &e);
    *out_result = json_object();
    return 0;
}
