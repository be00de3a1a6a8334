/*
 * The broker's children: one row each, the books of who runs what. Owned by the main process; a job
 * child sees a copy. Private to common/broker.
 */
#ifndef SANDCGI_SCHEDULER_CHILDREN_H
#define SANDCGI_SCHEDULER_CHILDREN_H

#include "common/base/loop.h"
#include "common/base/sock.h"
#include "common/engine/engine.h"
#include "common/protocol/ops.h"
#include "common/protocol/run.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/warm_dir.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum child_kind {
    CHILD_JOB,
    CHILD_SUPERVISOR,
    CHILD_PSANDBOX /* of a persistent sandbox (stays.c) */
};

enum child_state {
    CHILD_STARTING, /* its container is being made, for a run that has come or ahead */
    CHILD_WAITING,  /* its container waits for a run */
    CHILD_RUNNING,
    CHILD_ENDED, /* the program is over, it answers and cleans up */
};

struct queued_run;

struct child {
    pid_t pid;               /* 0: adopted from a broker of before, known by its channel only */
    int channel;             /* -1: a job, or it was told to go */
    struct sock_inbox inbox; /* of the channel, as the next */
    struct loop_watch watch;
    enum child_kind kind;
    enum child_state state;
    bool claimed;                /* has been given a run */
    bool placed;                 /* holds a place of admission's */
    char run_id[RUN_ID_LEN + 1]; /* known from the fork on */
    char sandbox_dir[SANDBOX_NAME_LEN +
                     1];                  /* sandbox's name; "" while it sits on a warm directory */
    char warm_dir[WARM_DIR_NAME_LEN + 1]; /* "": none */
    char language[RUN_LANGUAGE_MAX + 1];
    char *image_id;              /* what it was made of: another image replaces it; NULL: adopted */
    char *tenant, *conversation; /* NULL until claimed; of a job that lasts the tenant only */
    enum job_limit limit;        /* of a job */
    bool network, background;
    bool session; /* a persistent sandbox that keeps variables */
    enum engine_tier tier;
    uint64_t memory_bytes; /* of its processes when it came as far as tier; 0: not known */
    bool preload_asked;
    int64_t born_ms, since_ms; /* clock_mono_ms of the fork, of the state */
    struct queued_run *claim;  /* what it was given and has not begun; NULL: none (run_queue.h) */
};

struct children; /* grows; pointers to rows stay valid until children_remove */

struct children *children_new(void);
void children_free(struct children *list);

/* A new row: STARTING, without a channel, born now. */
struct child *children_add(struct children *list, enum child_kind kind);
/* Closes the channel, whose watch has ended. */
void children_remove(struct children *list, struct child *child);

struct child *children_find_pid(struct children *list, pid_t pid);
/* A claimed one of this tenant; NULL. */
struct child *children_find_run(struct children *list, const char *tenant, const char *run_id);
/* Those for which is says so; NULL: all. */
size_t children_count(const struct children *list, bool (*is)(const struct child *, const void *),
                      const void *ctx);
/* The one behind after, NULL: the first. NULL at the end. */
struct child *children_next(const struct children *list, const struct child *after);

void child_set_state(struct child *child, enum child_state state);
/* Whose run it does from now on; conversation NULL: of a job. */
void child_set_owner(struct child *child, const char *tenant, const char *conversation);

/* Hands a connection over ({"do":what,"head":…}); closes nothing; -1 when the child is gone (the
 * caller chooses another). Never blocks. */
int child_hand(struct child *child, const char *what, const json_t *head, int64_t queue_ms,
               int connection, struct err *e);
/* {"do":what}. Never blocks. */
int child_tell(struct child *child, const char *what, struct err *e);

/* "none", "light", "full". */
const char *child_tier_name(enum engine_tier tier);

#endif
