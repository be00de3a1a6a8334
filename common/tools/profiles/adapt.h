/*
 * Shared by the profiles. A tool of a profile reads its arguments by a table as ours do, calls one
 * of our tools with arguments made from them, and returns the outcome in its server's shape:
 * limits, consent, progress and events are those of our tool.
 */
#pragma once

#include "common/mcp/features/tool.h"
#include "common/tools/args.h"

/* The call's arguments that the table has; new reference. */
json_t *adapt_known(const struct arg_row *table, const json_t *arguments);

/* As args_fill, but arguments that are not in the table are ignored, as those servers do.
 * *out_known (owned by the caller) holds the strings of *out. */
int adapt_fill(const struct arg_row *table, const struct mcp_tool_call *c, void *out,
               json_t **out_known, struct err *e);

/*
 * Calls one of our tools for c with these arguments (taken; members that are null are left out).
 * 0 with its result's object (borrowed from *inner), or -1 with what went wrong in *e; while the
 * user is being asked, -1 with ERR_NONE, and what to ask has moved to out. Clear *inner in any
 * case.
 */
int adapt_call(const struct mcp_tool_call *c, const struct mcp_tool *tool, json_t *take_arguments,
               struct mcp_result *inner, struct mcp_result *out, json_t **out_object,
               struct err *e);

/*
 * The name below the sandbox's directory that path means there: roots (ends with NULL) are the
 * places at which that directory is seen, "/" among them if every path is below it. Empty for the
 * directory itself; heap. NULL with ERR_INVALID when path leads elsewhere.
 */
char *adapt_name(const char *path, const char *const *roots, struct err *e);

/* Calls add with the rows of each page of a folder ("": /data); stops after 20,000 files. */
int adapt_list_folder(const struct mcp_tool_call *c, const char *conversation, const char *folder,
                      void (*add)(const json_t *files, json_t *list), json_t *list, struct err *e);

/*
 * Deletes a conversation, and retries for timeout_ms while something that has just ended holds it
 * (ERR_BUSY). 0 also when there is none.
 */
int adapt_delete(const struct mcp_tool_call *c, const char *conversation, int timeout_ms,
                 struct err *e);

/* The object as the text of the only block, in one line or with two blanks per level. */
void adapt_tell_text(struct mcp_result *out, json_t *take_object, bool pretty);

/* A sentence as a block of text. */
void adapt_tell(struct mcp_result *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
