/* install_package: brings packages of a language's index into a conversation, whose programs stay
 * offline. */
#include "config.h"

#include "common/index/index.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/list.h"
#include "common/tools/runs/run_report.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <string.h>

struct install {
    const char *conversation;
    const char *language;
    struct arg_list packages;
    uint64_t timeout_ms;
    struct arg_integer wait_ms;
};

/* All that the program knows; the broker refuses those that this server cannot install. */
static json_t *install_languages(const struct tools_app *app, const char *wanted)
{
    size_t n;
    const struct index_ecosystem *rows = index_ecosystems(&n);
    json_t *list = json_array();

    (void)app;
    (void)wanted;
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(rows[i].language));
    return list;
}

static const struct arg_row install_package_arguments[] = {
    CONVERSATION_ROW(struct install),
    ARG_ROW(struct install, language, "language", ARG_IDENTIFIER, .required = true,
            .max = RUN_LANGUAGE_MAX, .also = "lang", .choices = install_languages),
    ARG_ROW(struct install, packages, "packages", ARG_LIST, .required = true,
            .max = (uint64_t)INDEX_PACKAGES_MAX * INDEX_PACKAGE_MAX,
            .max_items = INDEX_PACKAGES_MAX, .split = true,
            .also = "package packagename name libraries modules dependencies",
            .help = "\"polars\", \"httpx[http2]>=0.27\", \"@types/node@^22\"."),
    ARG_ROW(struct install, timeout_ms, "timeoutMs", ARG_TIME,
            .max_setting = ARG_SETTING(timeout_max_ms),
            .initial_setting = ARG_SETTING(timeout_max_ms), .listed = args_unlisted,
            .also = "timeout", .help = "Until the installation is stopped."),
    RUN_WAIT_ROW(struct install),
    {0},
};

static int install_check(const struct install *i, struct err *e)
{
    const struct index_ecosystem *eco = index_ecosystem_of(i->language);

    if (!eco)
        return err_set(e, ERR_INVALID, "language: packages of %s cannot be installed", i->language);
    if (i->packages.n == 0)
        return err_set(e, ERR_INVALID, "argument 'packages': name at least one");
    for (size_t n = 0; n < i->packages.n; n++)
        if (index_check_package(eco, i->packages.items[n].data, e) < 0)
            return -1;
    return 0;
}

static json_t *install_start(const struct mcp_tool_call *c, const struct install *i,
                             struct broker_busy *busy, struct err *e)
{
    const struct tools_app *app = c->app;
    const struct run_request request = {
        .tenant = c->tenant,
        .conversation = i->conversation,
        .language = i->language,
        .code = {"", 0},
        .index = true,
        .timeout_ms = i->timeout_ms ? i->timeout_ms : app->limits.timeout_max_ms,
        .args = i->packages.items,
        .n_args = i->packages.n,
    };
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    const struct run_waiting how = {.wait_ms = i->wait_ms};
    struct broker_run_options options = {.options = run_options_of(c, &how),
                                         .callbacks = {.busy = busy}};
    struct run_life life;

    client.leave_fd = c->leave_fd;
    run_life_begin(&life, c, "The installation", request.timeout_ms, &client, &options.callbacks);
    return broker_run(&client, &request, &options, e);
}

/* What was installed, or why nothing was; and what the installer says of single names. */
static void install_tell(const json_t *result, struct mcp_result *out)
{
    const json_t *installed = json_object_get(result, "installed");
    AUTO_BUF struct buf text = BUF_INIT(256 * 1024);
    const json_t *item;

    if (!run_words_has_status(result, "ok"))
        buf_add_str(&text, "Nothing was installed.");
    else if (json_array_size(installed) == 0)
        buf_add_str(&text, "Everything that was asked for is there already.");
    else
        buf_add_str(&text, "Installed for the next programs of this conversation:");
    for (size_t i = 0; (item = json_array_get(installed, i)); i++)
        buf_addf(&text, "%s %s %s", i ? "," : "", json_get_string(item, "name"),
                 json_get_string(item, "version"));
    mcp_result_say(out, "%s", buf_str(&text));
    for (size_t i = 0; (item = json_array_get(json_object_get(result, "notes"), i)); i++)
        mcp_result_say(out, "%s", json_string_value(item));
}

static int install(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                   struct err *e)
{
    const struct install *i = arguments;
    struct broker_busy busy = {0};
    json_t *result;

    if (install_check(i, e) < 0)
        return -1;
    result = install_start(c, i, &busy, e);
    if (!result && e->kind != ERR_BUSY)
        return -1;
    if (!result) {
        run_report_busy(e, &busy, out);
        return 0;
    }
    bool over = !run_words_has_status(result, "running");
    run_report_tell(
        c,
        &(struct run_telling){.conversation = i->conversation,
                              .words = {.no_output = run_words_has_status(result, "ok")}},
        result, out);
    if (over && !out->is_error) {
        out->is_error = !run_words_has_status(out->structured, "ok");
        install_tell(out->structured, out);
    }
    return 0;
}

const struct mcp_tool tool_install_package = {
    .name = "install_package",
    .title = "Install packages",
    .description =
        "Installs packages of PyPI or npm for later calls of the conversationId. Returns what was "
        "installed, or why nothing was. Wheels only; no install script runs.",
    .hints = {.idempotent = true, .open_world = true},
    .output_schema = schema_run,
    ARGS_TABLE(install_package_arguments, struct install),
    .offered = tools_have_packages,
    .run = install,
};
