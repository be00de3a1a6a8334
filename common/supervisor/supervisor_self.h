/* The parts of a run's supervisor, for supervisor_*.c only. */
#pragma once

#include "common/supervisor/awaited_run.h"
#include "common/supervisor/container.h"

#include <sys/stat.h>

#define SUPERVISOR_STARTS 3 /* containers for one run, if one after another is lost too soon */

/* The run that the supervisor serves, or has served last. */
struct served_run {
    bool claimed;
    bool refused;   /* before that: its caller knows why, and the container still waits */
    char *image_id; /* what the main process wants it to run in; NULL: unknown */
    bool use_noted; /* in the sandbox's record */
    bool fresh;     /* its sandbox was made by this claim: it is empty */
    bool reusable;  /* it is over, and its container may be wiped for the next */
    struct awaited_run awaited;
    struct sandbox sandbox;
    struct usage usage;                /* of the sandbox after the run; partial: unknown */
    const struct index_source *source; /* where an installation's packages come from; NULL: none */
    pid_t index_proxy;                 /* 0: none */
    bool ended;                        /* the outcome is there */
    struct err lost;                   /* why its container is gone; ERR_NONE: it is not */
};

#define SERVED_RUN_INIT ((struct served_run){.awaited = AWAITED_RUN_INIT, .sandbox = SANDBOX_INIT})

struct supervisor {
    struct container base;    /* first; it stops: what the engine does is to end */
    struct engine_wait wait;  /* how far it is while no program runs */
    enum engine_tier told;    /* of that, to the main process */
    bool cpu_raised;          /* while it loads, it may use more processor time than a program */
    struct container_use use; /* whom the container may serve */
    const char *warm_dir;     /* that the container is on; NULL: it is on a sandbox */
    bool wiping;              /* it has been told to get ready for the next run */
    struct served_run run;
};

/* supervisor_reply.c: the connections that wait for the run. */

/* {"head": of a get_run or cancel_run}. */
void supervisor_add_poll(void *owner, const json_t *message, int take_connection);
void supervisor_on_waiter(void *owner, void *item, uint32_t events); /* a loop_handler */
/* Ends what goes on for the run; the first reason counts. */
void supervisor_kill(struct supervisor *s, enum run_killed why);
/* Sends what is due. Returns when there is more. */
struct deadline supervisor_tend_waiters(struct supervisor *s);
/* Tells the main process that it has no run any more. */
void supervisor_tell_end(const struct supervisor *s);
/* The run is over: the last message to everyone; take_result is NULL when e says why nothing ran.
 */
void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e);

/* supervisor_run.c: the run. */

/* {"head", "queueMs", "runId", "imageId", "sandboxDir"}. A run that is refused is answered, and
 * stop is set. */
void supervisor_claim(void *owner, const json_t *message, int take_connection);
/* The result of the claimed run, or NULL. */
json_t *supervisor_run(struct supervisor *s, struct err *e);
/* Records that the sandbox is its tenant's and is used now; once while the run lasts. */
void supervisor_note_use(struct supervisor *s);

/* Drops everything of the run, which is over. */
void supervisor_forget_run(struct supervisor *s);

/* supervisor_container.c: the container, from its start to the next run. */

/* A warm one, and waits for its claim. */
void supervisor_start_warm(struct supervisor *s);
/* While it loads and no program runs in it, its limit of processor time is higher, if the engine
 * can change it. */
void supervisor_raise_cpu(struct supervisor *s);
/* Lets the run have the container that waits, or none. */
void supervisor_use_container(struct supervisor *s);
/* Runs it to its end in the warm container or a new one; in another if that was lost before it got
 * the program. 0: the run's outcome says how it went. */
int supervisor_run_program(struct supervisor *s, const struct engine_command *program,
                           struct err *e);
/* Until a run is claimed or refused, or the container is released, gone or in doubt. */
void supervisor_wait_for_claim(struct supervisor *s);
/* Whether the run's container may be one for further runs, too. */
bool supervisor_may_serve_more(const struct supervisor *s);
/* Whether it may serve the next run, wiped if it has served this. ran: there is an outcome. */
bool supervisor_may_reuse(const struct supervisor *s, bool ran);
bool supervisor_on_event(void *owner, const struct engine_event *ev); /* as container_ops */
void supervisor_on_gone(void *owner, const struct err *e);

/* supervisor_index.c: a run that installs packages; its only network is our proxy to the package
 * index. The others do nothing for other runs. */

/* The index's address for the installer; NULL: it is no such run. */
const char *supervisor_index_url(const struct supervisor *s);
/* Sets run.source. ERR_INVALID, ERR_LIMIT, ERR_DENIED. */
int supervisor_check_index(struct supervisor *s, struct err *e);
int supervisor_open_index(struct supervisor *s, struct err *e);
/* What the installer said, as members of the result. */
void supervisor_add_installed(const struct supervisor *s, json_t *result);
/* Ends the proxy, if there is one. */
void supervisor_close_index(struct supervisor *s);
