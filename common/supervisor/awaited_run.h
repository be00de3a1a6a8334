/*
 * A run in the books: what its caller asked for, what it printed so far, how it went, whether its
 * result is kept, and the answers to those who wait for it. Its process may have one (a run's
 * supervisor) or several (the calls of a persistent sandbox), and begins and ends what runs.
 */
#pragma once

#include "common/records/run_record.h"
#include "common/records/run_result.h"
#include "common/supervisor/container.h"
#include "common/supervisor/request.h"

enum keep_state { KEEP_NOT, KEEP_DONE, KEEP_FAILED };

enum run_killed {
    NOT_KILLED,
    KILLED_BY_CANCEL,
    KILLED_BY_TIME,
    KILLED_BY_OUTPUT,  /* too much of it */
    KILLED_BY_DISK,    /* its files, or what it holds, were too much */
    KILLED_BY_CONTROL, /* what came from its control channel made no sense */
};

struct awaited_run {
    struct container *in; /* borrowed */
    char id[RUN_ID_LEN + 1];
    int lock_fd;                /* of the id, where that is not the container's; -1 */
    json_t *head;               /* of its call */
    struct run_request request; /* into it, as options */
    struct run_options options;
    struct run_body body;
    struct run_story story; /* for its results */
    struct output *output;  /* NULL: it has not come so far that anybody waits */
    int64_t came_ms;        /* when it was taken */
    int64_t began_ms;       /* when its program was started; 0: not yet */
    bool prestarted;        /* its container waited for it */
    enum run_killed killed; /* the first reason */
    struct engine_outcome outcome;
    struct snapshot before; /* the files */
    struct err over;        /* what they had too much of, and what was removed; ERR_NONE: nothing */
    enum keep_state keep;
    struct err keep_error;    /* why it is KEEP_FAILED */
    struct run_record record; /* strings borrowed */
    struct fds open_files;    /* its first changed files, for its caller */
    json_t *reply;            /* the last message for everyone, once it is over */
};

#define AWAITED_RUN_INIT                                                                           \
    ((struct awaited_run){.lock_fd = -1, .body = RUN_BODY_INIT, .open_files = FDS_INIT(FDS_MAX)})

/* Whose run it is (borrowed), how long it may take until its end at most, and how much of each
 * stream of output is for its result. */
struct awaited_run_plan {
    const char *tenant, *conversation, *language;
    const struct sandbox *sandbox;
    uint64_t most_ms, keep_bytes;
    int64_t queue_ms; /* how long it has waited */
};

/* Its id and options are set. From now on it is waited for: takes its lock, too. */
void awaited_run_begin(struct awaited_run *run, struct container *in,
                       const struct awaited_run_plan *plan);
/* Frees what it holds. Waiters that have no answer yet are detached from it. */
void awaited_run_clear(struct awaited_run *run);

/* The connection of its caller waits for it now, for as long as the options say; queue_ms of that
 * are over. */
void awaited_run_add_caller(struct awaited_run *run, struct waiter *r, int64_t queue_ms);
/* Is a get_run or cancel_run with that head for it? The main process finds runs by their ids; that
 * they are the tenant's is checked here, too. */
bool awaited_run_is(const struct awaited_run *run, const json_t *head);
/* A get_run or cancel_run with that head. Takes the connection. */
void awaited_run_add_poll(struct awaited_run *run, const json_t *head, int take_connection);

/* Has it recorded, so that its result can be found later. */
void awaited_run_keep(struct awaited_run *run);
/* A piece of its output; false: it is too much. */
bool awaited_run_output(struct awaited_run *run, enum engine_stream stream, const char *data,
                        size_t len);
/* Answers those whose time is over. Call it before waiters_tend. */
void awaited_run_tend(struct awaited_run *run);

/* Its outcome, from what the engine says and why it was killed. */
void awaited_run_set_outcome(struct awaited_run *run, const struct engine_outcome *o);
/* The same of one that is killed before it had a program. */
void awaited_run_set_nothing_ran(struct awaited_run *run);
/* The result; after: the files. New reference. */
json_t *awaited_run_result(struct awaited_run *run, const struct snapshot *after);
/* It is over, with this last message ({"result"} or {"error"}): which is stored, if the run is
 * kept; then sent to everyone, and counted and logged. */
void awaited_run_end(struct awaited_run *run, json_t *take_reply);
