/*
 * Runs from their arrival until a supervisor has taken them: each waits for a place (admission.h),
 * then for a container, then for its supervisor to say that it has read the run.
 *
 * Plain data: the clock is a parameter, decisions come out as actions, which the main process
 * carries out. Knows no descriptor and no process. An action holds until the next call.
 */
#pragma once

#include "common/base/clock.h"
#include "common/scheduler/admission.h"
#include "common/scheduler/children.h"
#include "common/scheduler/memory_room.h"
#include "common/scheduler/pool.h"
#include "common/scheduler/runners.h"

#define RUN_TRIES_MAX 2 /* supervisors that may die before one has taken the run */

enum run_stage {
    RUN_OUTSIDE,  /* not in the queue */
    RUN_WAITING,  /* for a place */
    RUN_PLACED,   /* has one, waits for a supervisor */
    RUN_ASSIGNED, /* has a supervisor, which has not taken it yet */
};

/* Belongs to the caller of run_queue_add, and stays where it is until it is out of the queue. */
struct queued_run {
    /* Set by its owner; borrowed. */
    const char *tenant, *conversation, *language;
    const json_t *imports; /* as pool_want's */
    bool background, network, single_use;
    bool detach;      /* wanted even when its caller has left */
    size_t most;      /* as admission_want's */
    uint64_t wait_ms; /* at most for a place and a start; 0: no bound, or background's default */
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    /* The queue's. */
    struct queued_run *next;
    enum run_stage stage;
    uint64_t round; /* of starts, once placed */
    bool passed_by; /* no container for it in this turn */
    unsigned tries;
    int64_t asked_ms;
    struct deadline end; /* of WAITING and PLACED */
};

struct run_queue_settings {
    struct admission_limits limits;
    size_t background_max;       /* of one tenant, running and waiting */
    size_t starts_max;           /* containers that are started at once */
    uint64_t background_wait_ms; /* default of a background run's wait_ms */
    struct memory_room memory;   /* its limit and reserve */
    /* What decisions look at, borrowed. */
    struct children *children;
    struct pool *pool;
    const struct runners *runners;
    /* Is there a directory of that name? Asked when a supervisor is chosen. */
    bool (*sandbox_exists)(void *ctx, const char *sandbox_dir);
    /* The machine's memory that is available, in bytes; false: not known. Asked when a run comes,
     * waits or ends. With a reserve only. */
    bool (*memory_available)(void *ctx, uint64_t *out);
    void *ctx;
};

enum run_queue_do {
    RUN_TELL_POSITION, /* tell its caller; from now on the caller may leave (run_queue_leave) */
    RUN_ASSIGN,        /* hand the run to child, which is warm: then run_queue_assigned; if that
                          fails: release child */
    RUN_SPAWN,         /* fork a supervisor for it: then run_queue_assigned; if that fails: answer,
                          and run_queue_drop */
    RUN_REFUSE,        /* answer with why; the run is out of the queue */
};

struct run_action {
    enum run_queue_do what;
    struct queued_run *run;
    struct child *child;   /* RUN_ASSIGN */
    struct pool_want want; /* RUN_ASSIGN, RUN_SPAWN */
    size_t position;       /* RUN_TELL_POSITION, from 1; RUN_REFUSE as busy: how many wait */
    int64_t retry_ms;      /* RUN_REFUSE as busy: when to try again; else 0 */
    struct err why;        /* RUN_REFUSE */
};

/* Since the start: runs that found a warm container, and that did not; of the former, those whose
 * container had served their conversation before. */
struct run_tally {
    uint64_t warm, cold, reused;
};

struct run_queue *run_queue_new(const struct run_queue_settings *settings);
/* Its runs stay their owners'. */
void run_queue_free(struct run_queue *q);

/* A run has come. true: *out is what its caller is to be told (RUN_TELL_POSITION, RUN_REFUSE);
 * false: it has a place, run_queue_next goes on with it. */
bool run_queue_add(struct run_queue *q, struct queued_run *run, int64_t now_ms,
                   struct run_action *out);

/* Whether the tenant may begin one more run in the background, here or in a persistent sandbox, by
 * SANDBOX_BACKGROUND_MAX. ERR_DENIED: none; ERR_BUSY: not now. */
int run_queue_check_background(const struct run_queue *q, const char *tenant, struct err *e);
/* ERR_BUSY when as many programs of the tenant run as may at once (0: no limit). */
int run_queue_check_most(const struct run_queue *q, const char *tenant, size_t most, struct err *e);

/*
 * The next thing to do; false when there is none now. Call it until false after every turn of the
 * main loop. Refuses a run whose time is over, unless it can start now. Starts go round the
 * tenants, since fewer are possible at once than there are places; while other tenants are active,
 * one has at most half of them, so that a crowd of its runs does not slow down each of theirs.
 */
bool run_queue_next(struct run_queue *q, int64_t now_ms, struct run_action *out);
/* When a run's time is over; never: none has a bound. */
struct deadline run_queue_due(const struct run_queue *q);

/* RUN_ASSIGN or RUN_SPAWN was carried out: child's row says so from now on. */
void run_queue_assigned(struct run_queue *q, const struct run_action *action, struct child *child,
                        int64_t now_ms);
/* The run is out of the queue, its place is free. */
void run_queue_drop(struct run_queue *q, struct queued_run *run, int64_t now_ms);
/* Its caller has left. true: the run is out of the queue; false: it goes on without. */
bool run_queue_leave(struct run_queue *q, struct queued_run *run, int64_t now_ms);

/* The child's supervisor has taken its run, which is out of the queue. NULL: that was known. */
struct queued_run *run_queue_taken(struct run_queue *q, struct child *child);
/* The child's run is over: its place is free. */
void run_queue_release(struct run_queue *q, struct child *child, int64_t now_ms);
/*
 * The child's process has ended, its row goes. A run that it had not taken is given to another
 * supervisor, in the same place, if its body is unread and it was not tried too often. Else it is
 * out of the queue, and returned; NULL: there is none to be dropped.
 */
struct queued_run *run_queue_child_lost(struct run_queue *q, struct child *child, bool body_unread,
                                        int64_t now_ms);
/* A program in a persistent sandbox is over: gives places to runs that wait for its end. */
void run_queue_place(struct run_queue *q);
/* When a call that is refused for lack of room should be tried again. */
int64_t run_queue_retry_ms(const struct run_queue *q);
/* The child's run began under another broker: it takes a place without asking. */
void run_queue_adopt(struct run_queue *q, struct child *child);

/* The oldest run without a supervisor; NULL: none. */
struct queued_run *run_queue_unassigned(const struct run_queue *q);
/* Does a run of this sandbox wait for a place or a supervisor? */
bool run_queue_uses_sandbox(const struct run_queue *q, const char *sandbox_dir);
bool run_queue_is_empty(const struct run_queue *q);
/* How many wait for a place or a start; how many have a place. */
size_t run_queue_length(const struct run_queue *q);
size_t run_queue_running(const struct run_queue *q);
struct run_tally run_queue_tally(const struct run_queue *q);
