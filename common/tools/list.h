/* The parts of the program that tools.c lists: tools, prompts, tasks, resources, and other servers'
 * sets of tools. */
#pragma once

#include "common/mcp/features/offer.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"
#include "common/mcp/server.h"
#include "common/tools/tools_app.h"

extern const struct mcp_tool tool_upload_file, tool_create_upload, tool_import_url, tool_list_files,
    tool_read_file, tool_write_file, tool_move_file, tool_delete_file, tool_delete_conversation,
    tool_download_archive, tool_upload_archive;
extern const struct mcp_tool tool_run_code, tool_get_run, tool_cancel_run, tool_list_runs,
    tool_list_runners, tool_install_package;
extern const struct mcp_tool tool_create_sandbox, tool_exec, tool_get_sandbox_status,
    tool_close_sandbox, tool_reset_session;
extern const struct mcp_tool tool_copy_project, tool_copy_file, tool_copy_file_from_sandbox;

extern const struct mcp_tasks tools_tasks;         /* runs, for clients with tasks (run_report.c) */
extern const struct mcp_resources tools_resources; /* files of the sandboxes (resources.c) */

/* All prompts in the order of prompts/list; *n of them (prompts.c). */
const struct mcp_prompt *const *tools_prompts(size_t *n);

/* A set of tools for the clients of another server: tables and adapters over our own tools. */
struct toolset {
    const char *name;
    const char *instructions;
    const struct mcp_tool *const *tools; /* in the order of tools/list */
    size_t n_tools;
    const struct mcp_resources *resources;
    const struct mcp_error_style *error_style;
};

extern const struct toolset profile_runner, profile_session, profile_container, profile_interpreter;

/*
 * Texts that are files of their own: the JSON schemas of what the tools return (of what the chart
 * tools take), the steps of the prompts, and the program that draws charts. Each ends with a NUL.
 */
extern const char schema_copy_file[], schema_copy_file_from_sandbox[], schema_copy_project[],
    schema_create_upload[], schema_delete_conversation[], schema_delete_file[],
    schema_download_archive[], schema_import_url[], schema_list_files[], schema_move_file[],
    schema_read_file[], schema_upload_archive[], schema_upload_file[], schema_write_file[],
    schema_bar_chart[], schema_heatmap[], schema_interactive_chart[], schema_line_chart[],
    schema_scatter_plot[], schema_session_close[], schema_session_list[], schema_session_read[],
    schema_session_run[], schema_session_upload[], schema_list_runners[], schema_list_runs[],
    schema_run[], schema_get_sandbox_status[], schema_reset_session[], schema_sandbox[];
extern const char prompt_analyse_data_file[], prompt_debug_program[], prompt_make_chart[];
extern const char charts_py[];

/* What the commands of a persistent sandbox printed, as a resource: containers://{id}/logs. */

/* Its resource template; new reference. */
json_t *sandbox_logs_template(void);

#define SANDBOX_LOGS_SCHEME "containers://" /* of their URIs */

/* The sandbox's id in a URI that begins so, on the heap; NULL: it has none. */
char *sandbox_logs_id(const char *uri);

/* As mcp_resources.read. ERR_NOT_FOUND, with one text for all URIs that are not this
 * tenant's. */
json_t *sandbox_logs_read(const struct tools_app *app, const char *tenant, const char *uri,
                          struct err *e);
