#include "config.h"

#include "common/tools/tools.h"

#include "common/base/auto.h"
#include "common/tools/broker_access.h"
#include "common/tools/list.h"

/* In the order of tools/list: as one uses them. A new tool is one file, one line in list.h and one
 * here. */
/* clang-format off */
static const struct mcp_tool *const all[] = {
    &tool_upload_file,
    &tool_create_upload,
    &tool_import_url,
    &tool_run_code,
    &tool_get_run,
    &tool_cancel_run,
    &tool_list_runs,
    &tool_list_files,
    &tool_read_file,
    &tool_write_file,
    &tool_move_file,
    &tool_delete_file,
    &tool_delete_conversation,
    &tool_download_archive,
    &tool_upload_archive,
    &tool_install_package,
    &tool_list_runners,
    &tool_create_sandbox,
    &tool_exec,
    &tool_get_sandbox_status,
    &tool_close_sandbox,
    &tool_reset_session,
    &tool_copy_project,
    &tool_copy_file,
    &tool_copy_file_from_sandbox,
};
/* clang-format on */

void tools_app_init(struct tools_app *app)
{
    app->cache = runners_cache_new();
}

void tools_app_clear(struct tools_app *app)
{
    runners_cache_free(app->cache);
    app->cache = NULL;
}

const struct mcp_tool *const *tools_all(size_t *n)
{
    *n = ARRAY_LEN(all);
    return all;
}
