/* The tools themselves, for the list in tools.c. */
#ifndef SANDCGI_TOOLS_LIST_H
#define SANDCGI_TOOLS_LIST_H

#include "common/mcp/features/tool.h"

extern const struct mcp_tool tool_upload_file;
extern const struct mcp_tool tool_create_upload;
extern const struct mcp_tool tool_import_url;
extern const struct mcp_tool tool_list_files;
extern const struct mcp_tool tool_read_file;
extern const struct mcp_tool tool_write_file;
extern const struct mcp_tool tool_move_file;
extern const struct mcp_tool tool_delete_file;
extern const struct mcp_tool tool_install_package;
extern const struct mcp_tool tool_run_code;
extern const struct mcp_tool tool_get_run;
extern const struct mcp_tool tool_cancel_run;
extern const struct mcp_tool tool_list_runs;
extern const struct mcp_tool tool_list_runners;
extern const struct mcp_tool tool_download_archive;
extern const struct mcp_tool tool_upload_archive;
extern const struct mcp_tool tool_create_sandbox;
extern const struct mcp_tool tool_exec;
extern const struct mcp_tool tool_get_sandbox_status;
extern const struct mcp_tool tool_close_sandbox;
extern const struct mcp_tool tool_reset_session;
extern const struct mcp_tool tool_delete_conversation;
extern const struct mcp_tool tool_copy_project;
extern const struct mcp_tool tool_copy_file;
extern const struct mcp_tool tool_copy_file_from_sandbox;

#endif
