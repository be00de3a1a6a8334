/* The tools themselves, for the list in tools.c. */
#ifndef SANDCGI_TOOLS_LIST_H
#define SANDCGI_TOOLS_LIST_H

#include "common/mcp/tool.h"

extern const struct mcp_tool tool_upload_file;
extern const struct mcp_tool tool_install_package;
extern const struct mcp_tool tool_run_code;
extern const struct mcp_tool tool_get_run;
extern const struct mcp_tool tool_cancel_run;
extern const struct mcp_tool tool_list_runs;
extern const struct mcp_tool tool_list_runners;

#endif
