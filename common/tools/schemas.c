#include "config.h"

#include "common/base/embed.h"
#include "common/tools/list.h"

/* Paths are those of the source folder. */
#define TOOLS_EMBED(symbol, path) EMBED(symbol, TOOLS_SOURCES "/" path)

TOOLS_EMBED(schema_copy_file, "files/copy_file.json");
TOOLS_EMBED(schema_copy_file_from_sandbox, "files/copy_file_from_sandbox.json");
TOOLS_EMBED(schema_copy_project, "files/copy_project.json");
TOOLS_EMBED(schema_create_upload, "files/create_upload.json");
TOOLS_EMBED(schema_delete_conversation, "files/delete_conversation.json");
TOOLS_EMBED(schema_delete_file, "files/delete_file.json");
TOOLS_EMBED(schema_download_archive, "files/download_archive.json");
TOOLS_EMBED(schema_import_url, "files/import_url.json");
TOOLS_EMBED(schema_list_files, "files/list_files.json");
TOOLS_EMBED(schema_move_file, "files/move_file.json");
TOOLS_EMBED(schema_read_file, "files/read_file.json");
TOOLS_EMBED(schema_upload_archive, "files/upload_archive.json");
TOOLS_EMBED(schema_upload_file, "files/upload_file.json");
TOOLS_EMBED(schema_write_file, "files/write_file.json");
TOOLS_EMBED(schema_bar_chart, "profiles/bar_chart.json");
TOOLS_EMBED(schema_heatmap, "profiles/heatmap.json");
TOOLS_EMBED(schema_interactive_chart, "profiles/interactive_chart.json");
TOOLS_EMBED(schema_line_chart, "profiles/line_chart.json");
TOOLS_EMBED(schema_scatter_plot, "profiles/scatter_plot.json");
TOOLS_EMBED(schema_session_close, "profiles/session_close.json");
TOOLS_EMBED(schema_session_list, "profiles/session_list.json");
TOOLS_EMBED(schema_session_read, "profiles/session_read.json");
TOOLS_EMBED(schema_session_run, "profiles/session_run.json");
TOOLS_EMBED(schema_session_upload, "profiles/session_upload.json");
TOOLS_EMBED(schema_list_runners, "runs/list_runners.json");
TOOLS_EMBED(schema_list_runs, "runs/list_runs.json");
TOOLS_EMBED(schema_run, "runs/run.json");
TOOLS_EMBED(schema_get_sandbox_status, "sandboxes/get_sandbox_status.json");
TOOLS_EMBED(schema_reset_session, "sandboxes/reset_session.json");
TOOLS_EMBED(schema_sandbox, "sandboxes/sandbox.json");
TOOLS_EMBED(prompt_analyse_data_file, "prompts/analyse_data_file.md");
TOOLS_EMBED(prompt_debug_program, "prompts/debug_program.md");
TOOLS_EMBED(prompt_make_chart, "prompts/make_chart.md");
TOOLS_EMBED(charts_py, "profiles/charts.py");
