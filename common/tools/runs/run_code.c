/* run_code: runs a program in a fresh container and returns its result. */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/runs/imports.h"
#include "common/tools/runs/permit.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#define ARGS_MAX_BYTES (64 * 1024)
#define ARGS_MAX       64

struct run_code {
    const char *conversation;
    const char *language;
    struct run_text code;
    bool network;
    enum network_tier tier; /* what that gives */
    struct arg_map environment;
    uint64_t timeout_ms;
    struct arg_integer wait_ms;
    bool background;
    bool session;
    struct run_text input;
    struct arg_list args;
    const char *detail;
};

static const struct arg_row run_code_arguments[] = {
    ARG_ROW(struct run_code, language, "language", ARG_IDENTIFIER, .required = true,
            .max = LANGUAGE_MAX, .choices = runners_languages, .also = "lang"),
    ARG_ROW(struct run_code, code, "code", ARG_TEXT, .required = true,
            .max_setting = ARG_SETTING(code_max), .is_code = true,
            .also = "script source program sourcecode command cmd", .help = "The whole program."),
    CONVERSATION_ROW(struct run_code),
    ARG_ROW(struct run_code, session, "session", ARG_BOOL, .listed = tools_have_psandboxes,
            .help = "Keep variables for the next call with session (not bash)."),
    ARG_ROW(struct run_code, network, "network", ARG_BOOL, .listed = tools_have_network,
            .of_network = true, .also = "internet", .help = "Internet access; else none."),
    ARG_ROW(struct run_code, timeout_ms, "timeoutMs", ARG_TIME,
            .max_setting = ARG_SETTING(timeout_max_ms), .initial_setting = ARG_SETTING(timeout_ms),
            .also = "timeout", .help = "Until it is stopped."),
    ARG_ROW(struct run_code, background, "background", ARG_BOOL, .listed = tools_have_background,
            .help = "Answer at once, with a runId for get_run."),
    ARG_ROW(struct run_code, input, "stdin", ARG_TEXT, .max_setting = ARG_SETTING(stdin_max),
            .listed = tools_have_input, .also = "input"),
    RUN_WAIT_ROW(struct run_code),
    ARG_ROW(
        struct run_code, environment, "environment", ARG_MAP, .max_setting = ARG_SETTING(env_max),
        .max_items = ENV_MAX, .listed = args_unlisted, .also = "env environmentvariables",
        .help =
            "Environment variables for the program. Those that change how the interpreter starts "
            "(PATH, LD_*, PYTHON*, …) are refused."),
    ARG_ROW(struct run_code, args, "args", ARG_LIST, .max = ARGS_MAX_BYTES, .max_items = ARGS_MAX,
            .listed = args_unlisted, .also = "argv arguments",
            .help = "Command line arguments of the program."),
    DETAIL_ROW(struct run_code),
    {0},
};

static void describe_limits(const struct broker_limits *l, struct buf *out)
{
    buf_addf(out, "\n- Limits: %g s", (double)l->timeout_ms / 1000.0);
    if (l->run.memory > 0) {
        buf_add_str(out, ", ");
        words_binary_size(out, l->run.memory);
        buf_addf(out, " memory, %g CPU, ", (double)l->run.cpu_milli / 1000.0);
        words_binary_size(out, l->run.tmp);
        buf_add_str(out, " in /tmp");
    }
    buf_add_char(out, '.');
    if (l->wait_ms > 0 && l->wait_ms < l->timeout_max_ms)
        buf_addf(out, " What takes more than %g s goes on when the answer comes: get_run.",
                 (double)l->wait_ms / 1000.0);
}

static char *run_code_describe(void *app)
{
    const struct tools_app *a = app;
    AUTO_BUF struct buf out = BUF_INIT(256 * 1024);

    buf_add_str(&out, "Runs a program in an isolated Linux container. Returns output, exit code, "
                      "new files as links, pictures, open matplotlib figures.\n"
                      "- Files in the working directory /data stay with the conversationId; all "
                      "else is wiped after the call.");
    if (tools_have_psandboxes(app))
        buf_add_str(&out, " Variables and processes live on with session only.");
    describe_limits(&a->limits, &out);
    if (!tools_have_network(app))
        buf_add_str(&out, "\n- No network.");
    runners_describe(
        a, a->packages ? "\nLibraries (others: install_package):" : "\nLibraries:", true, &out);
    return buf_take(&out);
}

