/* The parts of a persistent sandbox's process, for psandbox_*.c only. */
#pragma once

#include "common/records/psandbox_record.h"
#include "common/supervisor/awaited_run.h"
#include "common/supervisor/container.h"

#define PSANDBOX_CALLS_MAX 16    /* of any kind; a call may outlive its waiter */
#define PSANDBOX_AT_ONCE   8     /* of them, calls that run something or are queued to */
#define PSANDBOX_HANGS_MS  20000 /* for a killed command to end; then the container is given up */
#define PSANDBOX_ORPHAN_MS 60000 /* how long it goes on without a main process */

enum psandbox_kind { PSANDBOX_CREATE, PSANDBOX_EXEC, PSANDBOX_SESSION, PSANDBOX_CLOSE };

enum psandbox_phase {
    PSANDBOX_QUEUED,  /* its body is to come; a cell waits for the interpreter */
    PSANDBOX_BEFORE,  /* the files before it are listed */
    PSANDBOX_RUNNING, /* its commands, or its cell */
    PSANDBOX_AFTER,   /* the files after it are listed */
};

struct psandbox;
struct psandbox_call;

/* files is NULL when e says why there is no listing; may be taken. May end the call. */
typedef void psandbox_listed(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                             const struct err *e);

struct psandbox_call {
    enum psandbox_kind kind;
    enum psandbox_phase phase;
    struct waiter *waiter;  /* NULL: it has left */
    struct awaited_run run; /* what it runs; begins when the body is there */
    int64_t came_ms;
    uint32_t id;           /* of the command that runs; 0: none, as for a cell */
    size_t at;             /* index of that command */
    struct deadline end;   /* of all its commands; once killed, of the container's time to obey */
    int64_t began_us;      /* of that command, or the cell */
    struct output *output; /* of that command; NULL: none has run */
    json_t *results;       /* rows of commands; fields that a cell's result has besides */
    struct {
        struct side_process lister;
        struct buf text;
        psandbox_listed *done;
    } listing; /* psandbox_listing.c */
};

/* The interpreter that keeps variables. */
struct psandbox_session {
    uint32_t id;                /* of its command; 0: it does not run */
    bool fresh;                 /* it has not finished a cell */
    struct psandbox_call *cell; /* that it works on; NULL: none */
    struct buf control;         /* the beginning of a record */
    char lost[400];             /* why variables are gone: for the next result; "": none are */
};

struct psandbox {
    struct container base;             /* first; it stops: it ends now */
    const char *tenant, *conversation; /* into the head, as the next */
    const char *language;              /* NULL: an image */
    bool keeps_variables;              /* for cells */
    struct psandbox_call *calls[PSANDBOX_CALLS_MAX];
    size_t n_calls;
    unsigned n_dealt; /* calls that began or were refused since the main process was told, */
    int64_t ran_ms;   /* and how long programs ran that have ended since */
    uint32_t n_runs;  /* ids given to what calls run */
    struct psandbox_session session;
    struct sandbox sandbox;
    json_t *record; /* psandbox_record.h; NULL: the container has not started */
    struct output *log;
    int64_t idle_ms, total_ms;
    int64_t used_ms;        /* clock_mono_ms of the last use, */
    int64_t began_ms;       /* and of the start */
    struct deadline orphan; /* when it ends without a main process */
    bool paused, cannot_pause;
    int disk_tries;     /* counts of the disk in a row that were too much */
    bool ending;        /* the server stops: it ends when nothing runs */
    const char *status; /* when it stops: "closed", "expired", "lost", and */
    char reason[sizeof((struct err *)0)->text];
};

/* psandbox_container.c: the container, and the record of the sandbox. */

/* It ends, with that status. The first reason counts. */
void psandbox_stop(struct psandbox *s, const char *status, const char *reason);
json_t *psandbox_row_new(const struct psandbox *s); /* for its owner */
void psandbox_write_record(struct psandbox *s);
/* Records the sandbox as its tenant's and as used now. */
void psandbox_note_use(const struct psandbox *s);
/* Opens the sandbox directory, starts the container and makes the record. */
int psandbox_start(struct psandbox *s, struct err *e);
/* Starts a command; ERR_LOST: the sandbox ends. */
int psandbox_send(struct psandbox *s, const struct engine_command *command, uint32_t *out_id,
                  struct err *e);
/* Kills a command, or a session's interpreter. */
void psandbox_kill_command(struct psandbox *s, uint32_t id);
int psandbox_unpause(struct psandbox *s, struct err *e);
void psandbox_pause(struct psandbox *s);

/*
 * psandbox_listing.c: lists the sandbox's files without stopping the loop: what takes long is done
 * in a child process. before: also checks the quota; else the run's over may be set, and files
 * removed. Calls done once, at once or from the loop.
 */
void psandbox_list_files(struct psandbox *s, struct psandbox_call *call, bool before,
                         psandbox_listed *done);
/* Ends the child, if there is one. */
void psandbox_listing_clear(struct psandbox_call *call);

/* psandbox_calls.c: calls, from the connection to the answer. */

/* {"head": of a call}. */
void psandbox_take_call(void *owner, const json_t *message, int take_connection);
struct psandbox_call *psandbox_call_of(const struct psandbox *s, const struct waiter *r);
/* What runs for it ends. */
void psandbox_cancel(struct psandbox *s, struct psandbox_call *call);
/* The connection of its caller is closed: what runs for it ends, or goes on and is kept. */
void psandbox_caller_left(struct psandbox *s, struct psandbox_call *call);
/* Checks the body of a call, whose run begins then; -1: the call is to be refused. */
int psandbox_read_body(struct psandbox *s, struct psandbox_call *call, struct err *e);
/* Its files are listed, so it may run: its time begins. Wakes the container. false: the call is
 * refused; for problem, when files is NULL. */
bool psandbox_call_run(struct psandbox *s, struct psandbox_call *call, struct snapshot *files,
                       const struct err *problem);
/* The last message; the call is gone then. */
void psandbox_answer(struct psandbox *s, struct psandbox_call *call, json_t *take_reply);
void psandbox_refuse(struct psandbox *s, struct psandbox_call *call, const struct err *e);
/* Every call of that kind gets the same. */
void psandbox_answer_all(struct psandbox *s, enum psandbox_kind kind, json_t *take_reply);
/* The runs that have not ended, for the main process (struct child's calls), without that of the
 * call but (NULL: all). */
json_t *psandbox_runs_new(const struct psandbox *s, const struct psandbox_call *but);
/* How many calls run something or are queued to. */
size_t psandbox_busy(const struct psandbox *s);
/* Ends what runs for it; it is answered when that has ended. */
void psandbox_kill(struct psandbox *s, struct psandbox_call *call, enum run_killed why);

/* psandbox_commands.c */

/* Runs the commands of a call whose body is there. */
void psandbox_exec(struct psandbox *s, struct psandbox_call *call);
void psandbox_command_ended(struct psandbox *s, struct psandbox_call *call,
                            const struct engine_outcome *o);

/* psandbox_session.c: cells of an interpreter that keeps its variables. */

/* Looks for the session before this one: its variables may be missed. */
void psandbox_session_look_back(struct psandbox *s);
/* Refuses a cell whose head or body is wrong; others are queued. */
void psandbox_cell_check(struct psandbox *s, struct psandbox_call *call);
/* Runs the next queued cell, if the interpreter is free. */
void psandbox_cell_next(struct psandbox *s);
/* What the interpreter wrote to its control channel. */
void psandbox_on_control(struct psandbox *s, const char *data, size_t len);
void psandbox_interpreter_ended(struct psandbox *s, const struct engine_outcome *o);
