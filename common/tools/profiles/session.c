/* The set "session": its list of tools. */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/profiles/profiles.h"
#include "common/tools/profiles/session.h"

#include <inttypes.h>

/* clang-format off */
/* Results are {"result": model or error}; clients of its kind unwrap that by the last member. */
#define RESULT_SCHEMA(required, properties) \
    "{\"type\":\"object\",\"required\":[\"result\"],\"properties\":{\"result\":{\"anyOf\":[" \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" properties "}}," \
    "{\"type\":\"object\",\"required\":[\"error\",\"message\"],\"properties\":{" \
    STRING("error") "," STRING("message") "," OPTIONAL("size_bytes", "integer") "," OPTIONAL("download_url", "string") \
    "}}]}},\"x-fastmcp-wrap-result\":true}"
#define STRING(name)         "\"" name "\":{\"type\":\"string\"}"
#define INTEGER(name)        "\"" name "\":{\"type\":\"integer\"}"
#define BOOLEAN(name)        "\"" name "\":{\"type\":\"boolean\"}"
#define OPTIONAL(name, type) "\"" name "\":{\"type\":[\"" type "\",\"null\"]}"
#define FILE_PARTS           STRING("path") "," STRING("filename") "," INTEGER("size_bytes") "," STRING("mime_type")
#define ARTIFACTS \
    "\"artifacts\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{" \
    FILE_PARTS "," OPTIONAL("download_url", "string") "}}}"

static const char upload_result[] = RESULT_SCHEMA(
    "\"session_id\",\"path\"", STRING("session_id") "," STRING("path"));
static const char run_result[] = RESULT_SCHEMA(
    "\"session_id\",\"run_id\",\"exit_code\",\"stdout\",\"stderr\",\"duration_ms\"",
    STRING("session_id") "," STRING("run_id") "," INTEGER("exit_code") "," STRING("stdout") "," STRING("stderr") ","
    BOOLEAN("stdout_truncated") "," BOOLEAN("stderr_truncated") "," ARTIFACTS "," INTEGER("duration_ms"));
static const char read_result[] = RESULT_SCHEMA(
    "\"path\",\"filename\",\"mime_type\",\"size_bytes\",\"content_base64\"", FILE_PARTS "," STRING("content_base64"));
static const char list_result[] = RESULT_SCHEMA("\"artifacts\"", ARTIFACTS);
static const char close_result[] = RESULT_SCHEMA("\"status\"", STRING("status"));
/* clang-format on */

static char *describe_upload(void *app)
{
    const struct tools_app *a = app;

    return mem_printf("Puts a file of at most %" PRIu64 " bytes into a session, at " SESSION_FOLDER
                      "<filename>. A new session is made when session_id is absent; use its "
                      "session_id from then on.",
                      a->limits.file_max);
}

static char *describe_run(void *app)
{
    (void)app;
    return mem_strdup("Runs a Python program in a session, without network, in " SESSION_FOLDER
                      ". Only files below that stay for later runs: variables, processes and /tmp "
                      "are gone after each. The files that it made or changed come back as "
                      "artifacts with a download_url. A new session is made when session_id is "
                      "absent.");
}

static char *describe_read(void *app)
{
    (void)app;
    return mem_strdup("Reads a file of a session as base64. One that is too large to be read at "
                      "once has a download_url.");
}

static char *describe_list(void *app)
{
    (void)app;
    return mem_strdup("Lists the files at the top of a session's " SESSION_FOLDER ".");
}

static char *describe_close(void *app)
{
    (void)app;
    return mem_strdup("Ends a session: its files are deleted.");
}

static json_t *upload_schema(void *app)
{
    return args_schema(session_upload_arguments, app);
}

static json_t *run_schema(void *app)
{
    return args_schema(session_run_arguments, app);
}

static json_t *read_schema(void *app)
{
    return args_schema(session_read_arguments, app);
}

static json_t *id_schema(void *app)
{
    return args_schema(session_id_arguments, app);
}

static const struct mcp_tool tools[] = {
    {.name = "sandbox_upload_file",
     .output_schema = upload_result,
     .describe = describe_upload,
     .input_schema = upload_schema,
     .call = session_upload},
    {.name = "sandbox_run_python",
     .output_schema = run_result,
     .describe = describe_run,
     .input_schema = run_schema,
     .call = session_run},
    {.name = "sandbox_read_artifact",
     .hints = {.read_only = true, .idempotent = true},
     .output_schema = read_result,
     .describe = describe_read,
     .input_schema = read_schema,
     .call = session_read},
    {.name = "sandbox_list_artifacts",
     .hints = {.read_only = true, .idempotent = true},
     .output_schema = list_result,
     .describe = describe_list,
     .input_schema = id_schema,
     .call = session_list},
    {.name = "sandbox_close_session",
     .hints = {.destructive = true},
     .output_schema = close_result,
     .describe = describe_close,
     .input_schema = id_schema,
     .call = session_close},
};

static const struct mcp_tool *const list[] = {&tools[0], &tools[1], &tools[2], &tools[3],
                                              &tools[4]};

const struct toolset profile_session = {
    .name = "session",
    .instructions = "Runs Python in sessions without network. Files in " SESSION_FOLDER
                    " stay with their session until sandbox_close_session deletes them. Call "
                    "sandbox_upload_file or sandbox_run_python without session_id to begin one.",
    .tools = list,
    .n_tools = ARRAY_LEN(list),
};
