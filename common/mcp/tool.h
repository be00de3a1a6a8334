/*
 * What a tool is to this layer: a row with its texts and one function that answers a call. Tools
 * are constant; whatever changes at run time (the languages in a description) comes from app, which
 * they get handed each time.
 */
#ifndef SANDCGI_MCP_TOOL_H
#define SANDCGI_MCP_TOOL_H

#include "common/mcp/result.h"

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
    void *app; /* mcp_server.app */
    const char *tenant;
    int cancel_fd;           /* see mcp_origin */
    const json_t *arguments; /* an object, or NULL when the call has none */
};

struct mcp_tool {
    const char *name;
    const char *const *aliases; /* answered but not listed; ends with NULL; NULL: none */
    const char *title;
    struct mcp_hints hints;
    const char *output_schema; /* JSON text of an object schema */
    /* A heap string. */
    char *(*describe)(void *app);
    /* A new reference. */
    json_t *(*input_schema)(void *app);
    /* A number that grows when describe or input_schema would answer differently; NULL: they never
     * do. */
    uint64_t (*version)(void *app);
    /* Never fails: what goes wrong is told in *out (is_error). */
    void (*call)(const struct mcp_tool_call *call, struct mcp_result *out);
};

#endif
