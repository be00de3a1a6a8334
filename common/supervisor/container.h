/*
 * A container with the process that owns it: what every supervisor has, whatever runs there. That
 * is the loop: the channel to the broker's main process, callers, and the container's stream.
 */
#pragma once

#include "common/base/purpose.h"
#include "common/engine/engine.h"
#include "common/supervisor/channel.h"
#include "common/supervisor/disk_watch.h"
#include "common/supervisor/supervisor.h"
#include "common/supervisor/waiters.h"

#include <sys/stat.h>

#define CONTAINER_START_MS 30000 /* for the engine to start a container */

/* owner is the struct that begins with the container. */
struct container_ops {
    struct channel_ops channel;
    loop_handler *on_waiter;
    /* Does what is due. Returns when there is more. */
    struct deadline (*tend)(void *owner);
    /* Something came from the container. false: no more is wanted now. */
    bool (*on_event)(void *owner, const struct engine_event *ev);
    /* The container cannot be used any more. */
    void (*on_gone)(void *owner, const struct err *e);
};

struct container {
    const struct supervisor_start *start;
    const struct container_ops *ops;
    struct engine *engine;
    struct engine_attend attend; /* the loop, while the engine waits */
    int lock_fd;                 /* of the run id (run_lock.h) */
    struct channel channel;
    struct waiters waiters;
    struct disk_watch disk;
    enum purpose purpose; /* of the processor time that the container uses now */
    uint64_t cpu_us;      /* of it, counted; 0: none could be seen */
    struct deadline count_at;
    bool started; /* there is a container that can be used */
    bool unread;  /* the engine may have more to report */
    bool stop;    /* the supervisor is to end, and its container */
};

/* false: start's caller is refused, and there is nothing to clear. */
bool container_open(struct container *c, const struct supervisor_start *start,
                    const struct container_ops *ops);
void container_clear(struct container *c);

/* The loop. One turn waits for what comes next, until then at most: it takes in what came from the
 * main process, callers and the container, and does what is due. */
void container_turn(struct container *c, struct deadline until);
/* The same without waiting, and without the container; false: it is to stop. */
bool container_tick(void *container);
/* Takes in what has come from the container. */
void container_read(struct container *c);
/* Turns until each waiter has taken its answer or is dropped. */
void container_drain(struct container *c);

/* Adds to *spec what all containers of this server have in common, and starts it as the owner of
 * its /data. */
int container_start(struct container *c, struct sandbox_owner owner, struct engine_spec *spec,
                    struct err *e);
/* What it has used by now counts as before, what it uses from now on as purpose. */
void container_use_for(struct container *c, enum purpose purpose);
/* Removes it, if there is one. */
void container_finish(struct container *c);
/* Logs why what ("run", "sandbox") with that id did not start, unless that is its caller's error.
 */
void container_log_failure(const struct container *c, const char *what, const char *id,
                           const struct err *e);

/* What a container was made of and has served, and what a run wants. */
struct container_use {
    char *tenant, *conversation; /* owned; NULL: it has served none */
    const char *image_id;
    struct stat dir; /* at /data */
};

/* The wall between conversations: only where nothing differs a run gets this container. */
bool container_may_serve(const struct container_use *it, const struct container_use *wanted);
void container_use_clear(struct container_use *use);
