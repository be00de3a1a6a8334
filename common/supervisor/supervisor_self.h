/*
 * The parts of a supervisor, for the files beside this one only.
 *
 *   supervisor_main.c       its life, and what comes from the container
 *   supervisor_take.c       calls that come: one row for each operation
 *   supervisor_calls.c      how they go on and end
 *   supervisor_container.c  a container of the pool: its start, and programs in it
 *   supervisor_run.c        runs, which such a container serves one after the other
 *   supervisor_index.c      a run that installs packages
 *   psandbox_life.c         a persistent sandbox, from its start to its end
 *   psandbox_container.c    its container and its record
 *   psandbox_commands.c     what calls run in it, several at once: commands,
 *   psandbox_session.c      cells,
 *   psandbox_listing.c      and the list of files before and after them
 */
#pragma once

#include "common/protocol/ops.h"
#include "common/records/psandbox_record.h"
#include "common/supervisor/awaited_run.h"
#include "common/supervisor/container.h"

#define SUPERVISOR_STARTS  3     /* containers for one run, if one after another is lost too soon */
#define CALLS_MAX          16    /* of any kind; a call may outlive its waiter */
#define CALLS_AT_ONCE      8     /* of them, calls that run something or are queued to */
#define CALL_BODY_MS       30000 /* for its body, which was sent behind the head */
#define CALL_HANGS_MS      20000 /* for a killed command to end; then the container is given up */
#define PSANDBOX_ORPHAN_MS 60000 /* how long one goes on without a main process */

#define PSANDBOX_SERVER_STOPPED "the server was stopped"

enum call_phase {
    CALL_QUEUED,  /* its body is to come; a cell waits for the interpreter */
    CALL_BEFORE,  /* the files before it are listed; a run waits for its container, too */
    CALL_RUNNING, /* its program, its commands, or its cell */
    CALL_AFTER,   /* the files after it are listed */
    CALL_OVER,    /* a run that is answered; who asks for it gets the same, until "next" */
};

struct supervisor;
struct call;

/* files is NULL when e says why there is no listing; may be taken. May end the call. */
typedef void call_listed(struct supervisor *s, struct call *call, struct snapshot *files,
                         const struct err *e);

enum { IN_POOL = 1, IN_PSANDBOX = 2 }; /* kinds of containers */

/* What a call of one operation does. */
struct call_row {
    enum broker_op op;
    unsigned in; /* which containers */
    /* It comes. Takes the connection. */
    void (*take)(struct supervisor *s, const struct call_row *row, const json_t *message,
                 int take_connection);
    /* Of one that runs something, when its body is there; else NULL: */
    int (*check)(struct supervisor *s, struct call *call, struct err *e);
    void (*begin)(struct supervisor *s, struct call *call); /* its run is in the books */
};

struct call {
    const struct call_row *row;
    enum call_phase phase;
    struct waiter *waiter;  /* NULL: it has left */
    struct awaited_run run; /* what it runs; begins when the body is there */
    int64_t came_ms;
    int64_t queue_ms;    /* for which the main process had it queued */
    struct deadline end; /* of its body; of all its commands; once killed, of the container's time
                            to obey */
    /* In a persistent sandbox. */
    uint32_t id;                      /* of the command that runs; 0: none, as for a cell */
    size_t at;                        /* index of that command */
    int64_t began_us;                 /* of that command, or the cell */
    struct psandbox_session *session; /* that a cell is for; NULL: it is none */
    struct output *output;            /* of that command; NULL: none has run */
    json_t *results; /* rows of commands; fields that a cell's result has besides */
    struct {
        struct side_process lister;
        struct buf text;
        call_listed *done;
    } listing; /* psandbox_listing.c */
    /* Of a run. */
    const struct engine_runner *runner; /* of its language */
    bool fresh;                         /* its sandbox was made for it: it is empty */
    struct usage usage;                 /* of the sandbox after it; partial: unknown */
    const struct index_source *source;  /* where an installation's packages come from; NULL: none */
    pid_t index_proxy;                  /* 0: none */
    struct err lost;                    /* why its container is gone; ERR_NONE: it is not */
};

#define PSANDBOX_SESSIONS 2

/* An interpreter that keeps variables, one for each language that has one. */
struct psandbox_session {
    bool begun;         /* it keeps some, or did */
    uint32_t id;        /* of its command; 0: it does not run */
    bool fresh;         /* it has not finished a cell */
    struct call *cell;  /* that it works on; NULL: none */
    struct buf control; /* the beginning of a record */
    char lost[400];     /* why variables are gone: for the next result; "": none are */
};

struct supervisor {
    struct container base;         /* first; it stops: it ends now */
    struct container_use use;      /* whom the container serves, or may */
    struct sandbox sandbox;        /* of the run; of the persistent sandbox */
    struct call *calls[CALLS_MAX]; /* n_calls, then NULL; of a container of the pool: a run */
    size_t n_calls;

