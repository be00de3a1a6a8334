/* Sends one message, given as text, to a server and keeps the answer. Linked by tests only. */
#pragma once

#include "common/mcp/server.h"

struct asked {
    struct mcp_answer answer;
    char *text; /* the body as compact JSON, "" when there is none */
};

/* Never fails: text that is no JSON is answered as such. Clear with asked_clear. */
struct asked ask(const struct mcp_server *server, const struct mcp_origin *origin,
                 const char *text);
void asked_clear(struct asked *a);
