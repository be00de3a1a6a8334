/* run_code: runs a program in a fresh container and tells what came of it. */
#include "config.h"

#include "common/tools/run_code.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/mcp/content.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/changes.h"
#include "common/tools/consent.h"
#include "common/tools/env.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/run_files.h"
#include "common/tools/runners.h"

#include <string.h>

#define ARGS_MAX_BYTES (64 * 1024)
#define ARGS_MAX       64
#define ENV_MAX        64
#define LANGUAGE_MAX   64
#define PROGRESS_MS    3000 /* between two signs of life */

struct run_code {
    const char *conversation;
    const char *language;
    struct run_text code;
    bool network;
    struct arg_map environment;
    uint64_t timeout_ms;
    struct run_text input;
    struct arg_list args;
};

static const struct arg_row arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct run_code, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "language",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct run_code, language),
     .required = true,
     .max = LANGUAGE_MAX,
     .help = "The language that the code is written in.",
     .choices = runners_languages},
    {.name = "code",
     .type = ARG_TEXT,
     .offset = offsetof(struct run_code, code),
     .required = true,
     .max_setting = ARG_SETTING(code_max),
     .help = "The whole program."},
    {.name = "network",
     .type = ARG_BOOL,
     .offset = offsetof(struct run_code, network),
     .help = "Give the program access to the network."},
    {.name = "environment",
     .type = ARG_MAP,
     .offset = offsetof(struct run_code, environment),
     .max_setting = ARG_SETTING(env_max),
     .max_items = ENV_MAX,
     .help = "Environment variables for the program. Those that change how the interpreter starts "
             "(PATH, LD_*, PYTHON*, …) are refused."},
    {.name = "timeout",
     .type = ARG_SECONDS,
     .offset = offsetof(struct run_code, timeout_ms),
     .max_setting = ARG_SETTING(timeout_max_ms),
     .initial_setting = ARG_SETTING(timeout_ms),
     .help = "Seconds after which the program is stopped."},
    {.name = "stdin",
     .type = ARG_TEXT,
     .offset = offsetof(struct run_code, input),
     .max_setting = ARG_SETTING(stdin_max),
     .help = "What the program reads from its standard input."},
    {.name = "args",
     .type = ARG_LIST,
     .offset = offsetof(struct run_code, args),
     .max = ARGS_MAX_BYTES,
     .max_items = ARGS_MAX,
     .help = "Command line arguments of the program."},
    {0},
};

#define STREAM_SCHEMA                                                                              \
    "{\"type\":\"object\",\"required\":[\"kept\",\"total\",\"truncated\"],\"properties\":{"        \
    "\"kept\":{\"type\":\"integer\"},\"total\":{\"type\":\"integer\"},"                            \
    "\"truncated\":{\"type\":\"boolean\"}}}"

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"success\",\"status\",\"exitCode\",\"signal\",\"stdout\","
    "\"stderr\",\"output\",\"truncation\",\"durationMs\",\"files\"],\"properties\":{"
    "\"success\":{\"type\":\"boolean\",\"description\":\"the program ended with exit code 0\"},"
    "\"status\":{\"type\":\"string\",\"enum\":[\"ok\",\"error\",\"timeout\",\"out_of_memory\","
    "\"output_limit\",\"killed\",\"busy\"]},"
    "\"exitCode\":{\"type\":[\"integer\",\"null\"]},"
    "\"signal\":{\"type\":[\"integer\",\"null\"],\"description\":\"that ended the program\"},"
    "\"stdout\":{\"type\":\"string\"},"
    "\"stderr\":{\"type\":\"string\"},"
    "\"output\":{\"type\":\"string\",\"description\":\"stdout and stderr in order of arrival\"},"
    "\"truncation\":{\"type\":\"object\",\"description\":\"bytes kept and bytes printed; the "
    "middle "
    "of a long output is left "
    "out\",\"required\":[\"stdout\",\"stderr\",\"output\"],\"properties\":{"
    "\"stdout\":" STREAM_SCHEMA ",\"stderr\":" STREAM_SCHEMA ",\"output\":" STREAM_SCHEMA "}},"
    "\"durationMs\":{\"type\":\"integer\"},"
    "\"cpuMs\":{\"type\":[\"integer\",\"null\"]},"
    "\"peakMemoryBytes\":{\"type\":[\"integer\",\"null\"]},"
    "\"runId\":{\"type\":\"string\"},"
    "\"files\":{\"type\":\"array\",\"description\":\"created, changed or deleted by this run\","
    "\"items\":{\"type\":\"object\",\"required\":[\"name\",\"size\",\"change\",\"mimeType\"],"
    "\"properties\":{"
    "\"name\":{\"type\":\"string\",\"description\":\"below /data\"},"
    "\"size\":{\"type\":\"integer\"},"
    "\"mimeType\":{\"type\":\"string\"},"
    "\"url\":{\"type\":\"string\",\"description\":\"download link; none for deleted files\"},"
    "\"change\":{\"type\":\"string\",\"enum\":[\"created\",\"modified\",\"deleted\"]}}}},"
    "\"filesOmitted\":{\"type\":\"integer\",\"description\":\"further files that are not listed\"},"
    "\"fileBaseUrl\":{\"type\":\"string\"}}}";

