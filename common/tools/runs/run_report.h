/*
 * A run as a client sees it: its result, in one shape for run_code, get_run, cancel_run and tasks;
 * and, while its call waits, pieces of output, its place in the queue, and a sign of life after a
 * silence.
 */
#pragma once

#include "common/mcp/features/tool.h"
#include "common/protocol/client_call.h"
#include "common/tools/args.h"
#include "common/tools/runs/run_words.h"

/* Zeros are the default. */
struct run_telling {
    const char *conversation;     /* NULL: conversationId of the result */
    const struct fds *open_files; /* see struct run_files */
    bool brief;
    struct run_wording words;
};

/* Fills *out from the broker's result (taken): files with types and links, pictures, and the text.
 */
void run_report_tell(const struct mcp_tool_call *c, const struct run_telling *how,
                     json_t *take_result, struct mcp_result *out);

/* A run that was not started: e says why, busy when to try again. */
void run_report_busy(const struct err *e, const struct broker_busy *busy, struct mcp_result *out);

/* How a call that runs something wants to wait. */
struct run_waiting {
    struct arg_integer wait_ms; /* 0: the answer comes at once */
    bool background;            /* the same */
    bool may_task;              /* a run that outlasts TASK_AFTER_MS may become a task */
    const char *detail;         /* the call's */
};

/* wait_ms, background, detach, cancel_on_disconnect and keep_over for the call. */
struct run_options run_options_of(const struct mcp_tool_call *c, const struct run_waiting *how);

struct run_life {
    const struct mcp_tool_call *call;
    const char *subject; /* "The python program" */
    uint64_t limit_ms;   /* after which the program is stopped; 0: unknown */
    int64_t began_ms;
    bool queued; /* it had to wait in the run queue */
};

/* Sets up *l, and the members of client and callbacks (both for one call) that it needs. subject
 * and l must outlive the call. */
void run_life_begin(struct run_life *l, const struct mcp_tool_call *call, const char *subject,
                    uint64_t limit_ms, struct broker_client *client,
                    struct broker_callbacks *callbacks);

/* ---- runs as tasks (common/mcp/features/task.h): a task's id is its run's ---- */

/* The task of a run that goes on, from the broker's result, for mcp_result.task; NULL when that
 * names no run. */
json_t *run_tasks_new(const json_t *result);