    /* Of a container of the pool. */
    struct engine_wait wait;  /* how far it is while no program runs */
    enum engine_tier told;    /* of that, to the main process */
    uint32_t program;         /* the engine's id of what runs last */
    bool awaits_report;       /* of a program that is killed */
    bool cpu_raised;          /* while it loads, it may use more processor time than a program */
    const char *warm_dir;     /* that the container is on; NULL: it is on a sandbox */
    bool refused;             /* a run was, before it began: the main process is to know */
    struct deadline next_by;  /* when the main process has to say "next"; never: no run is over */
    bool wiping;              /* it has been told to get ready for the next run, */
    struct deadline ready_by; /* and has to be until then */

    /* Of a persistent sandbox. */
    const char *language; /* into the head; NULL: an image */
    bool keeps_variables; /* for cells */
    unsigned n_dealt;     /* calls that began or were refused since the main process was told, */
    int64_t ran_ms;       /* and how long programs ran that have ended since */
    uint32_t n_runs;      /* ids given to what calls run */
    struct psandbox_session sessions[PSANDBOX_SESSIONS];
    json_t *record; /* psandbox_record.h; NULL: the container has not started */
    struct output *log;
    int64_t idle_ms, total_ms;
    int64_t used_ms;        /* clock_mono_ms of the last use, */
    int64_t began_ms;       /* and of the start */
    struct deadline orphan; /* when it ends without a main process */
    bool paused, cannot_pause;
    int disk_tries;     /* counts of the disk in a row that were too much */
    char ending[80];    /* why it ends when nothing runs; "": it does not */
    const char *status; /* when it stops: "closed", "expired", "lost", and */
    char reason[sizeof((struct err *)0)->text];
};

/* supervisor_take.c: calls that come. */

/* {"do":"hand", "head": of a call}; of a run "queueMs", "runId", "imageId", "sandboxDir", too. */
void supervisor_take_call(void *owner, const json_t *message, int take_connection);
void supervisor_on_waiter(void *owner, void *item, uint32_t events); /* a loop_handler */
/* Frees waiters that are closed. What runs for a caller that left ends, or goes on and is kept. */
void calls_reap_waiters(struct supervisor *s);

/* supervisor_calls.c: how calls go on and end. */

/* Those whose time is over. Returns when there are more. */
struct deadline calls_tend(struct supervisor *s);
/* In the books from now on: it is waited for. */
void call_begin_run(struct supervisor *s, struct call *call, const struct awaited_run_plan *plan);
/* Records that the sandbox is its tenant's and is used now. */
void call_note_use(const struct supervisor *s, const struct call *call);
/* No caller waits for the call any more; may end it. */
void call_cancel(struct supervisor *s, struct call *call);
/* Ends what runs for it; it is answered when that has ended. */
void call_kill(struct supervisor *s, struct call *call, enum run_killed why);
/* The last message; the call is gone then, unless it is a run that has begun. */
void call_answer(struct supervisor *s, struct call *call, json_t *take_reply);
void call_refuse(struct supervisor *s, struct call *call, const struct err *e);
/* Every call of that operation gets the same. */
void calls_answer(struct supervisor *s, enum broker_op op, json_t *take_reply);
void call_remove(struct supervisor *s, struct call *call);
/* The runs that have not ended, for the main process (struct child's calls), without that of the
 * call but (NULL: all). */
json_t *calls_runs_new(const struct supervisor *s, const struct call *but);
/* A call to run something in a persistent sandbox has begun, or never will: tells the main process
 * how many. */
void calls_tell_dealt(struct supervisor *s);
/* How many calls run something or are queued to. */
size_t calls_busy(const struct supervisor *s);

/* supervisor_run.c: a run, which has its container for itself and turns the loop meanwhile. */

/* Notes its id and directory, as the main process has chosen them. */
int run_take_names(struct supervisor *s, struct call *call, const json_t *message, struct err *e);
int run_check(struct supervisor *s, struct call *call, struct err *e);
void run_begin(struct supervisor *s, struct call *call);
/* The run that has begun and can be served now; NULL: none. */
struct call *run_ready(const struct supervisor *s);
/* To its answer. */
void run_serve(struct supervisor *s, struct call *run);
/* {"do":"next"}: the main process hands nothing of the run over any more. */
void pool_container_on_next(void *owner, const json_t *message, int no_connection);
/* false: it has nothing to wait for any more. */
bool pool_container_goes_on(struct supervisor *s);
void pool_container_end(struct supervisor *s);

/* supervisor_index.c: a run that installs packages; its only network is our proxy to the package
 * index. The others do nothing for other runs. */

/* The index's address for the installer; NULL: it is no such run. */
const char *run_index_url(const struct call *run);
/* Sets its source. ERR_INVALID, ERR_LIMIT, ERR_DENIED. */
int run_check_index(const struct supervisor *s, struct call *run, struct err *e);
int run_open_index(const struct supervisor *s, struct call *run, struct err *e);
/* What the installer said, as members of the result. */
void run_add_installed(const struct call *run, json_t *result);
/* Ends the proxy, if there is one. */
void run_close_index(const struct supervisor *s, struct call *run);

