/* What a process with one client (stdio) remembers between messages; one struct on the front end's
 * stack. */
#ifndef SANDCGI_MCP_PIN_H
#define SANDCGI_MCP_PIN_H

#include <jansson.h>
#include <stdbool.h>

struct mcp_pin {
    bool modern;            /* a modern request was seen: initialize comes too late */
    const char *negotiated; /* the revision that initialize agreed on, a literal; NULL: none yet */
    json_t *capabilities;   /* of the client, legacy; owned */
    int log_level;          /* legacy logging/setLevel; -1: not set */
    json_t *subscriptions;  /* legacy resources/subscribe: array of URIs; owned */
    unsigned next_request;  /* ids of requests to the client */
    /* Reads the client's next message (a response we wait for, or something else to be answered
     * later); NULL at the end. */
    json_t *(*next_message)(void *ctx, int timeout_ms);
    void *ctx;
};

#endif
