/*
 * The set "interpreter": its tools about sessions, code and packages; its list. Its telnet tools
 * would connect from the server's own host to where a caller says, into the operator's network:
 * here they refuse.
 */
#include "config.h"

#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/interpreter_call.h"
#include "common/tools/tools_app.h"

#include <string.h>

#define INTERPRETER_TYPE "sandcgi"
#define LANGUAGE         "python"
#define ONCE_BYTES       12
#define END_TIMEOUT_MS   10000

static const struct arg_row session_arguments[] = {INTERPRETER_SESSION, {0}};

static const struct arg_row status_arguments[] = {
    ARG_ROW(struct interpreter_arguments, session, "session_id", ARG_IDENTIFIER,
            .max = CONVERSATION_MAX, .help = "The session to look at; all of them when absent."),
    {0},
};

#define CODE_ROW                                                                                   \
    ARG_ROW(struct interpreter_arguments, code, "code", ARG_TEXT, .required = true,                \
            .max_setting = ARG_SETTING(code_max), .help = "The Python code.")

static const struct arg_row code_arguments[] = {INTERPRETER_SESSION, CODE_ROW, {0}};
static const struct arg_row once_arguments[] = {CODE_ROW, {0}};

/* ---- running ---- */

/* session: in the interpreter of the session, else in a new container. */
static int run_ours(const struct mcp_tool_call *c, const char *conversation, const char *code,
                    size_t len, bool session, struct mcp_result *inner, struct mcp_result *out,
                    json_t **result, struct err *e)
{
    return adapt_call(c, &tool_run_code,
                      json_pack("{s:s, s:s, s:s%, s:b}", "conversationId", conversation, "language",
                                LANGUAGE, "code", code, len, "session", session),
                      inner, out, result, e);
}

static json_t *stream_of(const json_t *result, const char *name)
{
    json_t *text = json_object_get(result, name);

    return json_string_length(text) > 0 ? json_pack("[O]", text) : json_array();
}

/* With our own first sentence, if there is one. */
static json_t *ended(const char *what, const char *status, const struct mcp_result *inner)
{
    const char *said = mcp_result_text(inner);

    return json_sprintf("The %s was ended (%s). %.*s", what, status ? status : "unknown",
                        (int)strcspn(said, "\n"), said);
}

/* The error in one line: the last line of the program's stderr. */
static json_t *run_error(const json_t *result, const struct mcp_result *inner)
{
    const char *status = json_get_string(result, "status");
    const json_t *text = json_object_get(result, "stderr");
    const char *s = json_string_value(text);
    size_t end = json_string_length(text), start;

    if (status && strcmp(status, "ok") == 0)
        return json_null();
    if (!status || strcmp(status, "error") != 0)
        return ended("code", status, inner);
    while (end > 0 && (s[end - 1] == '\n' || s[end - 1] == ' '))
        end--;
    for (start = end; start > 0 && s[start - 1] != '\n';)
        start--;
    return end > 0 ? json_from_bytes(s + start, end - start)
                   : json_sprintf("exit code %" JSON_INTEGER_FORMAT,
                                  json_get_integer(result, "exitCode", -1));
}

/* {logs, error} */
static json_t *outcome_new(const json_t *result, const struct mcp_result *inner)
{
    return json_pack("{s:{s:o, s:o}, s:o}", "logs", "stdout", stream_of(result, "stdout"), "stderr",
                     stream_of(result, "stderr"), "error", run_error(result, inner));
}

/* ---- create_tool, close, status ---- */

static void create_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const char nothing[] = "pass";
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *result;

    if (!interpreter_begin(&s, session_arguments))
        return;
    int active = interpreter_is_active(c, s.a.session, &e);
    if (active > 0)
        adapt_tell(out, "Sandbox with session ID %s already exists.", s.a.session);
    else if (active < 0 ||
             run_ours(c, s.a.session, nothing, strlen(nothing), true, &inner, out, &result, &e) < 0)
        adapt_tell(out, "Failed to create sandbox: %s", interpreter_text(&e));
    else if (inner.is_error)
        adapt_tell(out, "Failed to create sandbox: %s", mcp_result_text(&inner));
    else
        adapt_tell(out, "Sandbox created successfully with session ID: %s", s.a.session);
}

/* Ends the interpreter and deletes the files, even if the caller has left. */
static int end_session(const struct mcp_tool_call *c, const char *session, struct err *e)
{
    struct mcp_tool_call uncancelled = *c;

    uncancelled.cancel_fd = -1;
    struct broker_client client = tools_client(c->app, c->tenant, -1);
    json_auto_t *reset = broker_reset_session(&client, session, NULL, e);
    if (!reset && e->kind != ERR_NOT_FOUND)
        return -1;
    return adapt_delete(&uncancelled, session, END_TIMEOUT_MS, e);
}

