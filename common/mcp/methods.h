/*
 * The methods: one table with a row per method, and the functions behind it. Adding a method is one
 * function and one row.
 */
#ifndef SANDCGI_MCP_METHODS_H
#define SANDCGI_MCP_METHODS_H

#include "common/mcp/era.h"
#include "common/mcp/failure.h"
#include "common/mcp/server.h"
#include "common/mcp/session/session.h"
#include "common/rpc/rpc.h"

/* One message on its way; borrowed, except what failure holds. */
struct mcp_call {
    const struct mcp_server *server;
    const struct mcp_origin *origin;
    const json_t *id;                /* NULL for notifications */
    const json_t *params;            /* an object, or NULL */
    const struct mcp_method *method; /* NULL: not one of ours */
    const char *method_name;         /* as the client wrote it */
    struct era_verdict era;
    struct mcp_session *session; /* legacy, when the client named one; NULL: none */
    /* Of requests, for what a handler has to say beside the result: session, listen. */
    struct mcp_answer *answer;
    const char *detail; /* for the log, set by the handler: the tool's name */
    char trace[56];     /* the client's traceparent; "" none */
    bool cancelled;     /* set by the handler: nobody waits for the answer */
    struct mcp_failure failure;
};

struct mcp_method {
    const char *name;
    unsigned revisions; /* MCP_REVISION_BIT mask of where it exists */
    enum rpc_kind kind;
    /* Requests: 0 with a new result, or -1 with call->failure. Notifications: out_result is NULL
     * and the return value of no interest; NULL for those that need nothing. */
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

/* task_methods.c */
#define MCP_NO_SUCH_TASK "taskId: no such task (unknown, expired, or another client's)"
int mcp_tasks_get(struct mcp_call *call, json_t **out_result);
int mcp_tasks_update(struct mcp_call *call, json_t **out_result);
int mcp_tasks_cancel(struct mcp_call *call, json_t **out_result);
/* Has the client declared the extension, and do we have tasks? */
bool mcp_client_can_task(const struct mcp_call *call);
/* Refuses because it has not: HTTP 400, -32021. Always returns -1. */
int mcp_fail_no_tasks(struct mcp_call *call);

/* resource_methods.c */
int mcp_resources_list(struct mcp_call *call, json_t **out_result);
int mcp_resources_templates(struct mcp_call *call, json_t **out_result);
int mcp_resources_read(struct mcp_call *call, json_t **out_result);
/* May this client hear of changes of uri? */
bool mcp_resource_can_subscribe(const struct mcp_server *server, const char *tenant,
                                const char *uri);

/* prompt_methods.c */
int mcp_prompts_list(struct mcp_call *call, json_t **out_result);
int mcp_prompts_get(struct mcp_call *call, json_t **out_result);
const struct mcp_prompt *mcp_prompt_find(const struct mcp_server *server, const json_t *name);

/* complete.c */
int mcp_complete(struct mcp_call *call, json_t **out_result);

/* session_methods.c */
int mcp_set_level(struct mcp_call *call, json_t **out_result);
int mcp_subscribe(struct mcp_call *call, json_t **out_result);
int mcp_unsubscribe(struct mcp_call *call, json_t **out_result);
int mcp_cancelled(struct mcp_call *call, json_t **out_result);

/* listen.c */
int mcp_subscriptions_listen(struct mcp_call *call, json_t **out_result);

/* Lists of one page: we never hand out a cursor, so any but the empty one is made up. 0, or -1 with
 * call->failure. */
int mcp_refuse_cursor(struct mcp_call *call);

#endif
