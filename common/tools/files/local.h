/* What the tools have in common that work on files of the client's own machine (stdio only). */
#ifndef SANDCGI_TOOLS_FILES_LOCAL_H
#define SANDCGI_TOOLS_FILES_LOCAL_H

#include "common/mcp/features/tool.h"
#include "common/sandbox/files/local.h"

/*
 * The directories that may be used: those of SANDCGI_LOCAL_DIRS, and the client's roots if it has
 * some. 1 they are in *out; 0 the client has to be asked first, *need says what; -1: nothing is
 * allowed (ERR_DENIED).
 */
int local_allowed(const struct mcp_tool_call *c, struct local_dirs *out, struct mcp_need *need,
                  struct err *e);

#endif