static void close_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!interpreter_begin(&s, session_arguments))
        return;
    int active = interpreter_is_active(c, s.a.session, &e);
    if (active == 0)
        adapt_tell(out, "No active sandbox found with session ID: %s", s.a.session);
    else if (active > 0 && end_session(c, s.a.session, &e) == 0)
        adapt_tell(out, "Sandbox with session ID %s closed successfully.", s.a.session);
    else
        adapt_tell(out, "Failed to close sandbox: %s", interpreter_text(&e));
}

static void status_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!interpreter_begin(&s, status_arguments))
        return;
    json_auto_t *names = interpreter_sessions(c, s.a.session, &e);
    if (!names && e.kind != ERR_NOT_FOUND)
        interpreter_fail(out, "%s", interpreter_text(&e));
    else if (s.a.session && json_array_size(names) == 0)
        interpreter_fail(out, "No active sandbox found with session ID: %s", s.a.session);
    else if (s.a.session)
        out->structured = json_pack("{s:s, s:s, s:s}", "status", "active", "session_id",
                                    s.a.session, "interpreter_type", INTERPRETER_TYPE);
    else
        out->structured = json_pack("{s:I, s:o, s:s}", "active_sandbox_count",
                                    (json_int_t)json_array_size(names), "active_sessions",
                                    names ? json_incref(names) : json_array(), "interpreter_type",
                                    INTERPRETER_TYPE);
}

/* ---- code ---- */

static void execute_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *result;

    if (!interpreter_begin_active(&s, code_arguments))
        return;
    if (run_ours(c, s.a.session, s.a.code.data, s.a.code.len, true, &inner, out, &result, &e) < 0)
        interpreter_fail(out, "%s", interpreter_text(&e));
    else if (inner.is_error)
        interpreter_fail(out, "%s", mcp_result_text(&inner));
    else
        out->structured = outcome_new(result, &inner);
}

static void once_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    char digits[CRYPTO_HEX_LEN(ONCE_BYTES)];
    struct mcp_tool_call once = *c;
    struct err e = ERR_INIT, close_e = ERR_INIT;
    json_t *result, *told;

    if (!interpreter_begin(&s, once_arguments))
        return;
    /* Its result cannot be fetched later, so the run ends with its caller. */
    if (once.cancel_fd < 0)
        once.cancel_fd = c->leave_fd;
    once.leave_fd = -1;
    crypto_random_hex(ONCE_BYTES, digits);
    AUTO_FREE char *conversation = mem_printf("once-%s", digits);
    if (run_ours(&once, conversation, s.a.code.data, s.a.code.len, false, &inner, out, &result,
                 &e) == 0 &&
        !inner.is_error)
        told = outcome_new(result, &inner);
    else
        told = json_pack("{s:{s:[], s:[]}, s:s}", "logs", "stdout", "stderr", "error",
                         e.kind ? interpreter_text(&e) : mcp_result_text(&inner));
    bool closed = end_session(c, conversation, &close_e) == 0;
    json_object_set_new(told, "sandbox_status", json_string(closed ? "closed" : "close_failed"));
    json_object_set_new(told, "sandbox_closed", json_boolean(closed));
    if (!closed)
        json_object_set_new(told, "close_error", json_string(interpreter_text(&close_e)));
    json_object_set_new(told, "sandbox_removed", json_boolean(closed));
    out->structured = told;
}

/* ---- the tools ---- */

static const struct mcp_tool interpreter_session_tools[] = {
    {.name = "create_sandbox",
     .description = "Creates a sandbox: a Python interpreter that keeps its variables and "
                    "files under the session_id that you choose.",
     .arguments = session_arguments,
     .call = create_tool},
    {.name = "close_sandbox",
     .hints = {.destructive = true},
     .frees = true,
     .description = "Closes a sandbox. Its variables and files are gone.",
     .arguments = session_arguments,
     .call = close_tool},
    {.name = "get_sandbox_status",
     .hints = {.read_only = true},
     .description = "Tells whether a sandbox is active, or which ones are.",
     .arguments = status_arguments,
     .call = status_tool},
    {.name = "execute_code",
     .hints = {.destructive = true},
     .description =
         "Executes Python code in a sandbox. Variables stay for the next call; print what you want "
         "to see.",
     .arguments = code_arguments,
     .call = execute_tool},
    {.name = "create_run_close",
     .description = "Creates a sandbox, runs Python code in it, and closes it.",
     .arguments = once_arguments,
     .call = once_tool},
};

