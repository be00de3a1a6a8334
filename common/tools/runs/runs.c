/* get_run, cancel_run, list_runs and list_runners. */
#include "config.h"

#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/list.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <string.h>

/* Longer ids are unknown ones. */
#define RUN_ID_MAX 1024

/* The arguments of all of them; each has some. */
struct run_arguments {
    const char *run_id, *conversation, *language;
    struct arg_integer since_byte, wait_ms;
    const char *detail;
};

#define RUN_ID_ROW                                                                                 \
    ARG_ROW(struct run_arguments, run_id, "runId", ARG_STRING, .required = true,                   \
            .max = RUN_ID_MAX, .help = "Of the answer that said it still runs.")

/* ---- get_run ---- */

static const struct arg_row get_run_arguments[] = {
    RUN_ID_ROW,
    ARG_ROW(struct run_arguments, since_byte, "sinceByte", ARG_INTEGER, .max = (uint64_t)1 << 53,
            .help = "Only what was printed from this byte on: nextByte of the answer before."),
    ARG_ROW(struct run_arguments, wait_ms, "waitMs", ARG_INTEGER,
            .max_setting = ARG_SETTING(wait_max_ms), .at_most = true,
            .help = "How long to wait for it. 0: answer at once."),
    DETAIL_ROW(struct run_arguments),
    {0},
};

static int get_run(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                   struct err *e)
{
    const struct run_arguments *g = arguments;
    const struct tools_app *app = c->app;
    /* A cancelled get_run does not cancel the run. */
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    struct run_life life;
    struct broker_poll_options poll = {.since_given = g->since_byte.given,
                                       .since_byte = g->since_byte.value,
                                       .to_end = c->in_text, /* a model pays for each answer */
                                       .new_max = c->in_text ? detail_room(c, g->detail) : 0,
                                       .wait_ms = g->wait_ms.given ? g->wait_ms.value
                                                                   : app->limits.wait_ms};
    json_t *result;

    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, "The program", 0, &client, &poll.callbacks);
    result = broker_get_run(&client, g->run_id, &poll, e);
    if (!result)
        return -1;
    run_report_tell(c, &(struct run_telling){.words = {.detail = g->detail}}, result, out);
    return 0;
}

const struct mcp_tool tool_get_run = {
    .name = "get_run",
    .title = "Get a run",
    .description = "Continues a run_code, exec or install_package that still ran when it was "
                   "answered: waits for its end and returns its answer, or the output so far.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_run,
    ARGS_TABLE(get_run_arguments, struct run_arguments),
    .run = get_run,
};

/* ---- cancel_run ---- */

static const struct arg_row cancel_run_arguments[] = {RUN_ID_ROW, {0}};

static int cancel_run(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                      struct err *e)
{
    const struct run_arguments *x = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    json_t *result = broker_cancel_run(&client, x->run_id, e);

    if (!result)
        return -1;
    run_report_tell(c, &(struct run_telling){0}, result, out);
    return 0;
}

const struct mcp_tool tool_cancel_run = {
    .name = "cancel_run",
    .title = "Cancel a run",
    .description = "Ends a run that still goes on. Returns what it printed so far; files that it "
                   "wrote stay.",
    .hints = {.destructive = true, .idempotent = true},
    .frees = true,
    .output_schema = schema_run,
    ARGS_TABLE(cancel_run_arguments, struct run_arguments),
    .run = cancel_run,
};

/* The broker's rows with these members only; members ends with NULL. New reference. */
static json_t *rows_with(const json_t *rows, const char *const *members)
{
    json_t *picked = json_array();
    const json_t *row;

    for (size_t i = 0; (row = json_array_get(rows, i)); i++) {
        json_t *copy = json_object();
        for (const char *const *name = members; *name; name++)
            if (json_object_get(row, *name))
                json_object_set(copy, *name, json_object_get(row, *name));
        json_array_append_new(picked, copy);
    }
    return picked;
}

/* ---- list_runs ---- */

static const struct arg_row list_runs_arguments[] = {
    ARG_ROW(struct run_arguments, conversation, "conversationId", ARG_IDENTIFIER,
            .max = CONVERSATION_MAX, .help = "Only the runs of this conversation."),
    {0},
};

static int list_runs(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                     struct err *e)
{
    static const char *const members[] = {"runId",     "conversationId", "language",  "status",
                                          "createdAt", "endedAt",        "expiresAt", NULL};
    const struct run_arguments *l = arguments;
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    json_auto_t *answer = broker_list_runs(&client, l->conversation, e);

    if (answer)
        out->structured = json_pack("{s:o}", "runs",
                                    rows_with(json_object_get(answer, "runs"), members));
    report_node(out);
    return answer ? 0 : -1;
}

const struct mcp_tool tool_list_runs = {
    .name = "list_runs",
    .title = "List runs",
    .description = "Lists the runs that are still going on and those whose results are kept, "
                   "the newest first. Use it to find a run whose answer never arrived.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_runs,
    ARGS_TABLE(list_runs_arguments, struct run_arguments),
    .run = list_runs,
};

/* ---- list_runners ---- */

static const struct arg_row list_runners_arguments[] = {
    ARG_ROW(struct run_arguments, language, "language", ARG_IDENTIFIER, .max = LANGUAGE_MAX,
            .also = "lang", .choices = runners_languages, .help = "Only this one."),
    {0},
};

static json_t *only_language(const json_t *rows, const char *language)
{
    json_t *some = json_array();
    json_t *row;

    for (size_t i = 0; (row = json_array_get(rows, i)); i++) {
        const char *its = json_get_string(row, "language");
        if (!language || (its && strcmp(its, language) == 0))
            json_array_append(some, row);
    }
    return some;
}

/* Always asks the broker: callers want the current list. */
static int list_runners(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                        struct err *e)
{
    static const char *const members[] = {"language", "image", "version", "libraries", NULL};
    const struct run_arguments *l = arguments;
    const json_t *runners = runners_get(c->app, 0, e);
    AUTO_BUF struct buf text = BUF_INIT(256 * 1024);

    if (!runners)
        return -1;
    json_auto_t *shown = only_language(runners, l->language);
    out->structured = json_pack("{s:o}", "languages", rows_with(shown, members));
    runners_describe_list(shown, "Languages and the libraries that can be imported:", false, &text);
    mcp_result_say(out, "%s", buf_str(&text));
    return 0;
}

const struct mcp_tool tool_list_runners = {
    .name = "list_runners",
    .aliases = (const char *const[]){"sandbox.list_runners", NULL},
    .title = "List languages",
    .description = "Lists all languages and libraries of run_code with versions.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_runners,
    ARGS_TABLE(list_runners_arguments, struct run_arguments),
    .run = list_runners,
};
