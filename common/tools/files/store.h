/* Content that a call brings and that becomes a file of a sandbox. */
#ifndef SANDCGI_TOOLS_FILES_STORE_H
#define SANDCGI_TOOLS_FILES_STORE_H

#include "common/base/buf.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/run.h"

#include <stdbool.h>

struct store {
    const char *conversation;
    const char *filename; /* checked here; errors call it "filename" */
    struct run_text content;
    bool replace; /* what is there of that name; else ERR_EXISTS */
};

/* Decodes an argument of type ARG_BASE64, at most max bytes; errors name it. */
int store_decode(const char *argument, struct run_text base64, uint64_t max, struct buf *out,
                 struct err *e);

/* An anonymous file in memory that holds content, to be read from its start, since the broker takes
 * content as a descriptor. Returns it, or -1. */
int store_fd(struct run_text content, struct err *e);

/* Stores the file, tells those who listen, adds a link to it to *out. {name, size, url, mimeType};
 * new reference, or NULL. */
json_t *store_file(const struct mcp_tool_call *c, const struct store *s, struct mcp_result *out,
                   struct err *e);

/* Moves what the broker said with the file, but about its conversation (filesExpireAt, notices),
 * to result; the sentences among it become text blocks. */
void store_add_retention(json_t *file, json_t *result, struct mcp_result *out);

#endif
