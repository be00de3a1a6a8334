/*
 * The set "runner": upload_file, run_code and list_runners with the arguments, payloads and error
 * codes of a runner that speaks 2024-11-05. The payload is the union of what its generations
 * answered, as the only text block.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/list.h"
#include "common/tools/profiles/adapt.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"

#include <inttypes.h>
#include <string.h>

#define STDERR_MAX (32u * 1024 * 1024)
#define TIMEOUT_MS 30000

struct arguments {
    const char *conversation, *filename, *language;
    struct run_text content, code;
    bool network;
    struct arg_map environment;
};

#define NAMED_CONVERSATION_ROW                                                                     \
    ARG_ROW(                                                                                       \
        struct arguments, conversation, "conversationId", ARG_IDENTIFIER, .required = true,        \
        .max = CONVERSATION_MAX,                                                                   \
        .help = "Names the sandbox: calls with the same value share the files in /data, other "    \
                "values have their own. Choose one unguessable value per conversation.")

static const struct arg_row upload_arguments[] = {
    NAMED_CONVERSATION_ROW,
    FILENAME_ROW(struct arguments, "Name of the file below /data."),
    ARG_ROW(struct arguments, content, "content", ARG_BASE64, .required = true,
            .max_setting = ARG_SETTING(file_max), .help = "The file's content in base64."),
    {0},
};

static const struct arg_row list_arguments[] = {
    {.name = "language", .type = ARG_IDENTIFIER, .max = LANGUAGE_MAX, .help = "Only this one."},
    {0},
};

static const struct arg_row run_arguments[] = {
    NAMED_CONVERSATION_ROW,
    ARG_ROW(struct arguments, language, "language", ARG_IDENTIFIER, .required = true,
            .max = LANGUAGE_MAX, .help = "The language that the code is written in.",
            .choices = runners_languages),
    ARG_ROW(struct arguments, code, "code", ARG_TEXT, .required = true,
            .max_setting = ARG_SETTING(code_max), .help = "The whole program."),
    ARG_ROW(struct arguments, network, "network", ARG_BOOL,
            .help = "Give the program access to the network."),
    ARG_ROW(struct arguments, environment, "environment", ARG_MAP,
            .max_setting = ARG_SETTING(env_max), .max_items = ENV_MAX,
            .help = "Environment variables for the program."),
    {0},
};

/* ---- errors ---- */

/* Wrong arguments are protocol errors: the first missing one by its name, */
static bool has_required(const struct mcp_tool_call *c, const struct arg_row *table,
                         struct mcp_result *out)
{
    for (const struct arg_row *row = table; row->name; row++) {
        const json_t *value = json_object_get(c->arguments, row->name);
        if (row->required && (!value || json_is_null(value) ||
                              (json_is_string(value) && !json_string_length(value)))) {
            AUTO_FREE char *text = mem_printf("%s is required", row->name);
            mcp_result_refuse(out, RPC_INVALID_PARAMS, text);
            return false;
        }
    }
    return true;
}

/* the others in one text. */
static bool accepts(const struct mcp_tool_call *c, const struct arg_row *table,
                    struct mcp_result *out)
{
    struct arguments filled = {0};
    json_auto_t *known = NULL;
    struct err e = ERR_INIT;
    int rc = adapt_fill(table, c, &filled, &known, &e);

    args_clear(table, &filled);
    if (rc < 0) {
        mcp_result_refuse(out, RPC_INVALID_PARAMS, "Invalid arguments");
        out->structured = json_string(e.text);
    }
    return rc == 0;
}

/* ---- upload_file ---- */

static void upload(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *object;

    if (!has_required(c, upload_arguments, out) || !accepts(c, upload_arguments, out))
        return;
    if (adapt_call(c, &tool_upload_file, adapt_known(upload_arguments, c->arguments), &inner, out,
                   &object, &e) == 0) {
        adapt_tell_text(out, json_incref(object), true);
    } else {
        bool decoding = strstr(e.text, "'content'") != NULL;
        AUTO_FREE char *text = mem_printf(
            "%s: %s", decoding ? "Failed to decode base64 content" : "Failed to write file",
            e.text);
        adapt_tell_text(out, json_pack("{s:b, s:s}", "success", 0, "message", text), true);
    }
}

/* ---- run_code ---- */

static void tell_failed_run(struct mcp_result *out, const char *why)
{
    adapt_tell_text(out,
                    json_pack("{s:b, s:s, s:s, s:s, s:i, s:[]}", "success", 0, "stdout", "",
                              "stderr", why, "output", "", "exitCode", -1, "files"),
                    true);
}

/* The limit that its clients expect, unless the operator has set one. */
static uint64_t timeout_of(const struct tools_app *app)
{
    const uint64_t limit = app->limits.timeout_ms;

    return app->limits.timeout_automatic && limit > TIMEOUT_MS ? TIMEOUT_MS : limit;
}

