/* Runs as tasks (common/mcp/features/task.h): a task's id is its run's. */
#ifndef SANDCGI_TOOLS_RUNS_RUN_TASKS_H
#define SANDCGI_TOOLS_RUNS_RUN_TASKS_H

#include "common/mcp/features/task.h"

/* The task of a run that goes on, from the broker's result; NULL when that names no run. */
struct mcp_task *run_tasks_new(const json_t *result);

#endif
