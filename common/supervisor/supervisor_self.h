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
    int lock_fd;    /* of the id, where that is not the container's; -1 */
    char *image_id; /* what the main process wants it to run in; NULL: unknown */
    bool cancelled; /* by its caller or cancel_run */
    bool use_noted; /* in the sandbox's record */
    bool fresh;     /* its sandbox was made by this claim: it is empty */
    bool reusable;  /* it is over, and its container may be wiped for the next */
    json_t *head, *body;
    struct run_request request; /* into them */
    struct awaited_run awaited;
    struct sandbox sandbox;
    struct usage usage; /* of the sandbox after the run; partial: unknown */
    struct err over; /* what its files had too much of, and what was removed; ERR_NONE: nothing */
    const struct index_source *source; /* where an installation's packages come from; NULL: none */
    pid_t index_proxy;                 /* 0: none */
};

#define SERVED_RUN_INIT                                                                            \
    ((struct served_run){                                                                          \
        .lock_fd = -1, .awaited = {.open_files = FDS_INIT(FDS_MAX)}, .sandbox = SANDBOX_INIT})

struct supervisor {
    struct container base;
    bool started;             /* there is a container */
    bool cpu_raised;          /* while it loads, it may use more processor time than a run */
    struct container_use use; /* whom the container may serve */
    const char *warm_dir;     /* that the container is on; NULL: it is on a sandbox */
    bool wiping;              /* it has been told to get ready for the next run */
    bool stop;                /* what the engine does is to end */
    struct served_run run;
};

/* supervisor_reply.c: the connections that wait for the run. */

/* {"head": of a get_run or cancel_run}. */
void supervisor_add_poll(void *owner, const json_t *message, int take_connection);
void supervisor_on_waiter(void *owner, void *item, uint32_t events); /* a loop_handler */
/* Sends what is due. Returns when there is more. */
struct deadline supervisor_tend_waiters(struct supervisor *s);
/* A piece of the program's output; false: it is too much. */
bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len);
/* Tells the main process that it has no run any more. */
void supervisor_tell_end(const struct supervisor *s);
/* The run is over: the last message to everyone; take_result is NULL when e says why nothing ran.
 */
void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e);

/* supervisor_run.c: the run. */

/* {"head", "queueMs", "runId", "imageId"}. A run that is refused is answered, and stop is set. */
void supervisor_claim(void *owner, const json_t *message, int take_connection);
/* On the directory of that kind and path. */
int supervisor_start_container(struct supervisor *s, const struct stat *dir, const char *data_path,
                               struct err *e);
/* Sets a raised limit back. false: the container must not be used. */
bool supervisor_lower_cpu(struct supervisor *s);
/* The result of the claimed run, or NULL. */
json_t *supervisor_run(struct supervisor *s, struct engine_outcome *out, struct err *e);
/* Records that the sandbox is its tenant's and is used now; once while the run lasts. */
void supervisor_note_use(struct supervisor *s);

/* Whether the container may serve the next run, wiped if it has served this. ran: there is an
 * outcome. */
bool supervisor_may_reuse(const struct supervisor *s, bool ran, const struct engine_outcome *out);
/* Drops everything of the run, which is over. */
void supervisor_forget_run(struct supervisor *s);

/* supervisor_index.c: a run that installs packages; its only network is our proxy to the package
 * index. The others do nothing for other runs. */

/* Sets run.source. ERR_INVALID, ERR_LIMIT, ERR_DENIED. */
int supervisor_check_index(struct supervisor *s, struct err *e);
int supervisor_open_index(struct supervisor *s, struct err *e);
/* What the installer said, as members of the result. */
void supervisor_add_installed(const struct supervisor *s, json_t *result);
/* Ends the proxy, if there is one. */
void supervisor_close_index(struct supervisor *s);
