/* Tells those who listen that files of a sandbox changed. */
#ifndef SANDCGI_TOOLS_CHANGES_H
#define SANDCGI_TOOLS_CHANGES_H

#include "common/mcp/tool.h"

/* files: an array of objects with the member name, as in broker_run's result; empty or NULL:
 * nothing happened. */
void changes_tell(const struct mcp_tool_call *c, const char *conversation, const json_t *files);

/* One file. */
void changes_tell_file(const struct mcp_tool_call *c, const char *conversation, const char *name);

#endif
