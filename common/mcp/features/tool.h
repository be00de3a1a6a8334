/*
 * What a tool is to this layer: a row with its texts and one function that answers a call. Tools
 * are constant; whatever changes at run time (the languages in a description) comes from app, which
 * they get handed each time.
 */
#ifndef SANDCGI_MCP_FEATURES_TOOL_H
#define SANDCGI_MCP_FEATURES_TOOL_H

#include "common/mcp/client/elicitation.h"
#include "common/mcp/client/notify.h"
#include "common/mcp/features/result.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Tool annotations, 2025-03-26 and later: hints for clients that ask their user before a call. */
struct mcp_hints {
    bool read_only;
    bool destructive;
    bool idempotent;
    bool open_world;
};

/* Everything is borrowed and valid during the call only. */
struct mcp_tool_call {
    const struct mcp_server *server; /* for mcp_publish (event.h) */
    void *app;                       /* mcp_server.app */
    const char *tenant;
    int cancel_fd; /* hangs up when the client wants no more of this; -1: cannot be */
    /* Hangs up when the client has left, which is no wish to cancel (legacy HTTP); -1: none. */
    int leave_fd;
    const json_t *arguments;     /* an object, or NULL when the call has none */
    const struct mcp_ask *ask;   /* what the client can do, what its user answered; may be NULL */
    struct mcp_channel *channel; /* for notify.h; NULL: nobody listens */
    bool lone;         /* its client goes when this process does, and the other way round (stdio) */
    bool can_task;     /* may the answer be a task (mcp_result.task)? */
    const char *trace; /* W3C traceparent for logs; NULL: none */
};

/* Where a tool is offered. */
enum mcp_reach {
    MCP_REACH_ALL,
    MCP_REACH_HTTP,  /* it needs a web server */
    MCP_REACH_LOCAL, /* it works on the client's own files: stdio only */
};

struct mcp_tool {
    const char *name;
    const char *const *aliases; /* answered but not listed; ends with NULL; NULL: none */
    const char *title;
    struct mcp_hints hints;
    enum mcp_reach reach;
    const char *output_schema; /* JSON text of an object schema; NULL: none */
    /* Methods ("elicitation/create") without which it cannot do anything: calls of clients that
     * cannot be asked so are refused. Ends with NULL; NULL: none. */
    const char *const *requires;
    bool task_required;     /* its work is a task, or not done at all */
    bool mirrors_arguments; /* input_schema has x-mcp-header: headers are compared with arguments */
    /* A heap string. */
    char *(*describe)(void *app);
    /* A new reference. */
    json_t *(*input_schema)(void *app);
    /* A number that grows when describe or input_schema would answer differently; NULL: they never
     * do. */
    uint64_t (*version)(void *app);
    /* Never fails: what goes wrong is told in *out (is_error). May be called several times for one
     * request: see mcp_result.need. */
    void (*call)(const struct mcp_tool_call *call, struct mcp_result *out);
};

#endif
