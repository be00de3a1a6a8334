/* What the tools about one conversation's sandbox have in common. */
#ifndef SANDCGI_TOOLS_CONVERSATION_ARGS_H
#define SANDCGI_TOOLS_CONVERSATION_ARGS_H

#include "common/base/buf.h"
#include "common/tools/tools.h"

/* Bytes of a conversationId. */
#define CONVERSATION_MAX 256
#define CONVERSATION_HELP                                                                          \
    "Names the sandbox: calls with the same value share the files in /data, other values have "    \
    "their own. Choose one unguessable value per conversation."

/* waitMs of a tool that runs something; its struct has struct arg_integer wait_ms. */
#define RUN_WAIT_ROW(arguments)                                                                    \
    {                                                                                              \
        .name = "waitMs", .type = ARG_INTEGER, .offset = offsetof(arguments, wait_ms),             \
        .max_setting = ARG_SETTING(wait_max_ms), .initial_setting = ARG_SETTING(wait_ms),          \
        .help = "Milliseconds after which the answer comes even if this still runs (status "       \
                "running; get_run brings the rest). 0: wait to its end."                           \
    }

/* Appends which languages and libraries there are, for a description; nothing when that is not
 * known. */
void run_code_describe_languages(const struct tools_app *app, struct buf *out);

#endif
