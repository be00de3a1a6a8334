/* Runs as tasks (common/mcp/features/task.h): a task's id is its run's. */
#ifndef SANDCGI_TOOLS_RUNS_RUN_TASKS_H
#define SANDCGI_TOOLS_RUNS_RUN_TASKS_H

#include "common/mcp/features/task.h"

/* The task of a run that goes on, from the broker's result, for mcp_result.task; NULL when that
 * names no run. */
json_t *run_tasks_new(const json_t *result);

#endif
