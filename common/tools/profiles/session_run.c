/* sandbox_run_python: our run_code, told as a run of a session. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_MS 60000
#define STDERR_MAX (32u * 1024 * 1024)

const struct arg_row session_run_arguments[] = {
    ARG_ROW(struct session_arguments, code, "code", ARG_TEXT, .required = true,
            .max_setting = ARG_SETTING(code_max), .help = "The whole Python program."),
    ARG_ROW(struct session_arguments, session, "session_id", ARG_STRING, .max = SESSION_ID_MAX,
            .help = "The session to run in; a new one when absent."),
    {0},
};

/* As long as its clients expect, where the operator allows it. */
static uint64_t timeout_of(const struct tools_app *app)
{
    return app->limits.timeout_max_ms < TIMEOUT_MS ? app->limits.timeout_max_ms : TIMEOUT_MS;
}

/* run_<time>_<the first digits of ours> */
static char *run_id_of(const json_t *result)
{
    const char *ours = json_get_string(result, "runId");
    time_t now = (time_t)clock_unix_s();
    struct tm tm;
    char when[40];

    gmtime_r(&now, &tm);
    strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
    return mem_printf("run_%s_%.4s", when, ours && strlen(ours) >= 4 ? ours : "0000");
}

static bool is_cut(const json_t *result, const char *stream)
{
    const json_t *truncation = json_object_get(result, "truncation");

    return json_is_true(json_object_get(json_object_get(truncation, stream), "truncated"));
}

static json_int_t exit_code_of(const json_t *result, const char *status)
{
    if (strcmp(status, "timeout") == 0)
        return -1;
    if (json_is_integer(json_object_get(result, "exitCode")))
        return json_get_integer(result, "exitCode", 0);
    return 128 + json_get_integer(result, "signal", 9); /* as a shell says it */
}

/* What ended the program, behind what it wrote itself. */
static json_t *stderr_of(const struct tools_app *app, const json_t *result, const char *status)
{
    json_t *text = json_object_get(result, "stderr");
    size_t len = json_string_length(text);
    AUTO_BUF struct buf all = BUF_INIT(STDERR_MAX);

    if (strcmp(status, "ok") == 0 || strcmp(status, "error") == 0)
        return json_incref(text); /* shared with the inner result, never changed */
    buf_add(&all, json_string_value(text), len);
    if (len > 0 && buf_str(&all)[len - 1] != '\n')
        buf_add_char(&all, '\n');
    if (strcmp(status, "timeout") == 0)
        buf_addf(&all, "Execution timed out after %" PRIu64 "s", timeout_of(app) / 1000);
    else
        buf_addf(&all, "The program was ended (%s)", status);
    return json_from_bytes(buf_str(&all), all.len);
}

static json_t *artifacts_of(const json_t *files)
{
    json_t *artifacts = json_array();
    size_t i;
    json_t *file;

    json_array_foreach(files, i, file)
    {
        const char *name = json_get_string(file, "name");
        const char *url = json_get_string(file, "url");

        if (name && url && !strchr(name, '/')) /* not those of folders, nor deleted ones */
            json_array_append_new(artifacts,
                                  session_artifact(name, json_get_integer(file, "size", 0),
                                                   json_get_string(file, "mimeType"), url));
    }
    return artifacts;
}

static void tell_run(const struct session_call *s, const json_t *result)
{
    const char *status = json_get_string(result, "status");
    AUTO_FREE char *run_id = run_id_of(result);

    status = status ? status : "";
    session_tell(s->out,
                 json_pack("{s:s, s:s, s:I, s:O, s:o, s:b, s:b, s:o, s:I}", "session_id", s->id,
                           "run_id", run_id, "exit_code", exit_code_of(result, status), "stdout",
                           json_object_get(result, "stdout"), "stderr",
                           stderr_of(s->mcp->app, result, status), "stdout_truncated",
                           is_cut(result, "stdout"), "stderr_truncated", is_cut(result, "stderr"),
                           "artifacts", artifacts_of(json_object_get(result, "files")),
                           "duration_ms", json_get_integer(result, "durationMs", 0)));
}

/* Who has a session may try again; without one it is the server that is full. */
static const char *busy_code(const struct session_call *s)
{
    struct err e = ERR_INIT;

    return !s->a.session || session_exists(s, &e) == 0 ? "max_sessions" : "session_busy";
}

static void tell_failure(const struct session_call *s, const struct err *e)
{
    const struct session_codes codes = {.busy = e->kind == ERR_BUSY ? busy_code(s) : NULL};

    session_fail_err(s->out, e, &codes);
}

void session_run(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    struct err e = ERR_INIT;
    json_t *result;

    if (!session_begin(&s, session_run_arguments, false))
        return;
    json_t *arguments = json_pack("{s:s, s:s, s:O, s:i, s:I}", "conversationId", s.id, "language",
                                  "python", "code", json_object_get(s.known, "code"), "waitMs", 0,
                                  "timeout", (json_int_t)(timeout_of(c->app) / 1000));
    if (adapt_call(c, &tool_run_code, arguments, &inner, out, &result, &e) < 0) {
        if (e.kind != ERR_NONE)
            tell_failure(&s, &e);
    } else if (inner.is_error) {
        bool was_busy = strcmp(json_get_string(result, "status"), "busy") == 0;
        session_fail(out, was_busy ? busy_code(&s) : "execution_failed", mcp_result_text(&inner));
    } else {
        tell_run(&s, result);
    }
}
