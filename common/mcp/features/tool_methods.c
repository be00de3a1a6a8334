/* tools/list and tools/call. */
#include "config.h"

#include "common/base/buf.h"
#include "common/mcp/client/elicitation_rounds.h"
#include "common/mcp/features/header_params.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/features/tools_list.h"
#include "common/mcp/methods.h"

#include <string.h>

int mcp_refuse_cursor(struct mcp_call *call)
{
    const json_t *cursor = json_object_get(call->params, "cursor");

    if (!cursor || json_is_null(cursor) ||
        (json_is_string(cursor) && json_string_length(cursor) == 0))
        return 0;
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "unknown cursor");
}

int mcp_tools_list(struct mcp_call *call, json_t **out_result)
{
    json_t *result;

    if (mcp_refuse_cursor(call) < 0)
        return -1;
    result = json_object();
    json_object_set_new(result, "tools", mcp_lists_tools(call->server, call->era.features));
    *out_result = result;
    return 0;
}

/* ---- finding it ---- */

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

/* Its index, or the number of tools when there is none. */
static size_t find_tool(const struct mcp_server *server, const json_t *name)
{
    size_t i = 0;

    if (strlen(json_string_value(name)) != json_string_length(name))
        return server->n_tools; /* a NUL inside */
    while (i < server->n_tools && !answers_to(server->tools[i], json_string_value(name)))
        i++;
    return i;
}

static int fail_unknown_tool(struct mcp_call *call)
{
    const struct mcp_server *server = call->server;
    const struct mcp_error_style *error_style = server->error_style;
    AUTO_BUF struct buf names = BUF_INIT(4096);

    if (error_style && !(call->era.features & MCP_IS_MODERN))
        return mcp_fail_named(&call->failure, error_style->unknown_tool_code,
                              error_style->unknown_tool,
                              json_string_value(json_object_get(call->params, "name")));
    for (size_t i = 0; i < server->n_tools; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", server->tools[i]->name);
    return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                    "unknown tool: this server has %s", buf_str(&names));
}

/* ---- calling it ---- */

struct tool_round {
    const struct mcp_tool *tool;
    struct mcp_tool_call call;
    struct mcp_result result;
};

static void run_round(void *ctx, const struct mcp_ask *ask, struct mcp_need *need)
{
    struct tool_round *r = ctx;

    mcp_result_clear(&r->result);
    r->call.ask = ask;
    if (r->tool->run)
        r->call.server->arguments->call(&r->call, &r->result);
    else
        r->tool->call(&r->call, &r->result);
    *need = r->result.need;
    r->result.need = (struct mcp_need){.requests = NULL};
}

/* The method that the tool cannot do without and the client did not declare; NULL: all is well. */
static const char *missing_method(const struct mcp_call *call, const struct mcp_tool *tool)
{
    for (const char *const *m = tool->requires; m && *m; m++)
        if (!mcp_client_can(mcp_call_capabilities(call), *m, NULL))
            return *m;
    return NULL;
}

static int check_headers(struct mcp_call *call, size_t index, const json_t *arguments)
{
    json_auto_t *schema = NULL;

    if (!call->server->tools[index]->mirrors_arguments)
        return 0;
    schema = mcp_lists_input_schema(call->server, index);
    return mcp_check_header_params(call, schema, arguments);
}

/* CreateTaskResult */
static json_t *created_new(const struct mcp_task *task)
{
    json_t *result = mcp_task_to_json(task, true);

    json_object_set_new(result, "resultType", json_string("task"));
    return result;
}

static int run_tool(struct mcp_call *call, struct mcp_channel *channel, struct tool_round *r,
                    json_t **out_result)
{
    const struct mcp_asking asking = {
        .round = run_round, .ctx = r, .name = r->tool->name, .arguments = r->call.arguments};
    struct err e = ERR_INIT;

    switch (mcp_asking_run(call, channel, &asking, out_result, &e)) {
    case MCP_ASKED_DONE:
        break;
    case MCP_ASKED_INPUT:
        return 0;
    case MCP_ASKED_REFUSED:
        return -1;
    case MCP_ASKED_NO_ANSWER:
        mcp_result_fail(&r->result, "%s", e.text);
        break;
    }
    if (r->result.refusal)
        return mcp_fail(&call->failure, 200, r->result.refusal, TAKE_PTR(r->result.structured),
                        "%s", mcp_result_text(&r->result));
    *out_result = r->result.task ? created_new(r->result.task)
                                 : mcp_result_to_json(&r->result, call->era.features);
    return 0;
}

/* Who cancels does not want an answer. Without a session it was the connection that was lost, and
 * there is nobody to spare. */
static bool is_cancelled(const struct mcp_call *call, const struct mcp_channel *channel)
{
    return (call->session || call->origin->stdio_client) && mcp_channel_is_cancelled(channel);
}

static int call_tool(struct mcp_call *call, size_t index, const json_t *arguments,
                     json_t **out_result)
{
    AUTO_MCP_CHANNEL struct mcp_channel channel = MCP_CHANNEL_INIT;
    struct tool_round r = {.tool = call->server->tools[index]};
    const char *missing = missing_method(call, r.tool);
    int rc;

    if (missing && (call->era.features & MCP_IS_MODERN))
        return mcp_fail_capability(call, missing, NULL);
    if (r.tool->task_required && (call->era.features & MCP_IS_MODERN) && !mcp_client_can_task(call))
        return mcp_fail_no_tasks(call);
    if (check_headers(call, index, arguments) < 0 || mcp_channel_open(&channel, call) < 0)
        return -1;
    r.call = (struct mcp_tool_call){
        .server = call->server,
        .tool = r.tool,
        .app = call->server->app,
        .tenant = call->origin->tenant,
        .cancel_fd = mcp_channel_cancel_fd(&channel),
        .leave_fd = mcp_channel_leave_fd(&channel),
        .arguments = arguments,
        .channel = &channel,
        .lone = !call->origin->http,
        .can_task = mcp_client_can_task(call),
        .trace = call->trace[0] ? call->trace : NULL,
    };
    if (missing) {
        mcp_result_fail(&r.result,
                        "this needs a client that can be asked (%s); this one did not declare it",
                        missing);
        *out_result = mcp_result_to_json(&r.result, call->era.features);
        rc = 0;
    } else {
        rc = run_tool(call, &channel, &r, out_result);
    }
    call->cancelled = is_cancelled(call, &channel);
    mcp_result_clear(&r.result);
    return rc;
}

int mcp_tools_call(struct mcp_call *call, json_t **out_result)
{
    const json_t *name = json_object_get(call->params, "name");
    const json_t *arguments = json_object_get(call->params, "arguments");
    size_t index;

    if (!json_is_string(name))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.name must be a string: the name of a tool");
    if (json_is_null(arguments))
        arguments = NULL;
    if (arguments && !json_is_object(arguments))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.arguments must be an object");
    index = find_tool(call->server, name);
    if (index == call->server->n_tools)
        return fail_unknown_tool(call);
    call->detail = call->server->tools[index]->name;
    return call_tool(call, index, arguments, out_result);
}
