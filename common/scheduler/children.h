/* The children of the main process, one row each. Plain data; a job sees a copy. */
#pragma once

#include "common/base/err.h"
#include "common/engine/engine.h"
#include "common/protocol/ops.h"
#include "common/protocol/run.h"
#include "common/sandbox/warm_dir.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum child_kind {
    CHILD_JOB, /* or a helper, whose end the main process waits for */
    CHILD_SUPERVISOR,
    CHILD_PSANDBOX, /* the supervisor of a persistent sandbox */
};

enum child_state {
    CHILD_STARTING, /* its container is being made */
    CHILD_WAITING,  /* its container is warm: it waits for a run */
    CHILD_RUNNING,
    CHILD_ENDED,  /* the program is over, it answers and cleans up; or it was released */
    CHILD_WIPING, /* its used container is made ready for the conversation's next run */
};

struct queued_run;
struct child_link;
struct pool_image;
struct pool_sandbox;

struct child {
    pid_t pid; /* 0: it began under a broker before */
    enum child_kind kind;
    enum child_state state;
    bool claimed;     /* has been given a run */
    bool placed;      /* holds a place of admission's */
    bool reattaching; /* it lives without a channel, and is to come back with one (reattach.h) */
    bool ending;      /* it was told to end: its container is there until the state is ENDED */
    char container_id[RUN_ID_LEN + 1]; /* its label and lock */
    char run_id[RUN_ID_LEN + 1]; /* of its run, or the next one; of the first it is container_id */
    unsigned runs;               /* that it has served */
    char sandbox_dir[SANDBOX_NAME_LEN + 1]; /* "": it is on a warm directory */
    char warm_dir[WARM_DIR_NAME_LEN + 1];   /* "": none */
    char language[RUN_LANGUAGE_MAX + 1];    /* of its latest run; else one of its image */
    char *image_id; /* what it was made of: another image replaces it; NULL: it was adopted, */
    char *image;    /* as the name of it */
    char *tenant, *conversation; /* NULL until claimed; of a job the tenant only */
    enum job_limit limit;        /* of a job: the share that it counts for */
    bool network, background;
    bool single_use;                   /* its run wants no other in the same container */
    bool session;                      /* a persistent sandbox that keeps variables, */
    enum network_tier session_network; /* and its network */
    json_t *calls;   /* its runs that have not ended: [{"runId", "language", "createdAt",
                        "background"}]; NULL: none; owned */
    size_t n_handed; /* calls that it has been handed to run something, and has not told of yet */
    int64_t used_us; /* clock_mono_us of the last of these */
    enum engine_tier tier;
    uint64_t memory_bytes; /* of its processes when it came as far as tier; 0: not known */
    bool preload_asked;
    struct pool_image *pool_image; /* of a supervisor, as the pool saw it last; NULL: none waits of
                                     it */
    struct pool_sandbox *sandbox;  /* the same: whose directory it sits on; NULL: not remembered */
    int64_t born_ms, since_ms;     /* clock_mono_ms of the fork, of the state */
    struct queued_run *run;  /* what it was given and has not taken; NULL: none (run_queue.h) */
    struct child_link *link; /* its channel (common/broker/child_io.h); NULL: none */
    struct child *next;      /* children_next */
};

struct children; /* grows; pointers to rows stay valid until children_remove */

struct children *children_new(void);
void children_free(struct children *list);

/* A new row: STARTING, born now. */
struct child *children_add(struct children *list, enum child_kind kind);
/* Its channel has been closed. */
void children_remove(struct children *list, struct child *child);

struct child *children_find_pid(struct children *list, pid_t pid);
/* The supervisor of that run, or persistent sandbox of that id, whose ever; NULL. */
struct child *children_find_id(struct children *list, const char *run_id);
/* The one that has this run of the tenant, or is its persistent sandbox with what would be a run of
 * that id; NULL. */
struct child *children_find_run(struct children *list, const char *tenant, const char *run_id);
/* The tenant's persistent sandbox of that id; NULL. */
struct child *children_find_psandbox(struct children *list, const char *tenant,
                                     const char *psandbox_id);
/* The persistent sandbox that keeps the variables of that language and sandbox directory; else the
 * one that would, since it is of the language's image (NULL: unknown); NULL. */
struct child *children_find_session(struct children *list, const char *sandbox_dir,
                                    const char *language, const char *image);
/* Of the tenant's sessions that run nothing the one that is unused longest; NULL. */
struct child *children_find_idle_session(struct children *list, const char *tenant);
/* It has not ended, and was not told to. */
bool child_takes_calls(const struct child *child);
/* It is one, and runs nothing. */
bool child_is_idle_session(const struct child *child);
/* Those for which is() holds; NULL: all. */
size_t children_count(const struct children *list, bool (*is)(const struct child *, const void *),
                      const void *ctx);
/* How many runs of the tenant's persistent sandboxes go on in the background. */
size_t children_count_background_calls(const struct children *list, const char *tenant);
/* How many programs of the tenant's persistent sandboxes run, or were just handed over. */
size_t children_count_calls(const struct children *list, const char *tenant);
/* The row behind after; after NULL: the first. NULL at the end. */
struct child *children_next(const struct children *list, const struct child *after);

void child_set_state(struct child *child, enum child_state state);
/* Whose run or job it carries out from now on; conversation NULL: of a job. */
void child_set_owner(struct child *child, const char *tenant, const char *conversation);

/* Its container waits for a run, or will: nothing is assigned to it. */
bool child_is_warm(const struct child *child);
/* Its container has its libraries, or will. */
bool child_has_libraries(const struct child *child);

/* ---- how many jobs there may be of a kind; runs need no job ---- */

enum job_answer {
    JOB_MAY_BEGIN,
    JOB_MUST_WAIT, /* for the end of another of its kind, which comes soon */
    JOB_IS_BUSY,   /* the tenant has its share of this kind, or the server all: ERR_BUSY */
};

enum job_answer job_limits_ask(const struct children *children, enum job_limit limit,
                               const char *tenant, struct err *e);
