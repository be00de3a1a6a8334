/* cancel_run: ends a run that is under way. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/schemas.h"

struct cancel_run {
    const char *run_id;
};

static const struct arg_row cancel_run_arguments[] = {
    {.name = "runId",
     .type = ARG_STRING,
     .offset = offsetof(struct cancel_run, run_id),
     .required = true,
     .max = RUN_ID_MAX,
     .help = RUN_ID_HELP},
    {0},
};

static int cancel_run(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct cancel_run *x = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_t *result = broker_cancel_run(&client, c->tenant, x->run_id, e);

    if (!result)
        return -1;
    run_report_tell(c, &(struct run_telling){0}, result, out);
    return 0;
}

const struct mcp_tool tool_cancel_run = {
    .name = "cancel_run",
    .title = "Cancel a run",
    .description = "Ends a run that is still going on; what it has printed and written so far "
                   "stays. A run that has ended already is not changed: the answer is its "
                   "result.",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_run,
    .arguments = cancel_run_arguments,
    .arguments_size = sizeof(struct cancel_run),
    .run = cancel_run,
};
