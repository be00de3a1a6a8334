/*
 * The methods: one table with a row per method, and the functions behind it. Adding a method is one
 * function and one row.
 */
#ifndef SANDCGI_MCP_METHODS_H
#define SANDCGI_MCP_METHODS_H

#include "common/mcp/era.h"
#include "common/mcp/failure.h"
#include "common/mcp/server.h"
#include "common/rpc/rpc.h"

/* One message on its way; borrowed, except what failure holds. */
struct mcp_call {
    const struct mcp_server *server;
    const struct mcp_origin *origin;
    const json_t *params; /* an object, or NULL */
    struct era_verdict era;
    const char *detail; /* for the log, set by the handler: the tool's name */
    struct mcp_failure failure;
};

struct mcp_method {
    const char *name;
    unsigned revisions; /* MCP_REVISION_BIT mask of where it exists */
    enum rpc_kind kind;
    /* Requests: 0 with a new result, or -1 with call->failure. Notifications: NULL, they are
     * accepted and need nothing. */
    int (*handle)(struct mcp_call *call, json_t **out_result);
    const char *name_param; /* the member of params that the header Mcp-Name mirrors; NULL: none */
    /* Caching hints of the modern revision; scope NULL: results of this method carry none. */
    const char *cache_scope;
    int ttl_ms;
};

/* NULL when no revision has it. */
const struct mcp_method *mcp_method_find(const char *name);

/* lifecycle.c */
int mcp_initialize(struct mcp_call *call, json_t **out_result);
int mcp_discover(struct mcp_call *call, json_t **out_result);
int mcp_ping(struct mcp_call *call, json_t **out_result);
/* {name, version, title?} */
json_t *mcp_server_info_new(const struct mcp_server *server, unsigned features);

/* tool_methods.c */
int mcp_tools_list(struct mcp_call *call, json_t **out_result);
int mcp_tools_call(struct mcp_call *call, json_t **out_result);

#endif
