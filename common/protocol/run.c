#include "config.h"

#include "common/protocol/run.h"

#include "common/base/auto.h"

static const char *const status_names[] = {
    [RUN_RUNNING] = "running",
    [RUN_OK] = "ok",
    [RUN_ERROR] = "error",
    [RUN_TIMEOUT] = "timeout",
    [RUN_OUT_OF_MEMORY] = "out_of_memory",
    [RUN_OUTPUT_LIMIT] = "output_limit",
    [RUN_KILLED] = "killed",
    [RUN_BUSY] = "busy",
    [RUN_CANCELLED] = "cancelled",
    [RUN_LOST] = "lost",
};

bool run_needs_new(const struct run_request *request)
{
    return request->network || request->index;
}

const char *run_status_name(enum run_status s)
{
    return status_names[s];
}