/* ---- a call ---- */

static int run_code_check(const struct mcp_tool_call *c, struct run_code *r, struct err *e)
{
    if (env_filter(&r->environment, e) < 0)
        return -1;
    return permit_network(c, r->network, &r->tier, e);
}

/* What a session was given goes on, unless the user is to be asked each time. */
static enum network_tier session_network(const struct mcp_tool_call *c)
{
    const struct tools_app *app = c->app;
    struct err none = ERR_INIT;
    enum network_tier tier;

    return !app->limits.network_ask && permit_network(c, true, &tier, &none) == 0 ? tier
                                                                                  : NETWORK_NONE;
}

static json_t *run_code_start(const struct mcp_tool_call *c, const struct run_code *r,
                              struct broker_busy *busy, struct fds *open_files, struct err *e)
{
    const struct tools_app *app = c->app;
    const struct run_request request = {
        .tenant = c->tenant,
        .conversation = r->conversation,
        .language = r->language,
        .code = r->code,
        /* An empty input is no input, which needs no support by the image. */
        .input = r->input.len > 0 ? r->input : (struct run_text){0},
        .network = r->tier,
        .single_use = permit_single_use_only(c),
        .timeout_ms = r->timeout_ms,
        .args = r->args.items,
        .n_args = r->args.n,
        .env = r->environment.items,
        .n_env = r->environment.n,
    };
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    json_auto_t *imports = imports_of(r->language, r->code);
    AUTO_FREE char *subject = mem_printf("The %s program", r->language);
    const struct run_waiting how = {r->wait_ms, r->background, true, r->detail};
    struct broker_run_options options = {
        .options = run_options_of(c, &how), .callbacks = {.busy = busy}, .open_files = open_files};
    struct run_life life;

    options.options.session = r->session;
    options.options.session_network = r->session ? session_network(c) : NETWORK_NONE;
    options.options.imports = imports;
    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, subject, r->timeout_ms ? r->timeout_ms : app->limits.timeout_ms,
                   &client, &options.callbacks);
    return broker_run(&client, &request, &options, e);
}

static void run_code_answer(const struct mcp_tool_call *c, const struct run_code *r,
                            const struct fds *open_files, json_t *take_result,
                            struct mcp_result *out)
{
    const struct changes changes = {c->server, c->tenant, r->conversation};
    bool running = run_words_has_status(take_result, "running");
    const char *named = json_get_string(c->arguments, "conversationId");
    const struct run_asked asked = {.network = r->tier != NETWORK_NONE,
                                    .session = r->session,
                                    .input = r->input.len > 0,
                                    .begins = !named || !*named};

    if (running && c->can_task)
        out->task = run_tasks_new(take_result);
    if (out->task) {
        json_decref(take_result);
        return;
    }
    if (!running) /* else its supervisor sends the event when it ends */
        changes_publish(&changes, json_object_get(take_result, "files"));
    run_report_tell(c,
                    &(struct run_telling){.conversation = r->conversation,
                                          .open_files = open_files,
                                          .words = {.detail = r->detail, .asked = &asked}},
                    take_result, out);
}

static int run_code(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                    struct err *e)
{
    struct run_code *r = arguments;
    const struct tools_app *app = c->app;
    struct broker_busy busy = {0};
    AUTO_FDS struct fds open_files = FDS_INIT(FDS_MAX);

    if (run_code_check(c, r, e) < 0)
        return -1;
    if (r->network && app->limits.network_ask) {
        int permitted = consent_network(c, r->language, r->code, &out->need, e);
        if (permitted <= 0)
            return permitted;
    }
    json_t *result = run_code_start(c, r, &busy, &open_files, e);
    if (result)
        run_code_answer(c, r, &open_files, result, out);
    else if (e->kind == ERR_BUSY)
        run_report_busy(e, &busy, out);
    else
        return -1;
    return 0;
}

const struct mcp_tool tool_run_code = {
    .name = "run_code",
    .aliases = (const char *const[]){"sandbox.run_code", NULL},
    .title = "Run code",
    /* A program may delete files of its conversation, and reach the network when it has access. */
    .hints = {.destructive = true, .open_world = true},
    .output_schema = schema_run,
    .describe = run_code_describe,
    ARGS_TABLE(run_code_arguments, struct run_code),
    .version = runners_version,
    .run = run_code,
};
