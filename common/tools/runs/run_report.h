/* What a run's result looks like to a client: the one shape of run_code, get_run and cancel_run,
 * and what a task's result is made of. */
#ifndef SANDCGI_TOOLS_RUNS_RUN_REPORT_H
#define SANDCGI_TOOLS_RUNS_RUN_REPORT_H

#include "common/mcp/features/tool.h"
#include "common/protocol/client_call.h"

/* Bytes of a runId that are looked at; whatever is no id is told to be unknown. */
#define RUN_ID_MAX  1024
#define RUN_ID_HELP "The run's runId, as run_code or list_runs told it."

/* How a run is told. Zeros will do. */
struct run_telling {
    const char *conversation; /* NULL: as the result says */
    const struct fds *opened; /* brief: see run_files.h */
    bool brief;
};

/* Tells a run from the broker's result (taken): its files with types and links, pictures, and what
 * to do next when it goes on. */
void run_report_tell(const struct mcp_tool_call *c, const struct run_telling *how,
                     json_t *take_result, struct mcp_result *out);

/* One that was not started: e says why, busy when to come back. */
void run_report_busy(const struct err *e, const struct broker_busy *busy, struct mcp_result *out);

/* "running", "ok", …; "" when the result has none. */
const char *run_report_status(const json_t *result);
bool run_report_is_running(const json_t *result);

#endif
