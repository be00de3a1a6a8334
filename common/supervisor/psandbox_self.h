/* The parts of a persistent sandbox's process, for stay*.c only. */
#ifndef SANDCGI_SUPERVISOR_PSANDBOX_SELF_H
#define SANDCGI_SUPERVISOR_PSANDBOX_SELF_H

#include "common/records/psandbox_record.h"
#include "common/records/run_result.h"
#include "common/supervisor/broker_address.h"
#include "common/supervisor/output_stream.h"
#include "common/supervisor/psandbox.h"
#include "common/supervisor/waiters.h"

#define PSANDBOX_AT_ONCE 8 /* calls that run commands or wait to; more are busy */
#define PSANDBOX_HANGS_MS                                                                          \
    20000 /* behind its time a command that has not ended is given up, and so is                   \
             its container */
#define PSANDBOX_ORPHAN_MS  60000 /* without a main process it ends then */
#define PSANDBOX_LIVE_BYTES 262144u

enum psandbox_ask_kind { PSANDBOX_CREATE, PSANDBOX_EXEC, PSANDBOX_SESSION, PSANDBOX_CLOSE };

/* Why a command was killed. */
enum psandbox_why {
    PSANDBOX_NOT_KILLED,
    PSANDBOX_CANCELLED,
    PSANDBOX_TIMED_OUT,
    PSANDBOX_TOO_MUCH,
    PSANDBOX_BROKEN
};

/* A call. */
struct psandbox_ask {
    enum psandbox_ask_kind kind;
    struct waiter *waiter;      /* NULL: it has left */
    json_t *head, *body;        /* body NULL: still to come */
    struct run_request request; /* into them */
    int64_t came_ms;
    bool begun;
    enum psandbox_why why;
    uint32_t id;         /* of the command that runs; 0: none, as while a cell waits */
    size_t at;           /* the number of that command */
    struct deadline end; /* of all its commands */
    int64_t began_us;    /* of that command, or the cell */
    struct run_capture capture;
    struct output_ring *live; /* NULL: nobody listens */
    json_t *results;
    struct snapshot before;
};

/* The interpreter that keeps variables. */
struct psandbox_session {
    uint32_t id;               /* of its command; 0: it does not run */
    bool fresh;                /* it has not finished a cell */
    struct psandbox_ask *cell; /* that it works on; NULL: none */
    struct buf control;        /* what it said and is not whole */
    char lost[400]; /* why variables are gone, which their owner has not heard; "": none */
};

struct psandbox {
    const struct psandbox_start *start;
    const char *tenant, *conversation; /* into start->head, as the next */
    const char *language;              /* NULL: an image */
    bool keeps_variables;              /* a session's */
    struct engine *engine;
    struct engine_attend attend;
    int lock_fd, epoll_fd;
    int channel;                /* -1: the main process is gone */
    struct broker_address home; /* where the next one can be found */
    struct waiters waiters;
    struct psandbox_ask *asks[WAITERS_MAX];
    size_t n_asks;
    struct psandbox_session session;
    struct sandbox sandbox;
    json_t *record; /* psandbox_record.h; NULL: it has not begun */
    struct output_ring *log;
    int64_t idle_ms, total_ms;
    int64_t used_ms;        /* clock_mono_ms of the last use, */
    int64_t began_ms;       /* and of the start */
    struct deadline tick;   /* when output is told; never: none is there */
    struct deadline redial; /* when the next main process is sought */
    struct deadline orphan; /* when it ends without one */
    bool paused, cannot_pause;
    bool unread;        /* the engine has more to tell */
    bool ending;        /* the server stops: it ends when nothing runs */
    bool stop;          /* it ends now, */
    const char *status; /* with this status and */
    char reason[sizeof((struct err *)0)->text];
};

/* stay.c */

/* It ends, with that status ("closed", "expired", "lost"). The first reason stays. */
void psandbox_stop(struct psandbox *s, const char *status, const char *reason);
/* Writes down how it is. */
void psandbox_note(struct psandbox *s);

/* stay_channel.c: the main process, or the next one. */
void psandbox_hear_channel(struct psandbox *s);
void psandbox_redial(struct psandbox *s);
/* Says that it ends: whoever wants something new of it gets another. */
void psandbox_say_ended(const struct psandbox *s);
/* Takes no more from the channel but what is in it. */
void psandbox_close_channel(struct psandbox *s);

/* stay_asks.c: calls, from the connection to the answer. */

/* A call that the main process hands over, or the first one; takes the connection. */
void psandbox_take(struct psandbox *s, const json_t *head, int take_connection);
/* What happened on a waiter's connection. */
void psandbox_hear_waiter(struct psandbox *s, struct waiter *r, uint32_t events);
/* The last message; the ask is gone. Takes reply. */
void psandbox_answer(struct psandbox *s, struct psandbox_ask *ask, json_t *take_reply);
void psandbox_refuse(struct psandbox *s, struct psandbox_ask *ask, const struct err *e);
/* Everybody of that kind gets the same. */
void psandbox_answer_all(struct psandbox *s, enum psandbox_ask_kind kind, json_t *take_reply);
/* Forgets waiters that are gone. */
void psandbox_reap_waiters(struct psandbox *s);
/* How many calls run or wait for their turn. */
size_t psandbox_busy(const struct psandbox *s);

/* psandbox_exec.c: commands. */

/* The body is there. */
void psandbox_exec_begin(struct psandbox *s, struct psandbox_ask *ask);
/* Its command has ended. */
void psandbox_exec_ended(struct psandbox *s, struct psandbox_ask *ask,
                         const struct engine_outcome *o);
/* Ends what runs for it; it is answered when that has ended. */
void psandbox_kill(struct psandbox *s, struct psandbox_ask *ask, enum psandbox_why why);
/* The outcome in view of why it was killed. */
struct engine_outcome psandbox_outcome(const struct psandbox_ask *ask,
                                       const struct engine_outcome *o);
/* Checks what body and head say, which both kinds have in common. -1: the ask is to be refused. */
int psandbox_read_body(struct psandbox *s, struct psandbox_ask *ask, struct err *e);
/* Its capture, its listeners, the files of before. */
int psandbox_prepare(struct psandbox *s, struct psandbox_ask *ask, struct err *e);

/* Puts the conversation on its tenant's list. */
void psandbox_note_use(const struct psandbox *s);

/* psandbox_session.c: cells. */

/* Looks for the session before this one: its variables may be missed. */
void psandbox_session_look_back(struct psandbox *s);
void psandbox_cell_begin(struct psandbox *s, struct psandbox_ask *ask);
/* The next cell, if the interpreter is free. */
void psandbox_cell_next(struct psandbox *s);
void psandbox_session_control(struct psandbox *s, const char *data, size_t len);
/* The interpreter has ended. */
void psandbox_session_ended(struct psandbox *s, const struct engine_outcome *o);

/* stay_engine.c: the container. */

int psandbox_start_container(struct psandbox *s, struct err *e);
/* Takes in what it said. */
void psandbox_hear_engine(struct psandbox *s);
/* Sends a command on its way; 0 or -1 (ERR_LOST: then it ends). */
int psandbox_send(struct psandbox *s, const struct engine_command *command, uint32_t *out_id,
                  struct err *e);
int psandbox_wake(struct psandbox *s, struct err *e);
void psandbox_pause(struct psandbox *s);

#endif