/* ---- the description ---- */

static void describe_language(const json_t *runner, struct buf *out)
{
    const json_t *libraries = json_object_get(runner, "libraries");
    const char *language = json_get_string(runner, "language");
    const char *version = json_get_string(runner, "version");
    size_t i;
    json_t *library;

    buf_addf(out, "\n- %s", language ? language : "?");
    if (version && *version)
        buf_addf(out, " (%s)", version);
    json_array_foreach(libraries, i, library)
    {
        const char *name = json_get_string(library, "name");
        const char *at = json_get_string(library, "version");
        buf_addf(out, "%s%s%s%s", i ? ", " : ": ", name ? name : "?", at && *at ? " " : "",
                 at ? at : "");
    }
}

/* In the broker's order, which is sorted: the same images make the same text. */
static void describe_languages(const struct tools_app *app, struct buf *out)
{
    struct err e = ERR_INIT;
    const json_t *runners = runners_get(app, RUNNERS_FRESH_MS, &e);
    size_t i;
    json_t *runner;

    if (json_array_size(runners) == 0)
        return;
    buf_add_str(out, "\n\nLanguages and the libraries that can be imported:");
    json_array_foreach(runners, i, runner) describe_language(runner, out);
}

static const char *network_text(const struct tools_limits *limits)
{
    if (!limits->network)
        return "no network (this server does not allow it).";
    return limits->network_ask ? "no network unless network is true and the user agrees when asked."
                               : "no network unless network is true.";
}

static char *describe(void *app)
{
    const struct tools_app *a = app;
    AUTO_BUF struct buf out = BUF_INIT(256 * 1024);

    buf_add_str(
        &out,
        "Runs a program in a fresh, isolated Linux container and returns its output, its exit "
        "code and the files it made. Print what you want to see: the value of the last "
        "expression is not shown.\n\n"
        "Files: the working directory /data is kept between calls with the same "
        "conversationId and holds what upload_file put there; everything else, variables and "
        "processes too, is gone after each call. Every file that the program creates or "
        "changes in /data is returned with a download link, pictures also as images. The "
        "environment variable FILE_BASE_URL holds the link to /data: a program may print "
        "markdown such as ![chart](<FILE_BASE_URL>/chart.png).\n\n");
    buf_addf(
        &out,
        "Limits: the program is stopped after %g seconds unless timeout says otherwise (at most "
        "%g); very long output loses its middle; ",
        (double)a->limits.timeout_ms / 1000.0, (double)a->limits.timeout_max_ms / 1000.0);
    buf_add_str(&out, network_text(&a->limits));
    describe_languages(a, &out);
    return buf_take(&out);
}

static json_t *input_schema(void *app)
{
    return args_schema(arguments, app);
}

static uint64_t version(void *app)
{
    return runners_version(app);
}

/* ---- a call ---- */

static int check(struct run_code *r, const struct tools_app *app, struct err *e)
{
    if (env_filter(&r->environment, e) < 0)
        return -1;
    if (r->network && !app->limits.network)
        return err_set(e, ERR_DENIED, "argument 'network': this server allows no network");
    return 0;
}

/* What the signs of life while a program runs are made of. */
struct life {
    const struct mcp_tool_call *call;
    const struct run_code *args;
    uint64_t limit_ms;
    int64_t began_ms;
};

static void tell_progress(void *ctx)
{
    const struct life *l = ctx;
    double seconds = (double)(clock_mono_ms() - l->began_ms) / 1000.0;
    double limit = (double)l->limit_ms / 1000.0;
    AUTO_FREE char *text = mem_printf("The %s program has been running for %.0f of at most %g s",
                                      l->args->language, seconds, limit);

    /* The container's own start does not count against the limit. */
    mcp_progress(l->call, seconds, seconds <= limit ? limit : 0, text);
}

