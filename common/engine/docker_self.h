/* What the parts of the Docker engine share; only they include this. The interface is engine.h. */
#pragma once

#include "common/engine/docker_http.h"
#include "common/engine/docker_stream.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"
#include "common/engine/frame.h"

#include <jansson.h>

#define DOCKER_SMALL_REPLY ((size_t)64 * 1024)
#define DOCKER_LARGE_REPLY ((size_t)8 * 1024 * 1024) /* an inspect or a list */
#define DOCKER_START_MS    30000 /* create, attach, start: an engine under load takes seconds */
#define DOCKER_QUESTION_MS 10000
#define DOCKER_REMOVE_MS   15000
#define DOCKER_PATIENCE_MS 1000 /* with an engine that refuses a removal, while others wait */

/*
 * docker_talk.c: the attach stream of a started container. Input goes in while output comes out;
 * memory does not grow with what programs print.
 */

#define TALK_READ_BYTES    65536
#define TALK_COMPLAINT_MAX 400
#define TALK_WARM_MAX      ((size_t)64 * 1024) /* bytes that a warm container may send in all */

enum talk_end {
    TALK_GOING_ON,
    TALK_ENDED,   /* the stream has ended, or nothing of a run can be sent any more */
    TALK_GARBLED, /* the container broke the protocol, or did not take the run */
};

/* How far a run is, by its container's words. */
enum run_step {
    RUN_HANDED, /* it may load, or begin */
    RUN_LOADS,
    RUN_HELD,
    RUN_GOES, /* it may begin */
    RUN_BEGUN,
};

struct talk {
    struct docker_stream *stream; /* owned; NULL: not connected */
    int protocol;
    struct buf input; /* what the container's stdin gets */
    size_t sent;      /* of it */
    size_t run_at;    /* where the run begins in it */
    bool lost;        /* the run has not begun, and will not: nothing of it went out, or complaint
                         says why */
    bool input_over;  /* a plain image has got it all */

    uint32_t last_id;
    uint32_t ids[ENGINE_COMMANDS_MAX]; /* of the commands that have not ended */
    size_t n_ids;
    uint32_t run_id;        /* of them; 0: none */
    struct deadline run_by; /* when its time is over */
    enum run_step run_step;

    size_t warm_bytes; /* received while it waits for a command */
    bool next;         /* it has been told to wipe; its answer is due */
    struct docker_frame frames;
    struct buf in; /* frames that came, and how much of them was given out as events */
    size_t taken;
    struct engine_wait wait;
    struct buf complaint; /* the beginning of the entry program's own stderr */
    struct err why;
};

/* Begins to talk with a container that is attached to take_stream. */
void talk_begin(struct talk *t, struct docker_stream *take_stream, int protocol);
/* Hangs up and forgets everything; fine on one that is all zero. */
void talk_clear(struct talk *t);
/* Sends what the connection takes of input now, and frees the memory when that is all. */
void talk_send(struct talk *t);
/* Where the command is in ids; n_ids when it has ended. */
size_t talk_find(const struct talk *t, uint32_t id);
/* Sends a run or a command. Plain images (protocol 0) see the end of stdin behind their code; for
 * others it stays open. ERR_INVALID, ERR_LIMIT. */
int talk_command(struct talk *t, const struct engine_command *command, struct err *e);
/* Takes one event in; TALK_GOING_ON with NOTHING: wait. TALK_ENDED, TALK_GARBLED. */
enum talk_end talk_read(struct talk *t, struct engine_event *out);

/* Lets the run begin. -1: ERR_LOST none is held, ERR_LIMIT. */
int talk_go(struct talk *t, uint32_t id, struct err *e);

/* Asks the container to wait for another run. -1: ERR_LOST, ERR_LIMIT. */
int talk_next(struct talk *t, struct err *e);

/* The one container that an engine object has. */
struct docker_container {
    char *name;  /* of what has to be removed; NULL: nothing. It is known before the engine has made
                    the container, so removal never needs a reply */
    char *image; /* for errors */
    char id[65];
    int cpu_fd;       /* of its cgroup; 0: not looked for, -1: there is none */
    bool psandbox;    /* its spec's */
    struct talk talk; /* talk.stream is NULL unless it is started and usable */
};

struct docker {
    struct engine engine; /* first: ops hand us a pointer to it */
    struct docker_http *http;
    struct docker_container container;
    const struct engine_attend *attend; /* of the start; borrowed */
    struct docker_stream *events;
};

/* docker_network.c: makes the network of a tier unless it is there; it has to be one. */
int docker_network(struct docker *d, enum network_tier tier, struct err *e);

/* The operations of engine.h. */
int docker_start(struct engine *engine, const struct engine_spec *spec,
                 const struct engine_attend *attend, struct deadline d, struct err *e);
int docker_limit_cpu(struct engine *engine, uint64_t cpu_milli, struct err *e);
int docker_exec(struct engine *engine, const struct engine_command *command, uint32_t *out_id,
                struct err *e);
int docker_read(struct engine *engine, struct engine_event *out, struct err *e);
int docker_control(struct engine *engine, uint32_t id, const char *data, size_t len, struct err *e);
int docker_go(struct engine *engine, uint32_t id, struct err *e);
int docker_kill(struct engine *engine, uint32_t id, struct err *e);
short docker_waits(struct engine *engine);
int docker_pause(struct engine *engine, bool pause, struct err *e);
int docker_reap(struct engine *engine, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                struct err *e);
int docker_memory(struct engine *engine, const char *instance,
                  void (*tell)(void *ctx, const char *run_id, uint64_t bytes), void *ctx,
                  struct err *e);
int docker_runners(struct engine *engine, const char *allow, struct engine_runners *out,
                   struct err *e);

/* method /containers/<id of the container><action>; as docker_http_call. */
int docker_container_call(struct docker *d, const char *method, const char *action, int timeout_ms,
                          struct buf *reply, struct err *e);
/* Removes the container, running or not. When the engine does not do so, another call tries again.
 */
void docker_container_remove(struct docker *d, int patience_ms);

/* Hangs up and forgets all but the name. */
void docker_container_clear(struct docker_container *container);
/* The engine's description of the container; NULL: it has none, or does not answer. */
json_t *docker_container_inspect(struct docker *d, int timeout_ms, struct err *e);

/* How a container has ended. */
struct docker_ending {
    bool found;
    bool out_of_memory;
    int exit_code;
};

/* Waits until the container has ended. ENGINE_EXITED when it has, or when the engine does not
 * answer. */
enum engine_end docker_wait_end(struct docker *d, struct deadline deadline);
void docker_inspect_end(struct docker *d, struct docker_ending *out);

/* Why the container ended before a program was handed over; returns -1. */
int docker_lost(const struct docker_container *container, struct err *e);

/* Kills and removes a container by name or id, with its anonymous volumes: 1 when this did it, 0
 * when it was gone or going already, -1. A refusal (5xx) is followed by another try for
 * patience_ms. */
int docker_remove(struct docker *d, const char *container, int patience_ms, struct err *e);
