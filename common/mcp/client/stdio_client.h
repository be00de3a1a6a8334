/* What a process with one client (stdio) remembers between messages; one struct on the front end's
 * stack. */
#ifndef SANDCGI_MCP_CLIENT_STDIO_CLIENT_H
#define SANDCGI_MCP_CLIENT_STDIO_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

struct mcp_stdio_client {
    bool modern;            /* a modern request was seen: initialize comes too late */
    const char *negotiated; /* the revision that initialize agreed on, a literal; NULL: none yet */
    json_t *capabilities;   /* of the client, legacy; owned */
    int log_level;          /* legacy logging/setLevel (enum mcp_log_level); -1: not set */
    json_t *subscriptions;  /* legacy resources/subscribe: array of URIs; owned */
    unsigned next_request;  /* ids of requests to the client */
    /*
     * Waits for the client's next response (a message without a method; new reference). All other
     * messages the front end keeps for later, and notifications/cancelled about the current request
     * it shows on mcp_origin.cancel_fd. NULL at the end of input, after timeout_ms, or as soon as
     * the request was cancelled. NULL function: the client cannot be asked.
     */
    json_t *(*next_message)(void *ctx, int timeout_ms);
    void *ctx;
};

#define MCP_STDIO_CLIENT_INIT                                                                      \
    {                                                                                              \
        .log_level = -1                                                                            \
    }

void mcp_stdio_client_clear(struct mcp_stdio_client *stdio_client);

#endif
