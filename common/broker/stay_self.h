/* The parts of a lasting sandbox's process, for stay*.c only. */
#ifndef SANDCGI_BROKER_STAY_SELF_H
#define SANDCGI_BROKER_STAY_SELF_H

#include "common/broker/home.h"
#include "common/broker/live_tell.h"
#include "common/broker/readers.h"
#include "common/broker/run_result.h"
#include "common/broker/stay.h"
#include "common/broker/stay_record.h"

#define STAY_AT_ONCE 8 /* calls that run commands or wait to; more are busy */
#define STAY_HANGS_MS                                                                              \
    20000 /* behind its time a command that has not ended is given up, and so is                   \
             its container */
#define STAY_ORPHAN_MS  60000 /* without a main process it ends then */
#define STAY_LIVE_BYTES 262144u

enum stay_ask_kind { STAY_CREATE, STAY_EXEC, STAY_SESSION, STAY_CLOSE };

/* Why a command was killed. */
enum stay_why { STAY_NOT_KILLED, STAY_CANCELLED, STAY_TIMED_OUT, STAY_TOO_MUCH, STAY_BROKEN };

/* A call. */
struct stay_ask {
    enum stay_ask_kind kind;
    struct reader *reader;      /* NULL: it has left */
    json_t *head, *body;        /* body NULL: still to come */
    struct run_request request; /* into them */
    int64_t came_ms;
    bool begun;
    enum stay_why why;
    uint32_t id;         /* of the command that runs; 0: none, as while a cell waits */
    size_t at;           /* the number of that command */
    struct deadline end; /* of all its commands */
    int64_t began_us;    /* of that command, or the cell */
    struct run_capture capture;
    struct live *live; /* NULL: nobody listens */
    json_t *results;
    struct snapshot before;
};

/* The interpreter that keeps variables. */
struct stay_session {
    uint32_t id;           /* of its command; 0: it does not run */
    bool fresh;            /* it has not finished a cell */
    struct stay_ask *cell; /* that it works on; NULL: none */
    struct buf control;    /* what it said and is not whole */
    char lost[400];        /* why variables are gone, which their owner has not heard; "": none */
};

struct stay {
    const struct stay_start *start;
    const char *tenant, *conversation; /* into start->head, as the next */
    const char *language;              /* NULL: an image */
    bool keeps_variables;              /* a session's */
    struct engine *engine;
    struct engine_attend attend;
    int lock_fd, epoll_fd;
    int channel;      /* -1: the main process is gone */
    struct home home; /* where the next one can be found */
    struct readers readers;
    struct stay_ask *asks[READERS_MAX];
    size_t n_asks;
    struct stay_session session;
    struct sandbox sandbox;
    json_t *record; /* stay_record.h; NULL: it has not begun */
    struct live *log;
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
void stay_stop(struct stay *s, const char *status, const char *reason);
/* Writes down how it is. */
void stay_note(struct stay *s);

/* stay_channel.c: the main process, or the next one. */
void stay_hear_channel(struct stay *s);
void stay_redial(struct stay *s);
/* Says that it ends: whoever wants something new of it gets another. */
void stay_say_ended(const struct stay *s);
/* Takes no more from the channel but what is in it. */
void stay_close_channel(struct stay *s);

/* stay_asks.c: calls, from the connection to the answer. */

/* A call that the main process hands over, or the first one; takes the connection. */
void stay_take(struct stay *s, const json_t *head, int take_connection);
/* What happened on a reader's connection. */
void stay_hear_reader(struct stay *s, struct reader *r, uint32_t events);
/* The last message; the ask is gone. Takes reply. */
void stay_answer(struct stay *s, struct stay_ask *ask, json_t *take_reply);
void stay_refuse(struct stay *s, struct stay_ask *ask, const struct err *e);
/* Everybody of that kind gets the same. */
void stay_answer_all(struct stay *s, enum stay_ask_kind kind, json_t *take_reply);
/* Forgets readers that are gone. */
void stay_bury_readers(struct stay *s);
/* How many calls run or wait for their turn. */
size_t stay_busy(const struct stay *s);

/* stay_exec.c: commands. */

/* The body is there. */
void stay_exec_begin(struct stay *s, struct stay_ask *ask);
/* Its command has ended. */
void stay_exec_ended(struct stay *s, struct stay_ask *ask, const struct engine_outcome *o);
/* Ends what runs for it; it is answered when that has ended. */
void stay_kill(struct stay *s, struct stay_ask *ask, enum stay_why why);
/* The outcome in view of why it was killed. */
struct engine_outcome stay_outcome(const struct stay_ask *ask, const struct engine_outcome *o);
/* Checks what body and head say, which both kinds have in common. -1: the ask is to be refused. */
int stay_read_body(struct stay *s, struct stay_ask *ask, struct err *e);
/* Its capture, its listeners, the files of before. */
int stay_prepare(struct stay *s, struct stay_ask *ask, struct err *e);

/* Puts the conversation on its tenant's list. */
void stay_note_use(const struct stay *s);

/* stay_session.c: cells. */

/* Looks for the session before this one: its variables may be missed. */
void stay_session_look_back(struct stay *s);
void stay_cell_begin(struct stay *s, struct stay_ask *ask);
/* The next cell, if the interpreter is free. */
void stay_cell_next(struct stay *s);
void stay_session_control(struct stay *s, const char *data, size_t len);
/* The interpreter has ended. */
void stay_session_ended(struct stay *s, const struct engine_outcome *o);

/* stay_engine.c: the container. */

int stay_start_container(struct stay *s, struct err *e);
/* Takes in what it said. */
void stay_hear_engine(struct stay *s);
/* Sends a command on its way; 0 or -1 (ERR_LOST: then it ends). */
int stay_send(struct stay *s, const struct engine_command *command, uint32_t *out_id,
              struct err *e);
int stay_wake(struct stay *s, struct err *e);
void stay_pause(struct stay *s);

#endif
