/*
 * Texts that are files of their own: the JSON schemas of what the tools return (of what the chart
 * tools take), the steps of the prompts, and the program that draws charts. Each ends with a NUL.
 */
#ifndef SANDCGI_TOOLS_SCHEMAS_H
#define SANDCGI_TOOLS_SCHEMAS_H

extern const char schema_copy_file[], schema_copy_file_from_sandbox[], schema_copy_project[],
    schema_create_upload[], schema_delete_conversation[], schema_delete_file[],
    schema_download_archive[], schema_import_url[], schema_list_files[], schema_move_file[],
    schema_read_file[], schema_upload_archive[], schema_upload_file[], schema_write_file[],
    schema_bar_chart[], schema_heatmap[], schema_interactive_chart[], schema_line_chart[],
    schema_scatter_plot[], schema_session_close[], schema_session_list[], schema_session_read[],
    schema_session_run[], schema_session_upload[], schema_list_runners[], schema_list_runs[],
    schema_run[], schema_exec[], schema_get_sandbox_status[], schema_reset_session[],
    schema_sandbox[];
extern const char prompt_analyse_data_file[], prompt_debug_program[], prompt_make_chart[];
extern const char charts_py[];

#endif
