/* The prompts themselves, for the list in prompts.c, and what they are put together from. */
#ifndef SANDCGI_TOOLS_PROMPTS_PROMPTS_H
#define SANDCGI_TOOLS_PROMPTS_PROMPTS_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/mcp/features/prompt.h"
#include "common/tools/tools.h"

extern const struct mcp_prompt prompt_analyse_data_file;
extern const struct mcp_prompt prompt_make_chart;
extern const struct mcp_prompt prompt_debug_program;

#define PROMPT_TEXT_MAX (1024u * 1024)

/* One user message with this text, as the array that mcp_prompt.get returns. NULL with ERR_LIMIT
 * when text is over its maximum. */
json_t *prompt_messages(const struct buf *text, struct err *e);

/* The argument's value; NULL when it is not given or empty. */
const char *prompt_argument(const struct mcp_prompt_call *call, const char *name);

/* Appends text as a fenced block whose fence text cannot close. */
void prompt_add_block(struct buf *out, const char *text, size_t len);

/*
 * Appends what is known of a file of the call's conversation: where it is, how large, how it
 * begins. ERR_INVALID, naming the argument, when the conversation has no such file; then with the
 * names of those it has.
 */
int prompt_add_file(const struct mcp_prompt_call *call, const char *conversation, const char *file,
                    struct buf *out, struct err *e);

/* Appends which tool to use, and how. */
void prompt_add_tool(const char *conversation, struct buf *out);

/* mcp_prompt.complete of all prompts: by the arguments' names. */
json_t *prompt_complete(void *app, const char *tenant, const char *argument, const char *value,
                        const json_t *context);

/* The arguments that several prompts have. */
#define PROMPT_CONVERSATION                                                                        \
    {                                                                                              \
        .name = "conversationId", .title = "Conversation",                                         \
        .help = "The conversationId whose sandbox holds the file.", .required = true               \
    }
#define PROMPT_FILE                                                                                \
    {                                                                                              \
        .name = "file", .title = "File", .help = "The file's name below /data, e.g. sales.csv.",   \
        .required = true                                                                           \
    }

#endif
