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

#define POLL_MS 1000 /* how often a client should look */
#define BRIEF_MS                                                                                   \
    1000 /* a look for a notification takes at most that long: others wait behind it               \
          */

static enum mcp_task_status status_of(const json_t *result)
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

static int64_t ms_of(const json_t *result, const char *name)
{
    return (int64_t)json_get_integer(result, name, 0) * 1000;
}

/* Everything but the outcome. */
static void fill(const json_t *result, struct mcp_task *t)
{
    const char *id = json_get_string(result, "runId");
    int64_t now = clock_unix_s() * 1000;
    int64_t created = ms_of(result, "createdAt");
    int64_t ended = ms_of(result, "endedAt");
    int64_t expires = ms_of(result, "expiresAt");

    snprintf(t->id, sizeof t->id, "%s", id ? id : "");
    t->status = status_of(result);
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
    fill(result, &task);
    return mcp_task_to_json(&task, true);
}

static int fail(struct err *e)
{
    report_soften(e);
    return -1;
}

static json_t *look_at(const struct mcp_tool_call *c, const char *id, bool brief, struct err *e)
{
    const struct broker_poll_options look = {.wait_ms = 0};
    struct broker_client client = tools_client(c->app, c->cancel_fd);

    client.limit_ms = brief ? BRIEF_MS : 0;
    return broker_get_run(&client, c->tenant, id, &look, e);
}

static int get(const struct mcp_tool_call *c, const char *id, bool brief, struct mcp_task *out,
               struct err *e)
{
    json_t *result = look_at(c, id, brief, e);
    const char *reason = json_get_string(result, "reason");

    if (!result)
        return fail(e);
    fill(result, out);
    if (out->status == MCP_TASK_COMPLETED) {
        run_report_tell(c, &(struct run_telling){.brief = brief}, result, &out->result);
        return 0;
    }
    if (out->status == MCP_TASK_FAILED) {
        out->code = RPC_INTERNAL_ERROR;
        out->message = mem_printf("the run was lost: %s",
                                  reason ? reason : "nobody knows its outcome");
    }
    json_decref(result);
    return 0;
}

/* A run asks nothing, so whatever is answered was not asked. */
static int update(const struct mcp_tool_call *c, const char *id, const json_t *responses,
                  struct err *e)
{
    json_auto_t *result = look_at(c, id, false, e);

    (void)responses;
    return result ? 0 : fail(e);
}

static int cancel(const struct mcp_tool_call *c, const char *id, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *result = broker_cancel_run(&client, c->tenant, id, e);

    return result ? 0 : fail(e);
}

const struct mcp_tasks tools_tasks = {.get = get, .update = update, .cancel = cancel};
