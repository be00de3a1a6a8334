/*
 * What a client hears of a run while its call waits: pieces of output as they are printed, its
 * place in the queue, and a sign of life when nothing else was said for a while.
 */
#ifndef SANDCGI_TOOLS_RUNS_RUN_LIFE_H
#define SANDCGI_TOOLS_RUNS_RUN_LIFE_H

#include "common/mcp/features/tool.h"
#include "common/protocol/client_call.h"

struct run_life {
    const struct mcp_tool_call *call;
    const char *subject; /* "The python program" */
    uint64_t limit_ms;   /* after which the program is stopped; 0: unknown */
    int64_t began_ms;
    bool queued; /* it had to wait for its turn */
};

/* Sets up *l, and what client and callbacks (both to be used for one call) need for it. subject and
 * l must outlive the call. */
void run_life_begin(struct run_life *l, const struct mcp_tool_call *call, const char *subject,
                    uint64_t limit_ms, struct broker_client *client,
                    struct broker_callbacks *callbacks);

#endif
