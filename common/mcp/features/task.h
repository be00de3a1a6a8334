/*
 * Work that outlives its call: the extension io.modelcontextprotocol/tasks of modern clients. A
 * tool that finds its work takes long gives a task instead of its result (mcp_result.task); the
 * client asks for it by its id from then on (tasks/get, tasks/update, tasks/cancel), or hears of
 * its end through subscriptions/listen (MCP_EVENT_TASK). Where tasks live is the app's business:
 * struct mcp_tasks.
 */
#ifndef SANDCGI_MCP_FEATURES_TASK_H
#define SANDCGI_MCP_FEATURES_TASK_H

#include "common/base/err.h"
#include "common/mcp/features/tool.h"

#define MCP_EXTENSION_TASKS "io.modelcontextprotocol/tasks"
#define MCP_TASK_ID_MAX     128
#define MCP_TASK_IDS_MAX    64 /* of one subscriptions/listen */

enum mcp_task_status {
    MCP_TASK_WORKING,
    MCP_TASK_INPUT, /* its client's user has to answer first */
    MCP_TASK_COMPLETED,
    MCP_TASK_FAILED,
    MCP_TASK_CANCELLED,
};

struct mcp_task {
    char id[MCP_TASK_ID_MAX + 1]; /* unguessable */
    enum mcp_task_status status;
    char *message;                  /* for people; of FAILED the error's; owned; NULL: none */
    int64_t created_ms, updated_ms; /* Unix time */
    int64_t ttl_ms;                 /* kept so long from created_ms on; 0: nobody knows */
    int poll_ms;                    /* how often to look; 0: not told */
    json_t *requests;               /* of INPUT: object key → {method, params}; owned */
    struct mcp_result result;       /* of COMPLETED */
    int code;                       /* of FAILED: JSON-RPC's */
};

#define AUTO_MCP_TASK AUTO(mcp_task_clear)

struct mcp_task *mcp_task_new(const char *id);
void mcp_task_clear(struct mcp_task *t);
void mcp_task_free(struct mcp_task *t); /* NULL is fine */

/* All get a call with server, app, tenant, cancel_fd and way; id is hostile text of at most
 * MCP_TASK_ID_MAX bytes. An unknown, expired or foreign id is ERR_NOT_FOUND with one text for all;
 * other texts are fit for clients. */
struct mcp_tasks {
    /* Fills *out, which is empty. brief: for a notification to many: nothing that takes long. */
    int (*get)(const struct mcp_tool_call *call, const char *id, bool brief, struct mcp_task *out,
               struct err *e);
    /* Answers to MCP_TASK_INPUT; unknown and answered keys are ignored. */
    int (*update)(const struct mcp_tool_call *call, const char *id, const json_t *responses,
                  struct err *e);
    /* Also of a task that has ended, which changes nothing. */
    int (*cancel)(const struct mcp_tool_call *call, const char *id, struct err *e);
};

/* ---- for this layer ---- */

/* The members that every task has, and those of its status; as a new object. short_form: without
 * the latter (CreateTaskResult). */
json_t *mcp_task_to_json(const struct mcp_task *t, bool short_form);

#endif
