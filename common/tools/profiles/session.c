/* The set "session": its tools. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/content.h"
#include "common/tools/list.h"
#include "common/tools/profiles/session_call.h"
#include "common/tools/tools_app.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NAME_CHARS       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define FILENAME_LEN_MAX 255 /* the limit that its clients know */

/* A run that has just answered still holds its conversation for a moment. */
#define CLOSE_TIMEOUT_MS 1000

#define SESSION_ID(must)                                                                           \
    ARG_ROW(struct session_arguments, session, "session_id", ARG_STRING, .required = (must),       \
            .max = SESSION_ID_MAX, .help = "The session.")

static const struct arg_row session_upload_arguments[] = {
    ARG_ROW(struct session_arguments, filename, "filename", ARG_STRING, .required = true,
            .max = FILENAME_LEN_MAX, .help = "Letters, digits, '.', '_' and '-'."),
    ARG_ROW(struct session_arguments, content, "content_base64", ARG_BASE64, .required = true,
            .max_setting = ARG_SETTING(file_max), .help = "The file's content in base64."),
    SESSION_ID(false),
    ARG_ROW(struct session_arguments, overwrite, "overwrite", ARG_BOOL,
            .help = "Replace a file of that name."),
    {0},
};

static const struct arg_row session_read_arguments[] = {
    SESSION_ID(true),
    ARG_ROW(struct session_arguments, path, "path", ARG_STRING, .required = true,
            .max = sizeof(SESSION_FOLDER) + FILES_NAME_MAX,
            .help = "The file's path, which begins with " SESSION_FOLDER "."),
    {0},
};

static const struct arg_row session_id_arguments[] = {SESSION_ID(true), {0}};

/* ---- upload ---- */

static bool check_filename(const struct session_call *s)
{
    const char *name = s->a.filename;

    if (strstr(name, ".."))
        session_fail(s->out, "invalid_path", "filename must not contain '..'");
    else if (!*name || strlen(name) > FILENAME_LEN_MAX || name[strspn(name, NAME_CHARS)] ||
             strcmp(name, ".") == 0)
        session_fail(s->out, "invalid_filename",
                     "filename must be 1 to 255 letters, digits, '.', '_' and '-'");
    else
        return true;
    return false;
}

static void session_upload(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.invalid = "invalid_content"};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *written;

    if (!session_begin(&s, session_upload_arguments, false) || !check_filename(&s))
        return;
    json_t *arguments = json_pack(
        "{s:s, s:s, s:O, s:b}", "conversationId", s.id, "filename", s.a.filename, "base64",
        json_object_get(s.known, "content_base64"), "overwrite", s.a.overwrite);
    if (adapt_call(c, &tool_write_file, arguments, &inner, out, &written, &e) == 0)
        session_tell(out, json_pack("{s:s, s:o}", "session_id", s.id, "path",
                                    json_sprintf(SESSION_FOLDER "%s", s.a.filename)));
    else
        session_fail_err(out, &e, &codes);
}

/* ---- read ---- */

/* The name below the folder; NULL when the path leads elsewhere. */
static const char *name_of_path(const char *path)
{
    size_t len = strlen(SESSION_FOLDER);
    struct err e = ERR_INIT;

    if (strncmp(path, SESSION_FOLDER, len) != 0 ||
        files_check_name("path", path + len, strlen(path + len), &e) < 0)
        return NULL;
    return path + len;
}

static void tell_content(const struct session_call *s, const char *name, const char *type,
                         const struct buf *content)
{
    json_t *model = session_artifact(name, (json_int_t)content->len, type, NULL);

    json_object_del(model, "download_url");
    json_object_set_new(model, "content_base64", content_base64(content));
    session_tell(s->out, model);
}

