/* list_runs: the runs that get_run still knows. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"

struct list_runs {
    const char *conversation;
};

static const struct arg_row arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct list_runs, conversation),
     .max = CONVERSATION_MAX,
     .help = "Only the runs of this conversation."},
    {0},
};

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"runs\"],\"properties\":{\"runs\":{\"type\":\"array\","
    "\"items\":{\"type\":\"object\",\"required\":[\"runId\",\"conversationId\",\"language\","
    "\"status\",\"createdAt\"],\"properties\":{"
    "\"runId\":{\"type\":\"string\"},"
    "\"conversationId\":{\"type\":\"string\"},"
    "\"language\":{\"type\":\"string\"},"
    "\"status\":{\"type\":\"string\",\"description\":\"as in get_run's result\"},"
    "\"createdAt\":{\"type\":\"integer\",\"description\":\"Unix time\"},"
    "\"endedAt\":{\"type\":\"integer\"},"
    "\"expiresAt\":{\"type\":\"integer\",\"description\":\"when get_run forgets it\"}}}}}}";

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Lists the runs that are still going on and those whose results are kept, "
                      "the newest first. Use it to find a run whose answer never arrived.");
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static const char *text_or_empty(const json_t *object, const char *name)
{
    const char *s = json_get_string(object, name);

    return s ? s : "";
}

static json_t *row_new(const json_t *run)
{
    static const struct {
        const char *name, *from;
    } times[] = {{"createdAt", "created"}, {"endedAt", "ended"}, {"expiresAt", "expiresAt"}};
    json_t *row = json_pack("{s:s, s:s, s:s, s:s}", "runId", text_or_empty(run, "runId"),
                            "conversationId", text_or_empty(run, "conversation"), "language",
                            text_or_empty(run, "language"), "status", text_or_empty(run, "status"));

    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (json_is_integer(json_object_get(run, times[i].from)))
            json_object_set(row, times[i].name, json_object_get(run, times[i].from));
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

static int list_runs(const struct mcp_tool_call *c, const struct list_runs *l,
                     struct mcp_result *out, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    json_auto_t *answer = broker_list_runs(&client, c->tenant, l->conversation, e);

    if (!answer)
        return -1;
    out->structured = json_pack("{s:o}", "runs", rows_new(json_object_get(answer, "runs")));
    return 0;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct list_runs l = {0};
    struct err e = ERR_INIT;

    if (args_fill(arguments, c->app, c->arguments, &l, &e) < 0 || list_runs(c, &l, out, &e) < 0)
        report_failure(out, &e);
}

const struct mcp_tool tool_list_runs = {
    .name = "list_runs",
    .title = "List runs",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = output_schema,
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
