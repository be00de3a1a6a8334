/* install_package of the set "interpreter". */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/interpreter.h"

#define PACKAGE_MAX 256

static const struct arg_row package_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(package, "package_name", true, PACKAGE_MAX, "The package to install."),
    {0},
};

/* Why nothing was installed. */
static json_t *error_of(const json_t *result, struct mcp_result *inner)
{
    const char *reason = json_get_string(result, "reason");
    const char *status = json_get_string(result, "status");

    if (json_is_true(json_object_get(result, "success")))
        return json_null();
    if (reason)
        return json_string(reason);
    return json_sprintf("The installation was ended (%s). %s", status ? status : "unknown",
                        mcp_result_text(inner));
}

static void install(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    struct err e = ERR_INIT;
    json_t *result = NULL, *error;
    const char *output;

    if (!interpreter_begin_active(&s, package_arguments))
        return;
    if (adapt_call(c, &tool_install_package,
                   json_pack("{s:s, s:s, s:[s], s:i}", "conversationId", s.a.session, "language",
                             "python", "packages", s.a.package, "waitMs", 0),
                   &inner, out, &result, &e) < 0)
        error = json_string(interpreter_text(&e));
    else
        error = error_of(result, &inner);
    output = json_get_string(result, "output");
    out->structured = json_pack("{s:s, s:s, s:o}", "package", s.a.package, "output",
                                output ? output : "", "error", error);
}

const struct mcp_tool interpreter_package_tool = {
    .name = "install_package",
    .hints = {.open_world = true},
    .description = "Installs a Python package into a sandbox.",
    .arguments = package_arguments,
    .call = install};
