/* Shows the files of a run: their media types, pictures as images, links to all. */
#ifndef SANDCGI_TOOLS_RUNS_RUN_FILES_H
#define SANDCGI_TOOLS_RUNS_RUN_FILES_H

#include "common/base/fds.h"
#include "common/mcp/features/tool.h"

#include <sys/stat.h>

/* The files of one run. All borrowed. */
struct run_files {
    const char *conversation;
    json_t *rows;             /* an array as in broker_run's result */
    const struct fds *opened; /* what came opened with it; NULL: nothing */
    bool brief; /* no file is looked into: there are no pictures, and types come from names */
};

/*
 * Adds mimeType to every row and puts pictures and links into *out. What cannot be read any more is
 * passed over: the files are in the hands of programs.
 */
void run_files_show(const struct mcp_tool_call *c, const struct run_files *files,
                    struct mcp_result *out);

/* The file of a row that has a url, for reading with pread: the one that came opened, else the
 * broker is asked. A descriptor of the caller's, or -1. */
int run_files_open(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                   struct stat *out, struct err *e);

#endif
