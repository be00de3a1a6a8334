/* The content of files: read from a sandbox, decoded from an argument. */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/mcp/features/tool.h"
#include "common/tools/tools_app.h"

#include <stdbool.h>

/*
 * Reads a file whole; ERR_LIMIT over out->max, ERR_NOT_FOUND when there is none. *out_type is its
 * media type, borrowed until the next call.
 */
int content_read(const struct tools_app *app, const char *tenant, const char *conversation,
                 const char *name, struct buf *out, const char **out_type, struct err *e);

/* The first bytes only, at most out->max; *out_size is the file's size. */
int content_read_head(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *name, struct buf *out, uint64_t *out_size, const char **out_type,
                      struct err *e);

/* Decodes an argument of type ARG_BASE64, at most max bytes; errors name it. */
int content_decode(const char *argument, struct run_text base64, uint64_t max, struct buf *out,
                   struct err *e);

/* A descriptor of content in memory, at its start, since the broker takes content as a descriptor.
 * The caller closes it; -1. */
int content_fd(struct run_text content, struct err *e);

/* content in base64, as a string; new reference. */
json_t *content_base64(const struct buf *content);

/* A file's row of broker_list_folder: its size and url. New reference; NULL: not found. */
json_t *content_find_row(const struct mcp_tool_call *c, const char *conversation, const char *name);

/* Can it be shown as text: by its type, as valid UTF-8 without NULs, and both? */
bool content_type_is_text(const char *type);
bool content_is_plain(const char *data, size_t len);
bool content_is_text(const char *type, const struct buf *content);

/* ---- events for clients that listen: files of a sandbox changed ---- */

/* Whose files changed. */
struct changes {
    const struct mcp_server *server; /* for mcp_publish */
    const char *tenant, *conversation;
};

/* files: an array of objects with the member name, as in broker_run's result; empty or NULL:
 * no event. */
void changes_publish(const struct changes *c, const json_t *files);

/* One file. */
void changes_publish_file(const struct changes *c, const char *name);

/* All files of the conversation are gone. */
void changes_publish_list(const struct changes *c);

#define CHANGES_FOLDER_MAX 1000 /* files of a folder that have an event each */

/*
 * The files of a folder that is about to be removed or was just made, as changes_publish takes
 * them; empty when it is not a folder. New reference.
 */
json_t *changes_in_folder(const struct changes *c, const struct broker_client *client,
                          const char *folder);
