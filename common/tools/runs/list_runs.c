/* list_runs: the runs that get_run still knows. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

struct list_runs {
    const char *conversation;
};

static const struct arg_row list_runs_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct list_runs, conversation),
     .max = CONVERSATION_MAX,
     .help = "Only the runs of this conversation."},
    {0},
};

static const char *text_or_empty(const json_t *object, const char *name)
{
    const char *s = json_get_string(object, name);

    return s ? s : "";
}

static json_t *row_new(const json_t *run)
{
    static const char *const times[] = {"createdAt", "endedAt", "expiresAt"};
    json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "runId", text_or_empty(run, "runId"),
                            "conversationId", text_or_empty(run, "conversationId"), "language",
                            text_or_empty(run, "language"), "status", text_or_empty(run, "status"));

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (json_is_integer(json_object_get(run, times[i])))
            json_object_set(row, times[i], json_object_get(run, times[i]));
    return row;
}

static json_t *rows_new(const json_t *runs)
{
    json_t *rows = json_array();
    size_t i;
    json_t *run;

    json_array_foreach(runs, i, run) json_array_append_new(rows, row_new(run));
    return rows;
}

static int list_runs(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                     struct err *e)
{
    const struct list_runs *l = arguments;
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *answer = broker_list_runs(&client, c->tenant, l->conversation, e);

    if (!answer)
        return -1;
    out->structured = json_pack("{s:o}", "runs", rows_new(json_object_get(answer, "runs")));
    return 0;
}

const struct mcp_tool tool_list_runs = {
    .name = "list_runs",
    .title = "List runs",
    .description = "Lists the runs that are still going on and those whose results are kept, "
                   "the newest first. Use it to find a run whose answer never arrived.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_runs,
    .arguments = list_runs_arguments,
    .arguments_size = sizeof(struct list_runs),
    .run = list_runs,
};
