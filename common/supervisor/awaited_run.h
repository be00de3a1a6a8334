/*
 * A run in the books, as those who wait for it see it: what it printed so far, whether its result
 * is kept, and the answers. Its process may have one (a run's supervisor) or several (the calls of
 * a persistent sandbox), and begins and ends what runs.
 */
#pragma once

#include "common/records/run_record.h"
#include "common/records/run_result.h"
#include "common/supervisor/supervisor.h"
#include "common/supervisor/waiters.h"

enum keep_state { KEEP_NOT, KEEP_DONE, KEEP_FAILED };

struct awaited_run {
    const struct supervisor_start *start; /* borrowed, as is waiters */
    struct waiters *waiters;
    char id[RUN_ID_LEN + 1];
    struct run_options options; /* of its caller */
    struct run_story story;     /* for its results; capture is of all that it printed */
    struct run_capture capture;
    struct output_ring *output; /* NULL: it has not come so far that anybody waits */
    int64_t began_ms;           /* when its program was started; 0: not yet */
    enum keep_state keep;
    struct err keep_error;    /* why it is KEEP_FAILED */
    struct run_record record; /* strings borrowed */
    struct fds open_files;    /* its first changed files, for its caller */
    json_t *reply;            /* the last message for everyone, once it is over */
};

/* id, options and record are set. From now on it is waited for; keep_bytes of each stream of output
 * are for its result. */
void awaited_run_begin(struct awaited_run *run, const struct supervisor_start *start,
                       struct waiters *waiters, uint64_t keep_bytes);
/* Frees what it holds. Waiters that have no answer yet are detached from it. */
void awaited_run_clear(struct awaited_run *run);

/* The connection of its caller waits for it now, for as long as the options say; queue_ms of that
 * are over. */
void awaited_run_add_caller(struct awaited_run *run, struct waiter *r, int64_t queue_ms);
/* A get_run or cancel_run with that head. Takes the connection. */
void awaited_run_add_poll(struct awaited_run *run, const json_t *head, int take_connection);

/* Has it recorded, so that its result can be found later. */
void awaited_run_keep(struct awaited_run *run);
/* A piece of its output; false: it is too much. */
bool awaited_run_output(struct awaited_run *run, enum engine_stream stream, const char *data,
                        size_t len);
/* Answers those whose time is over. Call it before waiters_tend. */
void awaited_run_tend(struct awaited_run *run);

/* It is over, with this last message ({"result"} or {"error"}). */
void awaited_run_end(struct awaited_run *run, json_t *take_reply);
/* Sends that to everyone. */
void awaited_run_answer(struct awaited_run *run);
/* Stores the result of a run that is kept. */
void awaited_run_record_end(struct awaited_run *run);
