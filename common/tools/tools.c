#include "config.h"

#include "common/tools/tools.h"

#include "common/base/auto.h"

#include <string.h>

/* In the order of tools/list, which is the order of use. A new tool has a row in its own file, a
 * name in list.h, and a line here. */
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

const struct mcp_tool *const *tools_all(size_t *n)
{
    *n = ARRAY_LEN(all);
    return all;
}

static const struct toolset *const theirs[TOOLSETS] = {
    [TOOLSET_RUNNER] = &profile_runner,
    [TOOLSET_SESSION] = &profile_session,
    [TOOLSET_CONTAINER] = &profile_container,
    [TOOLSET_INTERPRETER] = &profile_interpreter,
};

int toolset_find(const char *name)
{
    const char *at = TOOLSET_NAMES;

    for (int i = 0; i < TOOLSETS; i++) {
        size_t len = strcspn(at, "|");

        if (strlen(name) == len && memcmp(at, name, len) == 0)
            return i;
        at += len + 1;
    }
    return -1;
}

const struct toolset *toolset_theirs(int number)
{
    return theirs[number];
}
