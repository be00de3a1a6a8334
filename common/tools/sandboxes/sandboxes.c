/* create_sandbox, exec, get_sandbox_status, close_sandbox and reset_session; the output of a
 * persistent sandbox as a resource. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/run_files.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <string.h>

#define STATUS_SAID     20
#define SANDBOX_ID_HELP "The sandbox's sandboxId, as create_sandbox told it."

/* ---- create_sandbox ---- */

struct create_sandbox {
    const char *conversation, *language, *image;
    bool network;
    uint64_t idle_ms;
};

static const struct arg_row create_sandbox_arguments[] = {
    CONVERSATION_ROW(struct create_sandbox),
    ARG_ROW(struct create_sandbox, language, "language", ARG_IDENTIFIER, .max = LANGUAGE_MAX,
            .help = "The language whose interpreter and libraries it has.",
            .choices = runners_languages),
    ARG_ROW(struct create_sandbox, image, "image", ARG_IDENTIFIER, .max = PSANDBOX_IMAGE_MAX,
            .listed = tools_have_psandbox_images,
            .help = "Instead of language: a container image that this server allows."),
    ARG_ROW(struct create_sandbox, network, "network", ARG_BOOL, .listed = tools_have_network,
            .of_network = true, .help = "Give everything in it access to the network."),
    ARG_ROW(struct create_sandbox, idle_ms, "idleTimeoutMs", ARG_TIME,
            .max_setting = ARG_SETTING(persistent.idle_ms),
            .initial_setting = ARG_SETTING(persistent.idle_ms), .also = "idletimeout",
            .help = "Without a call for so long, it is closed."),
    {0},
};

static char *create_describe(void *app)
{
    const struct broker_limits *limits = &((const struct tools_app *)app)->limits;
    AUTO_BUF struct buf out = BUF_INIT(4096);

    buf_add_str(&out,
                "Makes a persistent sandbox: a Linux container in which exec runs commands, and "
                "where processes that are started in the background and files outside /data live "
                "on between calls. /data is that of run_code with the same conversationId. For a "
                "single program run_code is quicker.");
    if (limits->persistent.pause_ms > 0)
        buf_addf(&out,
                 " After %g seconds without a call everything in it is frozen until the next call.",
                 (double)limits->persistent.pause_ms / 1000.0);
    buf_addf(&out,
             " It is closed when unused for idleTimeoutMs, and in any case after %g hours; "
             "close_sandbox it when it is not needed any more.",
             (double)limits->persistent.total_ms / 3600000.0);
    return buf_take(&out);
}

