/*
 * A container with the process that owns it: what both kinds of supervisor have in common. That is
 * the event loop with one timer, the channel to the broker's main process (wire.h describes the
 * messages), and the limits and environment of what runs (workers are not trusted, so limits are
 * checked again).
 */
#pragma once

#include "common/base/loop.h"
#include "common/engine/engine.h"
#include "common/supervisor/disk_watch.h"
#include "common/supervisor/supervisor.h"
#include "common/supervisor/waiters.h"

#include <sys/types.h>

#define CONTAINER_START_MS 30000 /* for the engine to start a container */

/* A message {"do": name}. A message with a connection where none belongs, or without one, is
 * ignored. */
struct channel_handler {
    const char *name;
    void (*handle)(void *owner, const json_t *message, int take_connection);
    bool with_connection; /* else take_connection is -1 */
};

struct channel_ops {
    struct channel_handler handlers[8]; /* up to the first without a name */
    /* The main process has ended. true: connect to the next one. */
    bool (*on_lost)(void *owner);
    /* The head that offers this process to the next one; new reference. */
    json_t *(*adopt_head)(const void *owner);
};

struct channel {
    struct loop loop; /* its owner is that of the ops */
    int fd;           /* -1: there is no main process */
    struct loop_watch watch;
    int timer_fd;
    struct loop_watch timer_watch;
    struct deadline alarm;  /* when the timer rings; never: not set */
    struct deadline redial; /* when the next main process is tried */
    const char *broker_path;
    const struct channel_ops *ops;
};

struct container {
    const struct supervisor_start *start;
    struct engine *engine;
    struct engine_attend attend; /* the loop, while the engine waits */
    int lock_fd;                 /* of the run id (run_lock.h) */
    struct channel channel;
    struct waiters waiters;
    struct disk_watch disk;
};

/* owner is passed to tick, to ops and to ready; tick answers false to cancel what the engine does.
 * false: start's caller is refused, and there is nothing to clear. */
bool container_open(struct container *c, const struct supervisor_start *start, void *owner,
                    const struct channel_ops *ops, loop_handler *ready, bool (*tick)(void *owner));
void container_clear(struct container *c);

/* Without waiting; without a main process the message is dropped. */
void channel_send(const struct channel *c, json_t *take_message);
/* Calls the handlers of what is there, and connects to the next main process when that is due. */
void channel_dispatch(struct channel *c);
/* Makes loop.fd readable at d, or at c->redial if that is earlier. */
void channel_ring_at(struct channel *c, struct deadline d);
/* From now on the main process cannot send; what it sent before is handled. */
void channel_close(struct channel *c);

/* Adds to *spec what all containers of this server have in common, and starts it as the owner of
 * its /data. */
int container_start(struct container *c, struct sandbox_owner owner, struct engine_spec *spec,
                    struct err *e);
/* Logs why what ("run", "sandbox") with that id did not start, unless that is its caller's error.
 */
void container_log_failure(const struct container *c, const char *what, const char *id,
                           const struct err *e);

/* What a container was made of and has served, and what a run wants. */
struct container_use {
    char *tenant, *conversation; /* owned; NULL: it has served none */
    dev_t dev;                   /* of the directory at /data, as the next three */
    ino_t ino;
    uid_t uid;
    gid_t gid;
    const char *language, *image_id;
};

/* The wall between conversations: only where nothing differs a run gets this container. */
bool container_may_serve(const struct container_use *it, const struct container_use *wanted);
void container_use_clear(struct container_use *use);

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
