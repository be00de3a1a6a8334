/* cancel_run: ends a run that is under way. */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/run_report.h"

struct cancel_run {
    const char *run_id;
};

static const struct arg_row arguments[] = {
    {.name = "runId",
     .type = ARG_STRING,
     .offset = offsetof(struct cancel_run, run_id),
     .required = true,
     .max = RUN_ID_MAX,
     .help = RUN_ID_HELP},
    {0},
};

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Ends a run that is still going on; what it has printed and written so far "
                      "stays. A run that has ended already is not changed: the answer is its "
                      "result.");
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static int cancel_run(const struct mcp_tool_call *c, const struct cancel_run *x,
                      struct mcp_result *out, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_t *result = broker_cancel_run(&client, c->tenant, x->run_id, e);

    if (!result)
        return -1;
    run_report_tell(c, &(struct run_telling){0}, result, out);
    return 0;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct cancel_run x = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &x, &e) < 0 || cancel_run(c, &x, out, &e) < 0)
        report_failure(out, &e);
}

const struct mcp_tool tool_cancel_run = {
    .name = "cancel_run",
    .title = "Cancel a run",
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = run_report_schema,
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