static int create_sandbox(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                          struct err *e)
{
    const struct create_sandbox *x = arguments;
    const struct tools_app *app = c->app;
    const struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    struct broker_psandbox_request want = {.conversation = x->conversation,
                                           .language = x->language,
                                           .image = x->image,
                                           .network = x->network,
                                           .idle_ms = x->idle_ms};

    if (!x->language == !x->image)
        return err_set(e, ERR_INVALID, "arguments 'language' and 'image': one of them is needed");
    if (permit_network(c, x->network, &want.network, e) < 0)
        return -1;
    if (x->network && app->limits.network_ask) {
        int permitted = consent_sandbox_network(c, &out->need, e);
        if (permitted <= 0)
            return permitted;
    }
    out->structured = broker_create_psandbox(&client, &want, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_create_sandbox = {
    .name = "create_sandbox",
    .title = "Create a persistent sandbox",
    .hints = {.open_world = true},
    .output_schema = schema_sandbox,
    .describe = create_describe,
    ARGS_TABLE(create_sandbox_arguments, struct create_sandbox),
    .version = runners_version,
    .offered = tools_have_psandboxes,
    .run = create_sandbox,
};

/* ---- exec ---- */

#define COMMANDS_BYTES (1024 * 1024)
#define CWD_MAX        4096

struct exec {
    const char *psandbox_id, *command;
    struct arg_list commands;
    const char *cwd;
    uint64_t timeout_ms;
    struct arg_integer wait_ms;
    bool background;
    struct arg_map environment;
    struct run_text input;
    const char *detail;
};

static const struct arg_row exec_arguments[] = {
    ARG_ROW(struct exec, psandbox_id, "sandboxId", ARG_STRING, .required = true,
            .max = PSANDBOX_ID_MAX, .help = SANDBOX_ID_HELP),
    ARG_ROW(struct exec, command, "command", ARG_STRING, .max = COMMANDS_BYTES, .is_shell = true,
            .also = "cmd code script", .help = "One command, for bash -c."),
    ARG_ROW(
        struct exec, commands, "commands", ARG_LIST, .max = COMMANDS_BYTES,
        .max_items = PSANDBOX_COMMANDS_MAX, .is_shell = true, .also = "cmds",
        .help =
            "Several, one after the other; the first that fails is the last. Each has a shell of "
            "its own."),
    ARG_ROW(
        struct exec, cwd, "cwd", ARG_STRING, .max = CWD_MAX,
        .also = "workdir workingdirectory dir directory",
        .help = "The directory to run in: an absolute path, or one below /data. Default /data."),
    ARG_ROW(struct exec, timeout_ms, "timeoutMs", ARG_TIME,
            .max_setting = ARG_SETTING(timeout_max_ms), .initial_setting = ARG_SETTING(timeout_ms),
            .also = "timeout", .help = "What all commands of this call may take together."),
    ARG_ROW(struct exec, background, "background", ARG_BOOL, .listed = tools_have_background,
            .help = "Answer at once, with a runId for get_run."),
    RUN_WAIT_ROW(struct exec),
    ARG_ROW(struct exec, environment, "environment", ARG_MAP, .max_setting = ARG_SETTING(env_max),
            .max_items = ENV_MAX, .also = "env environmentvariables",
            .help = "Environment variables for the commands."),
    ARG_ROW(struct exec, input, "stdin", ARG_TEXT, .max_setting = ARG_SETTING(stdin_max),
            .also = "input", .help = "What the first command reads from its standard input."),
    DETAIL_ROW(struct exec),
    {0},
};

static json_t *exec_run(const struct mcp_tool_call *c, const struct exec *x, struct err *e)
{
    const struct tools_app *app = c->app;
    const struct run_text one = {x->command, x->command ? strlen(x->command) : 0};
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    struct broker_callbacks callbacks = {0};
    struct run_life life;
    const struct run_waiting how = {x->wait_ms, x->background, true, x->detail};
    const struct broker_exec_want want = {
        .psandbox_id = x->psandbox_id,
        .commands = x->command ? &one : x->commands.items,
        .n = x->command ? 1 : x->commands.n,
        .cwd = x->cwd,
        .timeout_ms = x->timeout_ms,
        .env = x->environment.items,
        .n_env = x->environment.n,
        .input = x->input.len > 0 ? x->input : (struct run_text){0},
        .stop_at_failure = true,
        .options = run_options_of(c, &how),
    };

    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, "The command", x->timeout_ms ? x->timeout_ms : app->limits.timeout_ms,
                   &client, &callbacks);
    return broker_exec(&client, &want, &callbacks, e);
}

static int exec(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                struct err *e)
{
    struct exec *x = arguments;

    if (!x->command == (x->commands.n == 0))
        return err_set(e, ERR_INVALID, "arguments 'command' and 'commands': one of them is needed");
    if (env_filter(&x->environment, e) < 0)
        return -1;
    json_t *result = exec_run(c, x, e);
    if (!result)
        return -1;
    const char *conversation = json_get_string(result, "conversationId");
    const struct changes changes = {c->server, c->tenant, conversation ? conversation : ""};
    bool running = run_words_has_status(result, "running");
    if (running && c->can_task)
        out->task = run_tasks_new(result);
    if (out->task) {
        json_decref(result);
        return 0;
    }
    if (!running) /* else its process sends the event when it ends */
        changes_publish(&changes, json_object_get(result, "files"));
    run_report_tell(c, &(struct run_telling){.words = {.detail = x->detail}}, result, out);
    return 0;
}

const struct mcp_tool tool_exec = {
    .name = "exec",
    .title = "Run commands in a sandbox",
    .description =
        "Runs commands in a sandbox that create_sandbox made, and returns what each printed, how "
        "it ended and which files of /data changed; what takes long goes on, get_run has the rest. "
        "A command ends when its own process ends: what it leaves in the background lives on "
        "(redirect its output to a file: later output is not kept). Several calls at once share "
        "the sandbox.",
    .hints = {.destructive = true, .open_world = true},
    .output_schema = schema_run,
    ARGS_TABLE(exec_arguments, struct exec),
    .offered = tools_have_psandboxes,
    .run = exec,
};

/* The arguments of the next three; each has some of them. */
struct names {
    const char *psandbox_id, *conversation, *language;
};

/* ---- get_sandbox_status ---- */

static const struct arg_row get_sandbox_status_arguments[] = {
    ARG_ROW(struct names, psandbox_id, "sandboxId", ARG_STRING, .max = PSANDBOX_ID_MAX,
            .help = "Only this one."),
    ARG_ROW(struct names, conversation, "conversationId", ARG_IDENTIFIER, .max = CONVERSATION_MAX,
            .help = "Only those of this conversation."),
    {0},
};

/* A line for each: what a next call needs. */
static void status_tell(const json_t *sandboxes, struct mcp_result *out)
{
    const size_t n = json_array_size(sandboxes);
    const json_t *row;

    if (n == 0)
        mcp_result_say(out, "no sandboxes");
    for (size_t i = 0; i < STATUS_SAID && (row = json_array_get(sandboxes, i)); i++) {
        const char *language = json_get_string(row, "language");
        mcp_result_say(out, "%s: %s, %s%s, %s", json_get_string(row, "sandboxId"),
                       json_get_string(row, "status"), language ? language : "image",
                       json_get_bool(row, "session", 0) ? " session" : "",
                       json_get_string(row, "conversationId"));
    }
    if (n > STATUS_SAID)
        mcp_result_say(out, "%zu more: name a conversationId", n - STATUS_SAID);
}

static int get_sandbox_status(const struct mcp_tool_call *c, void *arguments,
                              struct mcp_result *out, struct err *e)
{
    const struct names *x = arguments;
    const struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    out->structured = broker_psandbox_status(&client, x->psandbox_id, x->conversation, e);
    report_node(out);
    if (c->in_text && !x->psandbox_id)
        status_tell(json_object_get(out->structured, "sandboxes"), out);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_get_sandbox_status = {
    .name = "get_sandbox_status",
    .title = "Look at sandboxes",
    .description = "Lists the persistent sandboxes (create_sandbox, run_code with session), the "
                   "newest first, and how those ended that ended lately.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_get_sandbox_status,
    ARGS_TABLE(get_sandbox_status_arguments, struct names),
    .offered = tools_have_psandboxes,
    .run = get_sandbox_status,
};

/* ---- close_sandbox ---- */

static const struct arg_row close_sandbox_arguments[] = {
    ARG_ROW(struct names, psandbox_id, "sandboxId", ARG_STRING, .required = true,
            .max = PSANDBOX_ID_MAX, .help = SANDBOX_ID_HELP),
    {0},
};

static int close_sandbox(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                         struct err *e)
{
    const struct names *x = arguments;
    const struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    out->structured = broker_close_psandbox(&client, x->psandbox_id, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_close_sandbox = {
    .name = "close_sandbox",
    .title = "Close a sandbox",
    .description = "Closes a sandbox that create_sandbox made: everything that runs in it ends, "
                   "files outside /data are gone, those in /data stay. One that has ended "
                   "already is not changed: the answer says how it ended.",
    .hints = {.destructive = true, .idempotent = true},
    .frees = true,
    .output_schema = schema_sandbox,
    ARGS_TABLE(close_sandbox_arguments, struct names),
    .offered = tools_have_psandboxes,
    .run = close_sandbox,
};

/* ---- reset_session ---- */

static const struct arg_row reset_session_arguments[] = {
    ARG_ROW(struct names, conversation, "conversationId", ARG_IDENTIFIER, .required = true,
            .max = CONVERSATION_MAX,
            .help = "The conversation whose variables are to be forgotten."),
    ARG_ROW(struct names, language, "language", ARG_IDENTIFIER, .max = LANGUAGE_MAX,
            .help = "Only those of this language.", .choices = runners_languages),
    {0},
};

static int reset_session(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                         struct err *e)
{
    const struct names *x = arguments;
    const struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);

    out->structured = broker_reset_session(&client, x->conversation, x->language, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_reset_session = {
    .name = "reset_session",
    .title = "Forget variables",
    .description = "Ends the interpreters in which run_code with session keeps variables: the "
                   "next such call begins anew. Files in /data stay. sessions is empty when "
                   "there was none.",
    .hints = {.destructive = true, .idempotent = true},
    .frees = true,
    .output_schema = schema_reset_session,
    ARGS_TABLE(reset_session_arguments, struct names),
    .version = runners_version,
    .offered = tools_have_psandboxes,
    .run = reset_session,
};

/* ---- output as a resource ---- */

#define LOGS_ENDING "/logs"

json_t *sandbox_logs_template(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:[s, s], s:f}}", "uriTemplate",
                     SANDBOX_LOGS_SCHEME "{id}" LOGS_ENDING, "name", "sandbox-logs", "title",
                     "A sandbox's output", "description",
                     "The newest output of the commands in a sandbox that create_sandbox made; id "
                     "is its sandboxId.",
                     "mimeType", "text/plain", "annotations", "audience", "assistant", "user",
                     "priority", 0.5);
}

char *sandbox_logs_id(const char *uri)
{
    size_t len = strlen(uri);
    size_t around = strlen(SANDBOX_LOGS_SCHEME LOGS_ENDING);

    if (len <= around || len > around + PSANDBOX_ID_MAX ||
        strcmp(uri + len - strlen(LOGS_ENDING), LOGS_ENDING) != 0)
        return NULL;
    return mem_strndup(uri + strlen(SANDBOX_LOGS_SCHEME), len - around);
}

json_t *sandbox_logs_read(const struct tools_app *app, const char *tenant, const char *uri,
                          struct err *e)
{
    const struct broker_client client = tools_client(app, tenant, -1);
    AUTO_FREE char *id = sandbox_logs_id(uri);
    json_auto_t *logs = id ? broker_psandbox_logs(&client, id, e) : NULL;

    if (!id || (!logs && e->kind == ERR_NOT_FOUND))
        err_set(e, ERR_NOT_FOUND, "there is no such resource");
    if (!logs) {
        report_soften(e);
        return NULL;
    }
    return json_pack("[{s:s, s:s, s:O}]", "uri", uri, "mimeType", "text/plain", "text",
                     json_object_get(logs, "text"));
}