static void session_read(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {
        .invalid = "not_found", .not_found = "not_found", .limit = "artifact_too_large"};
    const struct tools_app *app = c->app;
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_UNKNOWN};
    AUTO_BUF struct buf content = BUF_INIT((size_t)app->limits.file_max);
    const char *name, *type;
    struct err e = ERR_INIT;

    if (!session_begin(&s, session_read_arguments, true))
        return;
    name = name_of_path(s.a.path);
    if (!name) {
        session_fail(out, "invalid_path",
                     "path must be that of a file below " SESSION_FOLDER ", without '..'");
    } else if (content_read(app, c->tenant, s.id, name, &content, &type, &e) == 0) {
        tell_content(&s, name, type, &content);
    } else if (e.kind == ERR_LIMIT) { /* its size and its link instead */
        json_auto_t *row = content_find_row(c, s.id, name);
        session_tell(out, json_pack("{s:s, s:s, s:O?, s:O?}", "error", "artifact_too_large",
                                    "message", e.text, "size_bytes", json_object_get(row, "size"),
                                    "download_url", json_object_get(row, "url")));
    } else {
        session_fail_err(out, &e, &codes);
    }
}

/* ---- list ---- */

/* Adds the files at the top of the session that exist: those in folders have a slash in the name,
 * deleted ones have no url. */
static void add_artifacts(const json_t *files, json_t *artifacts)
{
    json_t *file;

    for (size_t i = 0; (file = json_array_get(files, i)); i++) {
        const char *name = json_get_string(file, "name");
        const char *url = json_get_string(file, "url");

        if (name && url && !strchr(name, '/'))
            json_array_append_new(artifacts,
                                  session_artifact(name, json_get_integer(file, "size", 0),
                                                   json_get_string(file, "mimeType"), url));
    }
}

static void session_list(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.not_found = SESSION_ID_UNKNOWN};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    json_auto_t *artifacts = json_array();
    struct err e = ERR_INIT;

    if (!session_begin(&s, session_id_arguments, true))
        return;
    if (adapt_list_folder(c, s.id, "", add_artifacts, artifacts, &e) == 0)
        session_tell(out, json_pack("{s:O}", "artifacts", artifacts));
    else
        session_fail_err(out, &e, &codes);
}

/* ---- close ---- */

static void session_close(const struct mcp_tool_call *c, struct mcp_result *out)
{
    static const struct session_codes codes = {.busy = "session_busy"};
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_UNKNOWN};
    struct err e = ERR_INIT;

    if (!session_begin(&s, session_id_arguments, true))
        return;
    if (adapt_delete(c, s.id, CLOSE_TIMEOUT_MS, &e) == 0)
        session_tell(out, json_pack("{s:s}", "status", "closed"));
    else
        session_fail_err(out, &e, &codes);
}

#define TIMEOUT_MS 60000
#define STDERR_MAX (32u * 1024 * 1024)

static const struct arg_row session_run_arguments[] = {
    ARG_ROW(struct session_arguments, code, "code", ARG_TEXT, .required = true,
            .max_setting = ARG_SETTING(code_max), .help = "The whole Python program."),
    ARG_ROW(struct session_arguments, session, "session_id", ARG_STRING, .max = SESSION_ID_MAX,
            .help = "The session to run in; a new one when absent."),
    {0},
};

/* The limit that its clients expect, within the operator's. */
static uint64_t timeout_of(const struct tools_app *app)
{
    return app->limits.timeout_max_ms < TIMEOUT_MS ? app->limits.timeout_max_ms : TIMEOUT_MS;
}

/* run_<time>_<the first digits of ours> */
static char *run_id_of(const json_t *result)
{
    const char *id = json_get_string(result, "runId"), *ours = id ? node_strip(id) : NULL;
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

/* The program's own stderr, and behind it what ended the program. */
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
    if (strcmp(status, "disk_limit") == 0) /* the limit, and what was removed */
        buf_addf(&all, ": %s",
                 json_string_value(json_array_get(json_object_get(result, "notices"), 0)));
    return json_from_bytes(buf_str(&all), all.len);
}

