#include "config.h"

#include "common/tools/runs/run_tasks.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"

#include <stdio.h>
#include <string.h>

#define POLL_MS  1000 /* how often a client should call tasks/get */
#define BRIEF_MS 1000 /* limit of a request for a notification: others wait behind it */

static enum mcp_task_status task_status(const json_t *result)
{
    static const struct {
        const char *name;
        enum mcp_task_status status;
    } special[] = {{"running", MCP_TASK_WORKING},
                   {"cancelled", MCP_TASK_CANCELLED},
                   {"lost", MCP_TASK_FAILED}};
    const char *name = run_report_status(result);

    for (size_t i = 0; i < ARRAY_LEN(special); i++)
        if (strcmp(name, special[i].name) == 0)
            return special[i].status;
    return MCP_TASK_COMPLETED;
}

static int64_t unix_ms(const json_t *result, const char *name)
{
    return (int64_t)json_get_integer(result, name, 0) * 1000;
}

/* Sets all members but the outcome. */
static void task_fill(const json_t *result, struct mcp_task *t)
{
    const char *id = json_get_string(result, "runId");
    int64_t now = clock_unix_s() * 1000;
    int64_t created = unix_ms(result, "createdAt");
    int64_t ended = unix_ms(result, "endedAt");
    int64_t expires = unix_ms(result, "expiresAt");

    snprintf(t->id, sizeof t->id, "%s", id ? id : "");
    t->status = task_status(result);
    t->created_ms = created > 0 ? created : now;
    t->updated_ms = ended > 0 ? ended : now;
    t->ttl_ms = expires > t->created_ms ? expires - t->created_ms : 0;
    t->poll_ms = POLL_MS;
}

json_t *run_tasks_new(const json_t *result)
{
    struct mcp_task task;

    if (!json_get_string(result, "runId"))
        return NULL;
    task = (struct mcp_task){.status = MCP_TASK_WORKING};
    task_fill(result, &task);
    return mcp_task_to_json(&task, true);
}

static int task_fail(struct err *e)
{
    report_soften(e);
    return -1;
}

static json_t *task_poll(const struct mcp_tool_call *c, const char *id, bool brief, struct err *e)
{
    const struct broker_poll_options options = {.wait_ms = 0};
    struct broker_client client = tools_client(c->app, c->cancel_fd);

    client.limit_ms = brief ? BRIEF_MS : 0;
    return broker_get_run(&client, c->tenant, id, &options, e);
}

static int task_get(const struct mcp_tool_call *c, const char *id, bool brief, struct mcp_task *out,
                    struct err *e)
{
    json_t *result = task_poll(c, id, brief, e);
    const char *reason = json_get_string(result, "reason");

    if (!result)
        return task_fail(e);
    task_fill(result, out);
    if (out->status == MCP_TASK_COMPLETED) {
        run_report_tell(c, &(struct run_telling){.brief = brief}, result, &out->result);
        return 0;
    }
    if (out->status == MCP_TASK_FAILED) {
        out->code = RPC_INTERNAL_ERROR;
        out->message = mem_printf("the run was lost: %s",
                                  reason ? reason : "its outcome is unknown");
    }
    json_decref(result);
    return 0;
}

/* A run asks nothing, so there are no responses to take. */
static int task_update(const struct mcp_tool_call *c, const char *id, const json_t *responses,
                       struct err *e)
{
    json_auto_t *result = task_poll(c, id, false, e);

    (void)responses;
    return result ? 0 : task_fail(e);
}

static int task_cancel(const struct mcp_tool_call *c, const char *id, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *result = broker_cancel_run(&client, c->tenant, id, e);

    return result ? 0 : task_fail(e);
}

const struct mcp_tasks tools_tasks = {
    .get = task_get, .update = task_update, .cancel = task_cancel};