/* supervisor_container.c: a container of the pool, from its start to the next run. */

/* Starts one that waits for its run. */
void warm_begin(struct supervisor *s);
/* How it has come while no program runs. */
void warm_on_tier(struct supervisor *s, const struct engine_wait *wait);
void pool_container_on_gone(struct supervisor *s, const struct err *e);
/* {"do":"preload"}, and with a higher limit of processor time {"do":"preload_fast"}. */
void warm_on_preload(void *owner, const json_t *message, int no_connection);
/* While it loads and no program runs in it, its limit of processor time is higher, if the engine
 * can change it. */
void pool_container_raise_cpu(struct supervisor *s);
/* The libraries that the program needs are there: it begins, within its limit. false: not in this
 * container. */
bool run_let_go(struct supervisor *s, struct call *run, uint32_t id);
/* Lets the run have the container that waits, or none. */
void run_use_container(struct supervisor *s, const struct call *run);
/* Runs it to its end in the warm container or a new one; in another if that was lost before it got
 * the program. 0: the run's outcome says how it went. */
int run_program(struct supervisor *s, struct call *run, const struct engine_command *program,
                struct err *e);
/* Whether the run's container may be one for further runs, too. */
bool run_may_share(const struct supervisor *s, const struct call *run);
/* Whether it may serve the next run, wiped if it has served this. ran: there is an outcome. */
bool run_leaves_container(const struct supervisor *s, const struct call *run, bool ran);
/* Nothing ran in it, and it may wait for another run. */
bool pool_container_stays(const struct supervisor *s);
/* Its wipe takes too long, or longer than a run should wait for it: then it is given up. */
void pool_container_look(struct supervisor *s);
void pool_container_tell_waiting(struct supervisor *s);

/* psandbox_life.c: a persistent sandbox, from its start to its end. */

/* Starts it, and answers its creator. Else it stops, and *e says why. */
void psandbox_begin(struct supervisor *s, struct err *e);
/* Its record, for its owner. */
json_t *psandbox_row_new(const struct supervisor *s);
/* Its idle time and its end. Returns when there is more. */
struct deadline psandbox_tend(struct supervisor *s);
/* Answers the calls that its end cuts off, with problem unless it had started. */
void psandbox_end(struct supervisor *s, const struct err *problem);

/* psandbox_container.c: its container and its record. */

/* Opens the sandbox directory, starts the container and makes the record. */
int psandbox_start(struct supervisor *s, struct err *e);
/* It ends, with that status. The first reason counts. */
void psandbox_stop(struct supervisor *s, const char *status, const char *reason);
void psandbox_write_record(struct supervisor *s);
/* Starts a command; ERR_LOST: the sandbox ends. */
int psandbox_send(struct supervisor *s, const struct engine_command *command, uint32_t *out_id,
                  struct err *e);
/* Kills a command, or a session's interpreter. */
void psandbox_kill_command(struct supervisor *s, uint32_t id);
int psandbox_unpause(struct supervisor *s, struct err *e);
void psandbox_pause(struct supervisor *s);

/*
 * psandbox_listing.c: lists the sandbox's files without stopping the loop: what takes long is done
 * in a child process. before: also checks the quota; else the run's over may be set, and files
 * removed. Calls done once, at once or from the loop.
 */
void psandbox_list_files(struct supervisor *s, struct call *call, bool before, call_listed *done);
/* Ends the child, if there is one. */
void psandbox_listing_clear(struct call *call);

/* psandbox_commands.c: the commands of a call. */

int psandbox_commands_check(struct supervisor *s, struct call *call, struct err *e);
void psandbox_commands_begin(struct supervisor *s, struct call *call);
/* The books of what a call runs in a persistent sandbox; language as in results. */
void psandbox_run_begin(struct supervisor *s, struct call *call, const char *language);
/* Its files are listed, so it may run: its time begins. Wakes the container. false: the call is
 * refused; for problem, when files is NULL. */
bool psandbox_run_start(struct supervisor *s, struct call *call, struct snapshot *files,
                        const struct err *problem);
void psandbox_command_ended(struct supervisor *s, struct call *call,
                            const struct engine_outcome *o);

/* psandbox_session.c: cells of an interpreter that keeps its variables. */

/* The one whose command has the id; NULL: none. */
struct psandbox_session *psandbox_session_with(struct supervisor *s, uint32_t id);
/* Ends this one and leaves the sandbox to the others. false: there are none, so it may as well be
 * closed. */
bool psandbox_session_reset(struct supervisor *s, const char *language);
int psandbox_cell_check(struct supervisor *s, struct call *call, struct err *e);
void psandbox_cell_begin(struct supervisor *s, struct call *call); /* it is queued */
/* Runs the next queued cell of each interpreter that is free. */
void psandbox_cell_next(struct supervisor *s);
/* What the interpreter wrote to its control channel. */
void psandbox_on_control(struct supervisor *s, struct psandbox_session *session, const char *data,
                         size_t len);
void psandbox_interpreter_ended(struct supervisor *s, struct psandbox_session *session,
                                const struct engine_outcome *o);
