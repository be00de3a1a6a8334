/*
 * Work that outlives its call: the extension io.modelcontextprotocol/tasks of modern clients. A
 * tool whose work takes long returns a task instead of its result (mcp_result.task); the
 * client polls it by its id (tasks/get, tasks/update, tasks/cancel), or is notified through
 * subscriptions/listen (MCP_EVENT_TASK). The app keeps the tasks: struct mcp_tasks.
 */
#pragma once

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
    int64_t ttl_ms;                 /* kept so long from created_ms on; 0: unknown */
    int poll_ms;                    /* how often to poll; 0: not stated */
    json_t *requests;               /* of INPUT: object key → {method, params}; owned */
    struct mcp_result result;       /* of COMPLETED */
    int code;                       /* of FAILED: JSON-RPC's */
};

#define AUTO_MCP_TASK AUTO(mcp_task_clear)

void mcp_task_clear(struct mcp_task *t);

/* A new object: the members that every task has, and those of its status; its result is for a
 * client with these features (enum mcp_feature). */
json_t *mcp_task_to_json(const struct mcp_task *t, unsigned features);
/* Of a task that was just created (CreateTaskResult): for mcp_result.task. */
json_t *mcp_task_created(const struct mcp_task *t);

/* All get a call with server, app, tenant and cancel_fd; id is hostile text of at most
 * MCP_TASK_ID_MAX bytes. An unknown, expired or foreign id is ERR_NOT_FOUND with one text for all;
 * other texts may be shown to clients. */
struct mcp_tasks {
    /* Fills *out, which is empty. brief: for a notification to many streams; must not take long. */
    int (*get)(const struct mcp_tool_call *call, const char *id, bool brief, struct mcp_task *out,
               struct err *e);
    /* Answers to MCP_TASK_INPUT; unknown and answered keys are ignored. */
    int (*update)(const struct mcp_tool_call *call, const char *id, const json_t *responses,
                  struct err *e);
    /* Also of a task that has ended, which changes nothing. */
    int (*cancel)(const struct mcp_tool_call *call, const char *id, struct err *e);
};

/* ---- for this layer ---- */

/* Has the client declared the extension, and does the server have tasks? */
bool mcp_client_can_task(const struct mcp_call *call);
/* Refuses because it has not: HTTP 400, -32021. Always returns -1. */
int mcp_fail_no_tasks(struct mcp_call *call);
