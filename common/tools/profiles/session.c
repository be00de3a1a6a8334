/* The set "session": its list of tools. */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/list.h"
#include "common/tools/profiles/session.h"
#include "common/tools/schemas.h"

#include <inttypes.h>

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
     .output_schema = schema_session_close,
     .description = "Ends a session: its files are deleted.",
     .arguments = session_id_arguments,
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
