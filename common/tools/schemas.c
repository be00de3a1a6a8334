#include "config.h"

#include "common/tools/list.h"

/* The bytes of a file, with a NUL behind them. Paths are those of the source folder. */
#define EMBED(symbol, path)                                                                        \
    __asm__(".pushsection .rodata\n"                                                               \
            ".global " #symbol "\n" #symbol ": .incbin \"" TOOLS_SOURCES "/" path "\"\n"           \
            ".byte 0\n"                                                                            \
            ".popsection\n")

EMBED(schema_copy_file, "files/copy_file.json");
EMBED(schema_copy_file_from_sandbox, "files/copy_file_from_sandbox.json");
EMBED(schema_copy_project, "files/copy_project.json");
EMBED(schema_create_upload, "files/create_upload.json");
EMBED(schema_delete_conversation, "files/delete_conversation.json");
EMBED(schema_delete_file, "files/delete_file.json");
EMBED(schema_download_archive, "files/download_archive.json");
EMBED(schema_import_url, "files/import_url.json");
EMBED(schema_list_files, "files/list_files.json");
EMBED(schema_move_file, "files/move_file.json");
EMBED(schema_read_file, "files/read_file.json");
EMBED(schema_upload_archive, "files/upload_archive.json");
EMBED(schema_upload_file, "files/upload_file.json");
EMBED(schema_write_file, "files/write_file.json");
EMBED(schema_bar_chart, "profiles/bar_chart.json");
EMBED(schema_heatmap, "profiles/heatmap.json");
EMBED(schema_interactive_chart, "profiles/interactive_chart.json");
EMBED(schema_line_chart, "profiles/line_chart.json");
EMBED(schema_scatter_plot, "profiles/scatter_plot.json");
EMBED(schema_session_close, "profiles/session_close.json");
EMBED(schema_session_list, "profiles/session_list.json");
EMBED(schema_session_read, "profiles/session_read.json");
EMBED(schema_session_run, "profiles/session_run.json");
EMBED(schema_session_upload, "profiles/session_upload.json");
EMBED(schema_list_runners, "runs/list_runners.json");
EMBED(schema_list_runs, "runs/list_runs.json");
EMBED(schema_run, "runs/run.json");
EMBED(schema_get_sandbox_status, "sandboxes/get_sandbox_status.json");
EMBED(schema_reset_session, "sandboxes/reset_session.json");
EMBED(schema_sandbox, "sandboxes/sandbox.json");
EMBED(prompt_analyse_data_file, "prompts/analyse_data_file.md");
EMBED(prompt_debug_program, "prompts/debug_program.md");
EMBED(prompt_make_chart, "prompts/make_chart.md");
EMBED(charts_py, "profiles/charts.py");