static void tell_run(const struct session_call *s, const json_t *result)
{
    const char *status = json_get_string(result, "status");
    AUTO_FREE char *run_id = run_id_of(result);
    json_t *artifacts = json_array();

    add_artifacts(json_object_get(result, "files"), artifacts);
    status = status ? status : "";
    session_tell(s->out,
                 json_pack("{s:s, s:s, s:I, s:O, s:o, s:b, s:b, s:o, s:I}", "session_id", s->id,
                           "run_id", run_id, "exit_code", exit_code_of(result, status), "stdout",
                           json_object_get(result, "stdout"), "stderr",
                           stderr_of(s->mcp->app, result, status), "stdout_truncated",
                           is_cut(result, "stdout"), "stderr_truncated", is_cut(result, "stderr"),
                           "artifacts", artifacts, "duration_ms",
                           json_get_integer(result, "durationMs", 0)));
}

/* An existing session is busy; a call without one found the server full. */
static const char *busy_code(const struct session_call *s)
{
    struct err e = ERR_INIT;

    return !s->a.session || session_exists(s, &e) == 0 ? "max_sessions" : "session_busy";
}

static void session_run(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_SESSION_CALL struct session_call s = {.mcp = c, .out = out, .bad_id = SESSION_ID_INVALID};
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    struct err e = ERR_INIT;
    json_t *result;

    if (!session_begin(&s, session_run_arguments, false))
        return;
    json_t *arguments = json_pack("{s:s, s:s, s:O, s:I}", "conversationId", s.id, "language",
                                  "python", "code", json_object_get(s.known, "code"), "timeoutMs",
                                  (json_int_t)timeout_of(c->app));
    if (adapt_call(c, &tool_run_code, arguments, &inner, out, &result, &e) < 0) {
        const struct session_codes codes = {.busy = e.kind == ERR_BUSY ? busy_code(&s) : NULL};
        if (e.kind != ERR_NONE)
            session_fail_err(out, &e, &codes);
    } else if (inner.is_error) {
        bool was_busy = strcmp(json_get_string(result, "status"), "busy") == 0;
        session_fail(out, was_busy ? busy_code(&s) : "execution_failed", mcp_result_text(&inner));
    } else {
        tell_run(&s, result);
    }
}

static char *describe_upload(void *app)
{
    const struct tools_app *a = app;

    return mem_printf("Puts a file of at most %" PRIu64 " bytes into a session, at " SESSION_FOLDER
                      "<filename>. A new session is made when session_id is absent; use its "
                      "session_id from then on.",
                      a->limits.file_max);
}

static const struct mcp_tool tools[] = {
    {.name = "sandbox_upload_file",
     .output_schema = schema_session_upload,
     .describe = describe_upload,
     .arguments = session_upload_arguments,
     .call = session_upload},
    {.name = "sandbox_run_python",
     .output_schema = schema_session_run,
     .description = "Runs a Python program in a session, without network, in " SESSION_FOLDER
                    ". Only files below that stay for later runs: variables, processes and /tmp "
                    "are gone after each. The files that it made or changed come back as "
                    "artifacts with a download_url. A new session is made when session_id is "
                    "absent.",
     .arguments = session_run_arguments,
     .call = session_run},
    {.name = "sandbox_read_artifact",
     .hints = {.read_only = true, .idempotent = true},
     .output_schema = schema_session_read,
     .description = "Reads a file of a session as base64. One that is too large to be read at once "
                    "has a download_url.",
     .arguments = session_read_arguments,
     .call = session_read},
    {.name = "sandbox_list_artifacts",
     .hints = {.read_only = true, .idempotent = true},
     .output_schema = schema_session_list,
     .description = "Lists the files at the top of a session's " SESSION_FOLDER ".",
     .arguments = session_id_arguments,
     .call = session_list},
    {.name = "sandbox_close_session",
     .hints = {.destructive = true},
     .frees = true,
     .output_schema = schema_session_close,
     .description = "Ends a session: its files are deleted.",
     .arguments = session_id_arguments,
     .call = session_close},
};

static const struct mcp_tool *const tool_list[] = {&tools[0], &tools[1], &tools[2], &tools[3],
                                                   &tools[4]};

const struct toolset profile_session = {
    .name = "session",
    .instructions = "Runs Python in sessions without network. Files in " SESSION_FOLDER
                    " stay with their session until sandbox_close_session deletes them. Call "
                    "sandbox_upload_file or sandbox_run_python without session_id to begin one.",
    .tools = tool_list,
    .n_tools = ARRAY_LEN(tool_list),
};