static json_t *run(const struct mcp_tool_call *c, const struct run_code *r, struct err *e)
{
    const struct tools_app *app = c->app;
    struct broker_client client = tools_client(app, c->cancel_fd);
    struct life life = {.call = c,
                        .args = r,
                        .limit_ms = r->timeout_ms ? r->timeout_ms : app->limits.timeout_ms,
                        .began_ms = clock_mono_ms()};
    struct run_request request = {
        .tenant = c->tenant,
        .conversation = r->conversation,
        .language = r->language,
        .code = r->code,
        /* Nothing to read is the same as an empty input, and needs no support by the image. */
        .input = r->input.len > 0 ? r->input : (struct run_text){0},
        .network = r->network,
        .timeout_ms = r->timeout_ms,
        .args = r->args.items,
        .n_args = r->args.n,
        .env = r->environment.items,
        .n_env = r->environment.n,
    };

    if (mcp_progress_wanted(c)) {
        client.tick = tell_progress;
        client.tick_ctx = &life;
        client.tick_ms = PROGRESS_MS;
    }
    return broker_run(&client, &request, NULL, e);
}

static json_t *nothing_printed(void)
{
    json_t *truncation = json_object();
    static const char *const streams[] = {"stdout", "stderr", "output"};

    for (size_t i = 0; i < ARRAY_LEN(streams); i++)
        json_object_set_new(truncation, streams[i],
                            json_pack("{s:b, s:i, s:i}", "truncated", 0, "kept", 0, "total", 0));
    return truncation;
}

/* Not started: the result has the same shape as any other, so that a client can look at its status.
 */
static void answer_busy(const struct err *e, struct mcp_result *out)
{
    out->structured = json_pack("{s:b, s:s, s:n, s:n, s:s, s:s, s:s, s:o, s:i, s:[]}", "success", 0,
                                "status", "busy", "exitCode", "signal", "stdout", "", "stderr", "",
                                "output", "", "truncation", nothing_printed(), "durationMs", 0,
                                "files");
    out->is_error = true;
    mcp_result_add(out, content_text_new(e->text, strlen(e->text)));
}

static bool is_busy(const json_t *result)
{
    const char *status = json_get_string(result, "status");

    return status && strcmp(status, "busy") == 0;
}

static void answer(const struct mcp_tool_call *c, const struct run_code *r, json_t *take_result,
                   struct mcp_result *out)
{
    out->structured = take_result;
    out->is_error = is_busy(take_result);
    changes_tell(c, r->conversation, json_object_get(take_result, "files"));
    run_files_show(c, r->conversation, json_object_get(take_result, "files"), out);
}

static int run_code(const struct mcp_tool_call *c, const struct run_code *r, struct mcp_result *out,
                    struct err *e)
{
    json_t *result = run(c, r, e);

    if (result)
        answer(c, r, result, out);
    else if (e->kind == ERR_BUSY)
        answer_busy(e, out);
    else
        return -1;
    return 0;
}

/* 1: go on, 0: the user is being asked, -1. */
static int permit(const struct mcp_tool_call *c, const struct run_code *r, struct mcp_result *out,
                  struct err *e)
{
    const struct tools_app *app = c->app;

    return r->network && app->limits.network_ask
               ? consent_network(c, r->language, r->code, &out->need, e)
               : 1;
}

static int check_and_run(const struct mcp_tool_call *c, struct run_code *r, struct mcp_result *out,
                         struct err *e)
{
    int permitted;

    if (args_fill(arguments, c->app, c->arguments, r, e) < 0 || check(r, c->app, e) < 0)
        return -1;
    permitted = permit(c, r, out, e);
    return permitted > 0 ? run_code(c, r, out, e) : permitted;
}

static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    struct run_code r = {0};
    struct err e = ERR_INIT;

    if (check_and_run(c, &r, out, &e) < 0)
        report_failure(out, &e);
    args_clear(arguments, &r);
}

static const char *const aliases[] = {"sandbox.run_code", NULL};

const struct mcp_tool tool_run_code = {
    .name = "run_code",
    .aliases = aliases,
    .title = "Run code",
    /* A program may delete files of its conversation, and reach out when it gets network. */
    .hints = {.destructive = true, .open_world = true},
    .output_schema = output_schema,
    .describe = describe,
    .input_schema = input_schema,
    .version = version,
    .call = call,
};
