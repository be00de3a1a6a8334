/* The parts of a supervisor, for supervisor*.c only. */
#ifndef SANDCGI_SUPERVISOR_SUPERVISOR_SELF_H
#define SANDCGI_SUPERVISOR_SUPERVISOR_SELF_H

#include "common/records/run_record.h"
#include "common/records/run_result.h"
#include "common/supervisor/broker_address.h"
#include "common/supervisor/output_stream.h"
#include "common/supervisor/supervisor.h"
#include "common/supervisor/waiters.h"

#define SUPERVISOR_START_MS 30000 /* for the engine to get a container going */
#define SUPERVISOR_STARTS   3 /* containers for one run, if one after another is gone too soon */

enum keep_state { KEEP_NOT, KEEP_DONE, KEEP_FAILED };

struct supervisor {
    const struct supervisor_start *start;
    struct engine *engine;
    struct engine_attend attend; /* our turn while the engine waits */
    int lock_fd, epoll_fd, timer_fd;
    int channel;                /* -1: the main process is gone */
    struct broker_address home; /* where the next one can be found */
    struct deadline alarm;      /* when timer_fd rings; never: not set */
    struct deadline tick;       /* when output is told */
    struct deadline quiet;      /* and not again before this */
    struct deadline redial;     /* when the next main process is sought */
    struct waiters waiters;
    bool started; /* there is a container */
    ino_t seat;   /* the directory it was started on, ahead; one of the same name may be another */
    bool stop;    /* whatever goes on shall end */

    /* The run, once claimed. */
    bool claimed;
    bool cancelled; /* its owner does not want it any more */
    bool noted;     /* its sandbox's use is on record */
    bool fresh;     /* its sandbox was made by this claim: it is empty */
    json_t *head, *body;
    struct run_request request; /* into them */
    struct run_options options;
    int64_t queue_ms;
    struct sandbox sandbox;
    struct usage usage;                /* of the sandbox after the run; partial: unknown */
    const struct index_source *source; /* where an installation's packages come from; NULL: none */
    pid_t index_proxy;                 /* 0: none */
    struct run_capture capture;
    struct output_ring *live;
    int64_t began_ms; /* when its program began; 0: not yet */
    enum keep_state keep;
    struct run_record record; /* strings borrowed from request */
    char not_kept[sizeof((struct err *)0)->text];
    struct fds opened; /* its first changed files, for the caller */
    json_t *reply;     /* the last message for everybody, once it is over */
};

/* supervisor_channel.c: the main process, or the next one. */
void supervisor_say(const struct supervisor *s, json_t *take_message);

/* The claimed run's container is up, which was not when the run came: others may start theirs. */
void supervisor_say_started(const struct supervisor *s);
void supervisor_hear_channel(struct supervisor *s);
void supervisor_redial(struct supervisor *s);
/* Takes no more from the channel but what is in it, and answers that. */
void supervisor_close_channel(struct supervisor *s);

/* supervisor_events.c: everything that may happen while the engine works. */
int supervisor_watch(struct supervisor *s, int fd, uint64_t name, struct err *e);
int supervisor_open_events(struct supervisor *s, struct err *e);
bool supervisor_tick(void *ctx);
bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len);
/* Has a turn taken as soon as the engine waits. */
void supervisor_ring(struct supervisor *s);
/* Sends what is due, rings at the next moment. */
void supervisor_tend(struct supervisor *s);
/* The next batch of output for a live waiter that has taken the one before; over: the last. */
void supervisor_tell_live(struct supervisor *s, struct waiter *r, bool over);
/* Lets whoever got the answer have the processors for a moment: what comes next keeps the engine
 * busy. */
void supervisor_linger(struct supervisor *s);
/* Until every waiter has taken its answer, or none is worth waiting for. */
void supervisor_drain(struct supervisor *s);

/* Names of descriptors in epoll's data; all others are addresses of waiters. */
enum { SUPERVISOR_CHANNEL = 1, SUPERVISOR_TIMER = 2 };

/* supervisor_claim.c: a run comes. */
/* Takes connection over. A run that is refused is answered, and stop is set. */
void supervisor_claim(struct supervisor *s, const json_t *head, int64_t queue_ms, int connection);
/* Its directory: s->sandbox, fresh, and whether the container that waits can serve it (started). */
int supervisor_place(struct supervisor *s, struct err *e);
/* Puts the sandbox on its tenant's list and says that it is used now; once while it runs. */
void supervisor_note_use(struct supervisor *s);
/* Gives back what a claim took. */
void supervisor_unclaim(struct supervisor *s);

/* supervisor_files.c: what the conversation keeps. */
/* Its files before the run, and whether there may be a run. */
int supervisor_look_before(struct supervisor *s, struct snapshot *out, struct err *e);
void supervisor_add_retention(struct supervisor *s, const struct snapshot *after, json_t *result);
/* Opens the first changed files for an caller who wants them so: else it would come back for them.
 */
void supervisor_open_files(struct supervisor *s, const json_t *result);
/* For whoever looks at all conversations. */
void supervisor_note_size(const struct supervisor *s);
/* Which directory the sandbox of that name is now; 0: none. */
ino_t supervisor_seat(const struct sandbox_root *root, const char *sandbox_dir);
/* supervisor_index.c: a run that installs packages. */
/* Checks its packages again, and finds where they come from. */
int supervisor_check_index(struct supervisor *s, struct err *e);
/* The way to the index, before the container is made; close it in any case. */
int supervisor_open_index(struct supervisor *s, struct err *e);
void supervisor_close_index(struct supervisor *s);
/* Takes what the installer told of itself from the result's stdout. */
void supervisor_tell_index(const struct supervisor *s, json_t *result);

/* supervisor_engine.c: the container. */
int supervisor_start_container(struct supervisor *s, const char *data_path, struct err *e);
int supervisor_run_program(struct supervisor *s, struct engine_outcome *out, struct err *e);

/* supervisor_answer.c: what is told. */
/* Makes sure that the run can be found later. */
void supervisor_keep(struct supervisor *s);
/* How it stands, to a waiter that waits no longer. */
void supervisor_answer_running(struct supervisor *s, struct waiter *r);
/* A look in on the run, or its cancellation; takes connection over. */
void supervisor_take_waiter(struct supervisor *s, const json_t *head, int connection);
/* It is over: the last message to everybody; take_result is NULL when e says why nothing ran. */
void supervisor_conclude(struct supervisor *s, json_t *take_result, const struct err *e);
/* Puts a kept run's result where it is found. */
void supervisor_record_end(struct supervisor *s);

#endif