/* A timeout is reported in front of the program's own stderr. */
static void tell_timeout(const struct tools_app *app, json_t *result)
{
    const json_t *text = json_object_get(result, "stderr");
    AUTO_BUF struct buf all = BUF_INIT(STDERR_MAX);

    buf_addf(&all, "Execution timed out after %" PRIu64 "s\n", timeout_of(app) / 1000);
    buf_add(&all, json_string_value(text), json_string_length(text));
    json_object_set_new(result, "stderr", json_from_bytes(buf_str(&all), all.len));
    json_object_set_new(result, "exitCode", json_integer(-1));
}

static void tell_run(const struct mcp_tool_call *c, struct mcp_result *inner,
                     struct mcp_result *out)
{
    json_t *result = inner->structured;
    json_t *files = json_object_get(result, "files");

    json_object_del(result, "advice"); /* is ours */
    if (inner->is_error) {             /* busy or lost: no result */
        tell_failed_run(out, mcp_result_text(inner));
        return;
    }
    if (run_words_has_status(result, "timeout"))
        tell_timeout(c->app, result);
    for (size_t i = json_array_size(files); i-- > 0;) /* its clients open every file in the list */
        if (!json_get_string(json_array_get(files, i), "url"))
            json_array_remove(files, i);
    adapt_tell_text(out, json_incref(result), true);
}

static void run(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    const char *language = json_get_string(c->arguments, "language");
    struct err e = ERR_INIT;
    json_t *arguments, *object;

    if (!has_required(c, run_arguments, out))
        return;
    if (language && runners_get(c->app, RUNNERS_FRESH_MS, &e) && !runners_have(c->app, language)) {
        AUTO_FREE char *text = mem_printf("Unsupported language: %s", language);
        tell_failed_run(out, text);
        return;
    }
    if (!accepts(c, run_arguments, out))
        return;
    /* Our run_code has all of these arguments, too. */
    arguments = adapt_known(run_arguments, c->arguments);
    json_object_set_new(arguments, "timeoutMs", json_integer((json_int_t)timeout_of(c->app)));
    if (adapt_call(c, &tool_run_code, arguments, &inner, out, &object, &e) == 0)
        tell_run(c, &inner, out);
    else if (e.kind != ERR_NONE)
        tell_failed_run(out, e.text);
}

/* ---- list_runners ---- */

static void list_runners(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    json_t *arguments = adapt_known(list_arguments, c->arguments), *object;
    const char *language = json_get_string(arguments, "language");
    struct err e = ERR_INIT;

    if (!language || !runners_have(c->app, language)) /* of another name: all of them */
        json_object_del(arguments, "language");
    if (adapt_call(c, &tool_list_runners, arguments, &inner, out, &object, &e) == 0)
        adapt_tell_text(out, json_incref(object), true);
    else
        adapt_tell_text(out, json_pack("{s:[], s:s}", "languages", "error", e.text), true);
}

/* ---- the tools ---- */

static char *describe_run(void *app)
{
    AUTO_BUF struct buf out = BUF_INIT(256 * 1024);

    buf_add_str(&out,
                "Runs a program in an isolated container and returns its output and the files it "
                "made. The working directory /data is kept between calls with the same "
                "conversationId. The environment variable FILE_BASE_URL holds the address of the "
                "files in /data: a program may print markdown such as "
                "![chart](<FILE_BASE_URL>/chart.png).");
    runners_describe(app, "\n\nLanguages and the libraries that can be imported:", false, &out);
    return buf_take(&out);
}

static const struct mcp_tool tools[] = {
    {.name = "upload_file",
     .aliases = (const char *const[]){"sandbox.upload_file", NULL},
     .hints = {.destructive = true, .idempotent = true},
     .description =
         "Puts a file into the conversation's sandbox, where run_code finds it in /data. "
         "The content is base64.",
     .arguments = upload_arguments,
     .call = upload},
    {.name = "run_code",
     .aliases = (const char *const[]){"sandbox.run_code", NULL},
     .hints = {.destructive = true, .open_world = true},
     .describe = describe_run,
     .arguments = run_arguments,
     .version = runners_version,
     .call = run},
    {.name = "list_runners",
     .aliases = (const char *const[]){"sandbox.list_runners", NULL},
     .hints = {.read_only = true, .idempotent = true},
     .description = "Lists the languages that run_code can run.",
     .arguments = list_arguments,
     .call = list_runners},
};

static const struct mcp_tool *const list[] = {&tools[0], &tools[1], &tools[2]};

static const struct mcp_error_style error_style = {
    .unknown_tool_code = RPC_METHOD_NOT_FOUND,
    .unknown_tool = "Tool not found: ",
    .unknown_method = "Method not found: ",
    .parse_error = "Parse error",
    .always_200 = true,
};

const struct toolset profile_runner = {
    .name = "runner",
    .instructions =
        "Runs programs in throw-away containers. Give every conversation one conversationId and "
        "keep using it: files in /data stay with it. Use upload_file to bring data in, run_code to "
        "compute, list_runners to see the languages.",
    .tools = list,
    .n_tools = ARRAY_LEN(list),
    .error_style = &error_style,
};
