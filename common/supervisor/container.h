/*
 * A container with the process that owns it: what both kinds of supervisor have in common. Also the
 * limits and the environment of what runs in it (workers are not trusted, so limits are checked
 * here again).
 */
#ifndef SANDCGI_SUPERVISOR_CONTAINER_H
#define SANDCGI_SUPERVISOR_CONTAINER_H

#include "common/engine/engine.h"
#include "common/supervisor/channel.h"
#include "common/supervisor/supervisor.h"
#include "common/supervisor/waiters.h"

#define CONTAINER_START_MS 30000 /* for the engine to start a container */

struct container {
    const struct supervisor_start *start;
    struct engine *engine;
    struct engine_attend attend; /* the loop, while the engine waits */
    int lock_fd;                 /* of the run id (run_lock.h) */
    struct channel channel;
    struct waiters waiters;
};

/* owner is passed to tick, to ops and to ready; tick answers false to cancel what the engine does.
 * Clear it with container_clear, also after a failure. */
int container_open(struct container *c, const struct supervisor_start *start, void *owner,
                   const struct channel_ops *ops, loop_handler *ready, bool (*tick)(void *owner),
                   struct err *e);
void container_clear(struct container *c);

/* Adds to *spec what all containers of this server have in common, and starts it. */
int container_start(struct container *c, struct engine_spec *spec, struct err *e);

/* ERR_LIMIT naming field when len is over max. */
int container_check_size(const char *field, uint64_t len, uint64_t max, struct err *e);
/* Code, stdin, environment and timeout; sets the default timeout. */
int container_check_request(const struct supervisor_start *start, struct run_request *r,
                            struct err *e);

/* "NAME=value" of every variable; FILE_BASE_URL is always ours. */
struct container_env {
    const char **items;
    size_t n;
};
#define AUTO_CONTAINER_ENV AUTO(container_env_clear)

struct container_env container_env_new(const struct run_request *r, const struct sandbox *sandbox,
                                       const char *index_url);
void container_env_clear(struct container_env *env);

#endif
