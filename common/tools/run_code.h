/* What the tools about one conversation's sandbox have in common. */
#ifndef SANDCGI_TOOLS_RUN_CODE_H
#define SANDCGI_TOOLS_RUN_CODE_H

/* Bytes of a conversationId. */
#define CONVERSATION_MAX 256
#define CONVERSATION_HELP                                                                          \
    "Names the sandbox: calls with the same value share the files in /data, other values have "    \
    "their own. Choose one unguessable value per conversation."

#endif
