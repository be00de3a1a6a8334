/*
 * One message on its way through this layer, the JSON-RPC errors that refuse it, and the handlers
 * of all methods. Adding a method is a handler here and a row in handle.c.
 */
#pragma once

#include "common/mcp/revision.h"
#include "common/mcp/server.h"
#include "common/mcp/session/session.h"
#include "common/rpc/rpc.h"

#define MCP_META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER       "io.modelcontextprotocol/serverInfo"
#define MCP_META_LOG_LEVEL    "io.modelcontextprotocol/logLevel"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* Codes of MCP 2026-07-28; those of JSON-RPC are in rpc.h. */
enum mcp_code {
    MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
    MCP_HEADER_MISMATCH = -32020,
    MCP_MISSING_CAPABILITY = -32021,
    MCP_UNSUPPORTED_VERSION = -32022,
};

/* Why a message is answered with a JSON-RPC error. */
struct mcp_failure {
    int status; /* HTTP; 0: no failure */
    int code;
    char message[512];
    json_t *data; /* owned; NULL: none */
};

#define AUTO_MCP_FAILURE AUTO(mcp_failure_clear)

/* Fills *f; always returns -1, so that failing is one line. Takes data (may be NULL). */
int mcp_fail(struct mcp_failure *f, int status, int code, json_t *take_data, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* As mcp_fail with status 200: text, then name as the client wrote it, made harmless and cut. */
int mcp_fail_named(struct mcp_failure *f, int code, const char *text, const char *name);
void mcp_failure_clear(struct mcp_failure *f);
/* What the log says of one for which no reason was noted. */
const char *mcp_failure_reason(const struct mcp_failure *f);

struct mcp_era {
    enum mcp_revision revision;
    unsigned features; /* enum mcp_feature; those of the revision and of the place */
};

/* Everything is borrowed, except what failure holds. */
struct mcp_call {
    const struct mcp_server *server;
    const struct mcp_origin *origin;
    const json_t *id;                /* NULL for notifications */
    const json_t *params;            /* an object, or NULL */
    const struct mcp_method *method; /* NULL: not one of ours */
    const char *method_name;         /* as the client wrote it */
    struct mcp_era era;
    struct mcp_session *session; /* legacy, when the client named one; NULL: none */
    /* Of requests, for what a handler returns beside the result: session, listen. */
    struct mcp_answer *answer;
    const char *detail;           /* for the log, set by the handler: the tool's name */
    bool cancelled;               /* set by the handler: the client does not want the answer */
    const char *new_conversation; /* the name of the one that it begins; NULL: any */
    struct mcp_failure failure;
};

struct mcp_method {
    const char *name;
    unsigned revisions; /* MCP_REVISION_BIT mask of where it exists */
    enum rpc_kind kind;
    /* Requests: 0 with a new result, or -1 with call->failure. Notifications: out_result is NULL
     * and the return value is ignored; NULL for those that need nothing. */
    int (*handle)(struct mcp_call *call, json_t **out_result);
    const char *name_param; /* the member of params that the header Mcp-Name mirrors; NULL: none */
    /* Caching hints of the modern revision; scope NULL: results of this method carry none. */
    const char *cache_scope;
    int ttl_ms;
    enum mcp_routes_by routes_by;
    bool waits; /* perhaps: for the broker, a program or the user (mcp_stdio_client.hand_over) */
};

/* ---- for handlers ---- */

/* mcp_fail with status 200 and RPC_INVALID_PARAMS. */
int mcp_fail_params(struct mcp_call *call, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* mcp_fail with the text of *e: invalid params when the caller can mend it, else an internal error.
 */
int mcp_fail_err(struct mcp_call *call, const struct err *e);
/* Lists of one page: we never return a cursor, so any but the empty one is unknown. 0, or -1. */
int mcp_refuse_cursor(struct mcp_call *call);
/* features without those that the place does not have: see mcp_server.in_text. */
unsigned mcp_features_here(const struct mcp_server *server, const struct mcp_origin *origin,
                           unsigned features);
/* What the client declared; NULL: unknown. */
const json_t *mcp_call_capabilities(const struct mcp_call *call);
/* Remembers which value of mcp_server.named_argument a request names. */
void mcp_note_named(const struct mcp_call *call);
/* The values that the session has named lately, an array; NULL: none, or there is no session. */
const json_t *mcp_call_named(const struct mcp_call *call);

/* ---- the methods ---- */

/* session_methods.c */
int mcp_initialize(struct mcp_call *call, json_t **out_result);
int mcp_discover(struct mcp_call *call, json_t **out_result);
int mcp_ping(struct mcp_call *call, json_t **out_result);
int mcp_set_level(struct mcp_call *call, json_t **out_result);
int mcp_subscribe(struct mcp_call *call, json_t **out_result);
int mcp_unsubscribe(struct mcp_call *call, json_t **out_result);
int mcp_cancelled(struct mcp_call *call, json_t **out_result);
/* {name, version, title?} */
json_t *mcp_server_info_new(const struct mcp_server *server, unsigned features);

/* tool_methods.c */
int mcp_tools_list(struct mcp_call *call, json_t **out_result);
int mcp_tools_call(struct mcp_call *call, json_t **out_result);
/* Does a tools/call with these params end something? (mcp_frees) */
bool mcp_tool_frees(const struct mcp_server *server, const json_t *params);
/* The text of a whole result of tools/list, written once per set of features and kept until a tool
 * changes. result: what mcp_tools_list has just returned. Borrowed until the next call; NULL: no
 * cache, or too long. */
const struct buf *mcp_tools_cache_text(const struct mcp_server *server, unsigned features,
                                       const json_t *result);
/* Can the result of tools/list change while the server runs? */
bool mcp_tools_can_change(const struct mcp_server *server);

/* task.c */
int mcp_tasks_get(struct mcp_call *call, json_t **out_result);
int mcp_tasks_update(struct mcp_call *call, json_t **out_result);
int mcp_tasks_cancel(struct mcp_call *call, json_t **out_result);

/* offer_methods.c */
int mcp_resources_list(struct mcp_call *call, json_t **out_result);
int mcp_resources_templates(struct mcp_call *call, json_t **out_result);
int mcp_resources_read(struct mcp_call *call, json_t **out_result);
/* May this client subscribe to uri? */
bool mcp_resource_can_subscribe(const struct mcp_server *server, const char *tenant,
                                const char *uri);

/* offer_methods.c */
int mcp_prompts_list(struct mcp_call *call, json_t **out_result);
int mcp_prompts_get(struct mcp_call *call, json_t **out_result);
int mcp_complete(struct mcp_call *call, json_t **out_result);

/* listen.c */
int mcp_subscriptions_listen(struct mcp_call *call, json_t **out_result);
