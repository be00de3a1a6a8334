/* exec: runs commands in a sandbox that stays. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_psandboxes.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/files/changes.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/env.h"
#include "common/tools/runs/run_files.h"
#include "common/tools/runs/run_life.h"
#include "common/tools/sandboxes/sandbox_rows.h"
#include "common/tools/schemas.h"

#include <string.h>

#define COMMANDS_BYTES (1024 * 1024)
#define CWD_MAX        4096
#define ENV_MAX        64

struct exec {
    const char *psandbox_id, *command;
    struct arg_list commands;
    const char *cwd;
    uint64_t timeout_ms;
    struct arg_map environment;
    struct run_text input;
};

static const struct arg_row exec_arguments[] = {
    {.name = "sandboxId",
     .type = ARG_STRING,
     .offset = offsetof(struct exec, psandbox_id),
     .required = true,
     .max = PSANDBOX_ID_MAX,
     .help = SANDBOX_ID_HELP},
    {.name = "command",
     .type = ARG_STRING,
     .offset = offsetof(struct exec, command),
     .max = COMMANDS_BYTES,
     .help = "One command, for sh -c."},
    {.name = "commands",
     .type = ARG_LIST,
     .offset = offsetof(struct exec, commands),
     .max = COMMANDS_BYTES,
     .max_items = PSANDBOX_COMMANDS_MAX,
     .help = "Several, one after the other; the first that fails is the last. Each has a shell of "
             "its own."},
    {.name = "cwd",
     .type = ARG_STRING,
     .offset = offsetof(struct exec, cwd),
     .max = CWD_MAX,
     .help = "The directory to run in: an absolute path, or one below /data. Default /data."},
    {.name = "timeout",
     .type = ARG_SECONDS,
     .offset = offsetof(struct exec, timeout_ms),
     .max_setting = ARG_SETTING(timeout_max_ms),
     .initial_setting = ARG_SETTING(timeout_ms),
     .help = "Seconds that all commands of this call may take together."},
    {.name = "environment",
     .type = ARG_MAP,
     .offset = offsetof(struct exec, environment),
     .max_setting = ARG_SETTING(env_max),
     .max_items = ENV_MAX,
     .help = "Environment variables for the commands."},
    {.name = "stdin",
     .type = ARG_TEXT,
     .offset = offsetof(struct exec, input),
     .max_setting = ARG_SETTING(stdin_max),
     .help = "What the first command reads from its standard input."},
    {0},
};

static int check(struct exec *x, struct err *e)
{
    if (!x->command == (x->commands.n == 0))
        return err_set(e, ERR_INVALID, "arguments 'command' and 'commands': one of them is needed");
    return env_filter(&x->environment, e);
}

static json_t *run(const struct mcp_tool_call *c, const struct exec *x, struct err *e)
{
    const struct tools_app *app = c->app;
    const struct run_text one = {x->command, x->command ? strlen(x->command) : 0};
    struct broker_client client = tools_client(app, c->cancel_fd);
    struct broker_callbacks callbacks = {0};
    struct run_life life;
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
    };

    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, "The command", x->timeout_ms ? x->timeout_ms : app->limits.timeout_ms,
                   &client, &callbacks);
    return broker_exec(&client, c->tenant, &want, &callbacks, e);
}

static int exec(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                struct err *e)
{
    struct exec *x = arguments;
    json_t *result = check(x, e) < 0 ? NULL : run(c, x, e);
    const char *conversation = json_get_string(result, "conversationId");

    if (!result)
        return -1;
    const struct changes changes = {c->server, c->tenant, conversation ? conversation : ""};
    changes_tell(&changes, json_object_get(result, "files"));
    out->structured = result;
    const struct run_files files = {.conversation = changes.conversation,
                                    .rows = json_object_get(result, "files")};
    run_files_show(c, &files, out);
    return 0;
}

const struct mcp_tool tool_exec = {
    .name = "exec",
    .title = "Run commands in a sandbox",
    .description =
        "Runs commands in a sandbox that create_sandbox made, and returns what each printed, how "
        "it "
        "ended and which files of /data changed. A command ends when its own process ends: what it "
        "leaves in the background lives on (redirect its output to a file: later output is not "
        "kept). Several calls at once share the sandbox.",
    .hints = {.destructive = true, .open_world = true},
    .output_schema = schema_exec,
    .arguments = exec_arguments,
    .arguments_size = sizeof(struct exec),
    .run = exec,
};
