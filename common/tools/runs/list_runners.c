/* list_runners: which languages there are, and what is installed for them. */
#include "config.h"

#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include "common/base/mem.h"

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
static int list_runners(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                        struct err *e)
{

    const json_t *runners = runners_get(c->app, 0, e);

    (void)arguments;
    if (!runners)
        return -1;
    out->structured = json_pack("{s:o}", "languages", languages_new(runners));
    return 0;
}

static const char *const aliases[] = {"sandbox.list_runners", NULL};

const struct mcp_tool tool_list_runners = {
    .name = "list_runners",
    .aliases = aliases,
    .title = "List languages",
    .description = "Lists the languages that run_code can run, with the version of each "
                   "interpreter and the libraries that can be imported.",
    .hints = {.read_only = true, .idempotent = true},
    .output_schema = schema_list_runners,
    .arguments = args_none,
    .run = list_runners,
};