#define PACKAGE_MAX 256

static const struct arg_row package_arguments[] = {
    INTERPRETER_SESSION,
    INTERPRETER_TEXT(package, "package_name", true, PACKAGE_MAX, "The package to install."),
    {0},
};

/* Why nothing was installed. */
static json_t *install_error(const json_t *result, struct mcp_result *inner)
{
    const char *reason = json_get_string(result, "reason");
    const char *status = json_get_string(result, "status");

    if (json_is_true(json_object_get(result, "success")))
        return json_null();
    if (reason)
        return json_string(reason);
    return ended("installation", status, inner);
}

static void install_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_INTERPRETER_CALL struct interpreter_call s = {.mcp = c, .out = out};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *result = NULL, *error;
    const char *output;

    if (!interpreter_begin_active(&s, package_arguments))
        return;
    if (adapt_call(c, &tool_install_package,
                   json_pack("{s:s, s:s, s:[s]}", "conversationId", s.a.session, "language",
                             "python", "packages", s.a.package),
                   &inner, out, &result, &e) < 0)
        error = json_string(interpreter_text(&e));
    else
        error = install_error(result, &inner);
    output = json_get_string(result, "output");
    out->structured = json_pack("{s:s, s:s, s:o}", "package", s.a.package, "output",
                                output ? output : "", "error", error);
}

static const struct mcp_tool interpreter_package_tool = {
    .name = "install_package",
    .hints = {.open_world = true},
    .description = "Installs a Python package into a sandbox.",
    .arguments = package_arguments,
    .call = install_tool};

#define REFUSAL "this server makes no connections from its own host"

static void telnet_tool(const struct mcp_tool_call *c, struct mcp_result *out);

static const struct mcp_tool interpreter_telnet_tools[] = {
    {.name = "connect",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"host\",\"port\"],\"properties\":{"
                     "\"host\":{\"type\":\"string\"},\"port\":{\"type\":\"integer\"},"
                     "\"timeout\":{\"type\":\"integer\",\"default\":30}}}",
     .call = telnet_tool},
    {.name = "send_command",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"session_id\",\"command\"],"
                     "\"properties\":{\"session_id\":{\"type\":\"string\"},"
                     "\"command\":{\"type\":\"string\"},"
                     "\"timeout\":{\"type\":\"integer\",\"default\":10}}}",
     .call = telnet_tool},
    {.name = "disconnect",
     .description = "Not available: " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"required\":[\"session_id\"],"
                     "\"properties\":{\"session_id\":{\"type\":\"string\"}}}",
     .call = telnet_tool},
    {.name = "list_connections",
     .hints = {.read_only = true},
     .description = "Lists telnet connections: there are none, since " REFUSAL ".",
     .input_schema = "{\"type\":\"object\",\"properties\":{\"session_id\":{\"type\":\"string\"}}}",
     .call = telnet_tool},
};

static void telnet_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const size_t tool = (size_t)(c->tool - interpreter_telnet_tools);

    out->structured = tool == 0
                          ? json_pack("{s:n, s:b, s:O?, s:O?, s:s, s:s}", "session_id", "connected",
                                      0, "host", json_object_get(c->arguments, "host"), "port",
                                      json_object_get(c->arguments, "port"), "initial_response", "",
                                      "error", REFUSAL)
                      : tool == 1 ? json_pack("{s:b, s:s, s:s}", "success", 0, "response", "",
                                              "error", REFUSAL)
                      : tool == 2 ? json_pack("{s:b, s:s}", "success", 0, "message", REFUSAL)
                                  : json_pack("{s:i, s:[]}", "count", 0, "connections");
}

#define S(i) &interpreter_session_tools[i]
#define F(i) &interpreter_file_tools[i]
#define T(i) &interpreter_telnet_tools[i]
#define C(i) &interpreter_chart_tools[i]

static const struct mcp_tool *const list[] = {
    S(0), S(1), S(2), S(3), S(4), &interpreter_package_tool,
    F(0), F(1), F(2), F(3), T(0), T(1),
    T(2), T(3), C(0), C(1), C(2), C(3),
    C(4),
};

const struct toolset profile_interpreter = {
    .name = "interpreter",
    .instructions =
        "Runs Python in sandboxes that keep their variables and files. create_sandbox begins one "
        "under a session_id of your choice, execute_code runs code in it, close_sandbox ends it. "
        "create_run_close does all three. The files are in the program's current directory.",
    .tools = list,
    .n_tools = ARRAY_LEN(list),
};
