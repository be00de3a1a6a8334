/* Arguments that several tools have. */
#ifndef SANDCGI_TOOLS_CONVERSATION_ARGS_H
#define SANDCGI_TOOLS_CONVERSATION_ARGS_H

#include "common/tools/args.h"

#define CONVERSATION_MAX 256 /* bytes of a conversationId */
#define LANGUAGE_MAX     64
#define CONVERSATION_HELP                                                                          \
    "Names the sandbox: calls with the same value share the files in /data, other values have "    \
    "their own. Choose one unguessable value per conversation."

/* conversationId of a tool; its struct has the member conversation. */
#define CONVERSATION_ROW(arguments)                                                                \
    ARG_ROW(arguments, conversation, "conversationId", ARG_IDENTIFIER, .required = true,           \
            .max = CONVERSATION_MAX, .help = CONVERSATION_HELP)

/* waitMs of a tool that runs something; its struct has struct arg_integer wait_ms. */
#define RUN_WAIT_ROW(arguments)                                                                    \
    ARG_ROW(arguments, wait_ms, "waitMs", ARG_INTEGER, .max_setting = ARG_SETTING(wait_max_ms),    \
            .initial_setting = ARG_SETTING(wait_ms),                                               \
            .help = "Milliseconds after which the answer comes even if this still runs (status "   \
                    "running; get_run brings the rest). 0: wait to its end.")

#endif
