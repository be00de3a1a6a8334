#include "config.h"

#include "common/mcp/features/task.h"

#include "common/mcp/call.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NO_SUCH_TASK "taskId: no such task (unknown, expired, or another client's)"

static const char *const statuses[] = {
    [MCP_TASK_WORKING] = "working",     [MCP_TASK_INPUT] = "input_required",
    [MCP_TASK_COMPLETED] = "completed", [MCP_TASK_FAILED] = "failed",
    [MCP_TASK_CANCELLED] = "cancelled",
};

void mcp_task_clear(struct mcp_task *t)
{
    free(t->message);
    json_decref(t->requests);
    mcp_result_clear(&t->result);
    *t = (struct mcp_task){.status = MCP_TASK_WORKING};
}

/* "2026-07-28T12:00:00.250Z" */
static json_t *time_new(int64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    char text[64];
    struct tm parts;
    size_t n;

    gmtime_r(&seconds, &parts);
    n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + n, sizeof text - n, ".%03dZ", (int)(unix_ms % 1000));
    return json_string(text);
}

/* The members that every task has. */
static json_t *task_new(const struct mcp_task *t)
{
    return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o, s:o*}", "taskId", t->id, "status",
                     statuses[t->status], "statusMessage", t->message, "createdAt",
                     time_new(t->created_ms), "lastUpdatedAt", time_new(t->updated_ms), "ttlMs",
                     t->ttl_ms > 0 ? json_integer(t->ttl_ms) : json_null(), "pollIntervalMs",
                     t->poll_ms > 0 ? json_integer(t->poll_ms) : NULL);
}

json_t *mcp_task_created(const struct mcp_task *t)
{
    json_t *task = task_new(t);

    json_object_set_new(task, "resultType", json_string("task"));
    return task;
}

json_t *mcp_task_to_json(const struct mcp_task *t, unsigned features)
{
    json_t *task = task_new(t);

    if (t->status == MCP_TASK_INPUT && t->requests)
        json_object_set(task, "inputRequests", t->requests);
    if (t->status == MCP_TASK_COMPLETED) {
        json_t *result = mcp_result_to_json(&t->result, features);
        json_object_set_new(result, "resultType", json_string("complete"));
        json_object_set_new(task, "result", result);
    }
    if (t->status == MCP_TASK_FAILED)
        json_object_set_new(task, "error",
                            json_pack("{s:i, s:s}", "code", t->code, "message",
                                      t->message ? t->message : "the task failed"));
    return task;
}

/* ---- the methods ---- */

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
        mcp_fail_params(call, "params.taskId must be a string");
    else if (json_string_length(id) > MCP_TASK_ID_MAX ||
             strlen(json_string_value(id)) != json_string_length(id))
        mcp_fail_params(call, NO_SUCH_TASK);
    else
        return json_string_value(id);
    return NULL;
}

static struct mcp_tool_call tool_call_of(const struct mcp_call *call)
{
    return (struct mcp_tool_call){.server = call->server,
                                  .app = call->server->app,
                                  .tenant = call->origin->tenant,
                                  .cancel_fd = call->origin->cancel_fd,
                                  .leave_fd = -1,
                                  .in_text = call->era.features & MCP_IN_TEXT};
}

static int task_fail(struct mcp_call *call, const struct err *e)
{
    if (e->kind == ERR_NOT_FOUND)
        return mcp_fail_params(call, NO_SUCH_TASK);
    return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e->text);
}

int mcp_tasks_get(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_tool_call c = tool_call_of(call);
    const char *id = task_id(call);
    AUTO_MCP_TASK struct mcp_task task = {.status = MCP_TASK_WORKING};
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (call->server->tasks->get(&c, id, false, &task, &e) < 0)
        return task_fail(call, &e);
    *out_result = mcp_task_to_json(&task, call->era.features);
    return 0;
}

int mcp_tasks_update(struct mcp_call *call, json_t **out_result)
{
    const json_t *responses = json_object_get(call->params, "inputResponses");
    const struct mcp_tool_call c = tool_call_of(call);
    const char *id = task_id(call);
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (!json_is_object(responses))
        return mcp_fail_params(call, "params.inputResponses must be an object");
    if (call->server->tasks->update(&c, id, responses, &e) < 0)
        return task_fail(call, &e);
    *out_result = json_object();
    return 0;
}

int mcp_tasks_cancel(struct mcp_call *call, json_t **out_result)
{
    const struct mcp_tool_call c = tool_call_of(call);
    const char *id = task_id(call);
    struct err e = ERR_INIT;

    if (!id)
        return -1;
    if (call->server->tasks->cancel(&c, id, &e) < 0)
        return task_fail(call, &e);
    *out_result = json_object();
    return 0;
}
