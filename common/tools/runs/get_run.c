/* get_run: what a run that was begun before has printed, and what came of it. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/run_life.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/schemas.h"

struct get_run {
    const char *run_id;
    struct arg_integer since_byte;
    struct arg_integer wait_ms;
};

static const struct arg_row get_run_arguments[] = {
    {.name = "runId",
     .type = ARG_STRING,
     .offset = offsetof(struct get_run, run_id),
     .required = true,
     .max = RUN_ID_MAX,
     .help = RUN_ID_HELP},
    {.name = "sinceByte",
     .type = ARG_INTEGER,
     .offset = offsetof(struct get_run, since_byte),
     .max = (uint64_t)1 << 53,
     .help =
         "Show in newOutput what was printed from this byte on: nextByte of the answer before."},
    {.name = "waitMs",
     .type = ARG_INTEGER,
     .offset = offsetof(struct get_run, wait_ms),
     .max_setting = ARG_SETTING(wait_max_ms),
     .help = "Milliseconds to wait for the program's end, with sinceByte for new output. 0: answer "
             "at once."},
    {0},
};

/* Where runs are waited for to the end by default, looking at one is not. */
static uint64_t usual_wait(const struct tools_limits *limits)
{
    return limits->wait_ms > 0 ? limits->wait_ms : limits->wait_max_ms;
}

static int get_run(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                   struct err *e)
{
    const struct get_run *g = arguments;
    const struct tools_app *app = c->app;
    /* Looking is not doing: whoever stops waiting here leaves the run alone. */
    struct broker_client client = tools_client(app, c->cancel_fd);
    struct run_life life;
    struct broker_poll_options look = {.since_given = g->since_byte.given,
                                       .since_byte = g->since_byte.value,
                                       .wait_ms = g->wait_ms.given ? g->wait_ms.value
                                                                   : usual_wait(&app->limits)};
    json_t *result;

    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, "The program", 0, &client, &look.callbacks);
    result = broker_get_run(&client, c->tenant, g->run_id, &look, e);
    if (!result)
        return -1;
    run_report_tell(c, &(struct run_telling){0}, result, out);
    return 0;
}

const struct mcp_tool tool_get_run = {
    .name = "get_run",
    .title = "Get a run",
    .description = "Gets a run that run_code answered with status running, or that was left "
                   "alone: its output so far, or its result when it has ended, in the shape of "
                   "run_code's. Waits a while unless waitMs says otherwise. Results are kept for "
                   "a limited time (expiresAt).",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_run,
    .arguments = get_run_arguments,
    .arguments_size = sizeof(struct get_run),
    .run = get_run,
};
