/* Shows the files of a run: their media types, pictures as images, links to all. */
#ifndef SANDCGI_TOOLS_RUN_FILES_H
#define SANDCGI_TOOLS_RUN_FILES_H

#include "common/mcp/tool.h"

/*
 * Adds mimeType to every entry of files (an array as in broker_run's result) and puts pictures and
 * links into *out. What cannot be read any more is passed over: the files are in the hands of
 * programs. brief: no file is opened, so there are no pictures, and types come from names.
 */
void run_files_show(const struct mcp_tool_call *c, const char *conversation, json_t *files,
                    bool brief, struct mcp_result *out);

#endif
