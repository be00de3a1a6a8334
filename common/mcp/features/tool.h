/*
 * A tool: a row of texts, tables and one function that answers a call. Tools are constant; what
 * changes at run time (the languages in a description) comes from app.
 */
#pragma once

#include "common/mcp/client/elicitation.h"
#include "common/mcp/client/notify.h"
#include "common/mcp/features/result.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct arg_row;

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
    const struct mcp_tool *tool;     /* the one that is called */
    void *app;                       /* mcp_server.app */
    const char *tenant;
    const char *network; /* of mcp_origin, as the next */
    const char *reuse;
    const char *new_conversation; /* the name of the one that it begins; NULL, "": any */
    int cancel_fd;                /* hangs up when the call is cancelled; -1: it cannot be */
    /* Hangs up when the client has left without cancelling (legacy HTTP); -1: none. */
    int leave_fd;
    const json_t *arguments; /* an object, or NULL when the call has none */
    const struct mcp_elicitation
        *elicitation;            /* what the client can do, what its user answered; may be NULL */
    struct mcp_channel *channel; /* for notify.h; NULL: no client listens */
    bool single_client;          /* stdio: the client and this process end together */
    bool can_task;               /* may the answer be a task (mcp_result.task)? */
    bool to_its_end;             /* for another server's tool: what it runs is waited for, however
                                    long that takes, and pictures are not shown */
    bool in_text;                /* a model reads the result: MCP_IN_TEXT */
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
    const char *description;      /* NULL: describe makes it */
    char *(*describe)(void *app); /* a heap string */
    struct mcp_hints hints;
    enum mcp_reach reach;
    bool (*offered)(void *app); /* do the settings allow it? NULL: always */
    /* Its arguments: a table that mcp_server.arguments reads, and the size of the struct that it
     * fills; or JSON text of an object schema. */
    const struct arg_row *arguments;
    size_t arguments_size;
    const char *input_schema;
    const char *output_schema; /* JSON text of an object schema; NULL: none */
    /* Methods ("elicitation/create") that it depends on: calls of clients that do not support them
     * are refused. Ends with NULL; NULL: none. */
    const char *const *requires;
    bool frees;             /* it ends or removes something of the caller's: see mcp_frees */
    bool task_required;     /* only for clients that support tasks */
    bool mirrors_arguments; /* input_schema has x-mcp-header: headers are compared with arguments */
    /* A number that grows when the description or the input schema changes; NULL: they never do. */
    uint64_t (*version)(void *app);
    /*
     * A call: run gets the struct that the table has filled, and returns 0, or -1 with *e; call
     * reads the arguments itself and never fails: errors are in *out (is_error). Either may be
     * called several times for one request: see mcp_result.need.
     */
    int (*run)(const struct mcp_tool_call *call, void *arguments, struct mcp_result *out,
               struct err *e);
    void (*call)(const struct mcp_tool_call *call, struct mcp_result *out);
};

/* How argument tables are read; the table's form is the tools' own. */
struct mcp_arguments {
    /* The JSON schema of a table for a place with these features; a new reference. */
    json_t *(*schema)(const struct arg_row *table, void *app, unsigned features);
    /* Calls call->tool, which has run. */
    void (*call)(const struct mcp_tool_call *call, struct mcp_result *out);
};

/* For mcp_server.tools_cache. */
struct mcp_tools_cache *mcp_tools_cache_new(void);
void mcp_tools_cache_free(struct mcp_tools_cache *l);

/* The tool that a tools/call with these params is about; NULL: the server has none of that name. */
const struct mcp_tool *mcp_tool_called(const struct mcp_server *server, const json_t *params);
