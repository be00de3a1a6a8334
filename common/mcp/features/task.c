#include "config.h"

#include "common/mcp/features/task.h"

#include "common/base/mem.h"
#include "common/mcp/revision.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const statuses[] = {
    [MCP_TASK_WORKING] = "working",     [MCP_TASK_INPUT] = "input_required",
    [MCP_TASK_COMPLETED] = "completed", [MCP_TASK_FAILED] = "failed",
    [MCP_TASK_CANCELLED] = "cancelled",
};

struct mcp_task *mcp_task_new(const char *id)
{
    struct mcp_task *t = mem_alloc(sizeof *t);

    snprintf(t->id, sizeof t->id, "%s", id);
    return t;
}

void mcp_task_clear(struct mcp_task *t)
{
    free(t->message);
    json_decref(t->requests);
    mcp_result_clear(&t->result);
    *t = (struct mcp_task){.status = MCP_TASK_WORKING};
}

void mcp_task_free(struct mcp_task *t)
{
    if (t)
        mcp_task_clear(t);
    free(t);
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

/* What was answered to the call had it not become a task. */
static json_t *result_new(const struct mcp_task *t)
{
    json_t *result = mcp_result_to_json(&t->result, mcp_revision_features(MCP_2026_07_28));

    json_object_set_new(result, "resultType", json_string("complete"));
    return result;
}

static void add_outcome(const struct mcp_task *t, json_t *object)
{
    switch (t->status) {
    case MCP_TASK_INPUT:
        json_object_set(object, "inputRequests", t->requests);
        break;
    case MCP_TASK_COMPLETED:
        json_object_set_new(object, "result", result_new(t));
        break;
    case MCP_TASK_FAILED:
        json_object_set_new(object, "error",
                            json_pack("{s:i, s:s}", "code", t->code, "message",
                                      t->message ? t->message : "the task failed"));
        break;
    case MCP_TASK_WORKING:
    case MCP_TASK_CANCELLED:
        break;
    }
}

json_t *mcp_task_to_json(const struct mcp_task *t, bool short_form)
{
    json_t *object = json_object();

    json_object_set_new(object, "taskId", json_string(t->id));
    json_object_set_new(object, "status", json_string(statuses[t->status]));
    if (t->message)
        json_object_set_new(object, "statusMessage", json_string(t->message));
    json_object_set_new(object, "createdAt", time_new(t->created_ms));
    json_object_set_new(object, "lastUpdatedAt", time_new(t->updated_ms));
    json_object_set_new(object, "ttlMs", t->ttl_ms > 0 ? json_integer(t->ttl_ms) : json_null());
    if (t->poll_ms > 0)
        json_object_set_new(object, "pollIntervalMs", json_integer(t->poll_ms));
    if (!short_form)
        add_outcome(t, object);
    return object;
}
