/*
 * The files of a run in a result: media types, links, and pictures as image content, so that a
 * model can look at them (gallery.h).
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/mcp/features/tool.h"

#include <sys/stat.h>

/* The files of one run. All borrowed. */
struct run_files {
    const char *conversation;
    json_t *rows;                 /* an array as in broker_run's result */
    const struct fds *open_files; /* files that came opened with the result; NULL: none */
    bool brief;                   /* no file is opened: no pictures, types by name only */
};

/* Adds mimeType to every row. Files that cannot be read are skipped here and elsewhere: programs
 * may have removed them. */
void run_files_type(const struct mcp_tool_call *c, const struct run_files *files);

/* Adds links to *out, and removes what is not for clients from the rows. */
void run_files_link(const struct run_files *files, struct mcp_result *out);

/* The file of a row that has a url, for pread. The caller closes it; -1. */
int run_files_open(const struct mcp_tool_call *c, const struct run_files *files, size_t row,
                   struct stat *out, struct err *e);
