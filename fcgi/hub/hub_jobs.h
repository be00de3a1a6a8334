/*
 * The hub's short-lived children: work that waits for the broker or the disk. A child writes its
 * result to a pipe, whose end is an event in the hub's loop.
 */
#ifndef SANDCGI_FCGI_HUB_HUB_JOBS_H
#define SANDCGI_FCGI_HUB_HUB_JOBS_H

#include "common/base/loop.h"
#include "common/mcp/server.h"

struct hub_jobs {
    struct loop *loop;
    /* A task's state; owner is the loop's. Not called for a task that cannot be looked up. */
    void (*on_task)(void *owner, const char *tenant, const char *task, const json_t *state);
    struct hub_job *first; /* running, then queued, in the order of their start */
    size_t n, n_running;
};

/* Looks up the state of a task. */
void hub_jobs_look_up(struct hub_jobs *j, const struct mcp_server *server, const char *tenant,
                      const char *task);
/* Removes expired sessions. */
void hub_jobs_sweep(struct hub_jobs *j, const struct mcp_server *server);

/* Kills children that have used up their time. */
void hub_jobs_tick(struct hub_jobs *j);
/* Kills all. */
void hub_jobs_clear(struct hub_jobs *j);

#endif
