/* list_runners: which languages there are, and what is installed for them. */
#include "config.h"

#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"

#include "common/base/mem.h"

static const struct arg_row arguments[] = {{0}};

static const char output_schema[] =
    "{\"type\":\"object\",\"required\":[\"languages\"],\"properties\":{\"languages\":{"
    "\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"language\",\"image\",\"version\",\"libraries\"],\"properties\":{"
    "\"language\":{\"type\":\"string\"},"
    "\"image\":{\"type\":\"string\"},"
    "\"version\":{\"type\":\"string\",\"description\":\"of the interpreter\"},"
    "\"libraries\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
    "\"required\":[\"name\",\"version\"],\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"version\":{\"type\":\"string\"}}}}}}}}}";

static char *describe(void *app)
{
    (void)app;
    return mem_strdup("Lists the languages that run_code can run, with the version of each "
                      "interpreter and the libraries that can be imported.");
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

static json_t *libraries_new(const json_t *runner)
{
    json_t *libraries = json_array();
    size_t i;
    json_t *library;

    json_array_foreach(json_object_get(runner, "libraries"), i, library)
    {
        json_array_append_new(libraries,
                              json_pack("{s:s, s:s}", "name", text_or_empty(library, "name"),
                                        "version", text_or_empty(library, "version")));
    }
    return libraries;
}

static json_t *languages_new(const json_t *runners)
{
    json_t *languages = json_array();
    size_t i;
    json_t *runner;

    json_array_foreach(runners, i, runner)
    {
        json_array_append_new(languages, json_pack("{s:s, s:s, s:s, s:o}", "language",
                                                   text_or_empty(runner, "language"), "image",
                                                   text_or_empty(runner, "image"), "version",
                                                   text_or_empty(runner, "version"), "libraries",
                                                   libraries_new(runner)));
    }
    return languages;
}

/* Asks anew: who calls this wants to know what there is now. */
static void call(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct tools_app *app = c->app;
    struct err e = ERR_INIT;
    const json_t *runners;

    if (args_fill(arguments, app, c->arguments, NULL, &e) < 0) {
        report_failure(out, &e);
        return;
    }
    runners = runners_get(app, 0, &e);
    if (!runners) {
        report_failure(out, &e);
        return;
    }
    out->structured = json_pack("{s:o}", "languages", languages_new(runners));
}

static const char *const aliases[] = {"sandbox.list_runners", NULL};

const struct mcp_tool tool_list_runners = {
    .name = "list_runners",
    .aliases = aliases,
    .title = "List languages",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = output_schema,
    .describe = describe,
    .input_schema = input_schema,
    .call = call,
};
