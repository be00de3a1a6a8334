/*
 * The container engine: starts a container, and hands it runs and commands, at once or later.
 * docker.c implements it for Docker Engine 20.10+ and Podman 4.3+. An engine object belongs to one
 * process and has one container at a time.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of one container; 0: the engine's default. */
struct engine_limits {
    uint64_t cpu_milli;    /* thousandths of a CPU */
    uint64_t memory_bytes; /* memory = memory + swap */
    uint64_t pids;
    uint64_t tmp_bytes; /* size of the tmpfs /tmp */
    uint64_t nofile;
    uint64_t fsize_bytes;
};

/* Commands of one container at the same time. */
#define ENGINE_COMMANDS_MAX 64

/* The container. Pointers are borrowed for the call, as in all structs below. */
struct engine_spec {
    const char *image;      /* id or tag, from discovery, never from a client */
    const char *image_name; /* what errors call it; NULL: image */
    int protocol; /* of the image's entry program: sandbox.protocol=2 or 3; 0: code on stdin */
    const char *data_path; /* directory on the engine's host, bound to /data read-write */
    const char *user;      /* "uid:gid" */
    const char *instance;  /* label sandbox.instance: the server that owns the container */
    const char *run_id;    /* label sandbox.run; also part of the container's name */
    int64_t deadline_unix; /* label sandbox.deadline: the reaper may remove it after this second */
    const char *runtime;   /* "" = the engine's default */
    /* Other than NETWORK_NONE: a network of ours, which is made unless it is there. Its bridge has
     * a name that the firewall rules of nginx/setup/network.sh know. */
    enum network_tier network;
    const char *dns; /* addresses of its name servers, separated by commas; NULL: the engine's */
    /* NULL, or a directory on the engine's host with the socket of a package index (common/index),
     * bound to /run/index: the image's installer, which is language's unless that is NULL, runs
     * instead of its interpreter. */
    const char *index_path;
    const char *language;
    struct engine_limits limits;
    const char *const *env; /* "NAME=value", n_env; protocol 0 only: there it is the container's */
    size_t n_env;
    const char *helpers_path; /* directory of the helpers on the engine's host (helpers.h) */
    /* A persistent sandbox, which takes commands, whatever the image; protocol is ignored. */
    bool psandbox;
    const char *alias; /* psandbox: a second mount of the sandbox directory ("/app"); NULL: none */
};

/* The caller's descriptor (-1: none), polled while the engine waits for a container's start, and
 * for the end of one whose stream has ended. tick takes in what made it readable; false cancels. */
struct engine_attend {
    int fd;
    bool (*tick)(void *ctx);
    void *ctx;
};

/* How far a warm container has come. */
enum engine_tier {
    ENGINE_TIER_NONE,      /* it is starting; plain images never get further */
    ENGINE_TIER_STARTED,   /* the interpreter has started */
    ENGINE_TIER_PRELOADED, /* and what preload named is there */
};

struct engine_wait {
    enum engine_tier tier;
    uint64_t memory_bytes; /* that its processes do not share; 0: not reported */
};

enum engine_stream { ENGINE_STDOUT, ENGINE_STDERR };

enum engine_end {
    ENGINE_EXITED,    /* exit_code or signal say how */
    ENGINE_TIMED_OUT, /* the deadline passed; the container was killed */
    ENGINE_KILLED,    /* the container was ended from outside (an operator, the engine's restart) */
    /* Why its caller killed it: */
    ENGINE_CANCELLED,
    ENGINE_OUTPUT_LIMIT,
    ENGINE_DISK_LIMIT, /* files took too much */
};

/* Files that a run has left where they are removed: paths, a line each. */
#define ENGINE_LEFT_PATHS    5
#define ENGINE_LEFT_PATH_MAX 200

struct engine_outcome {
    enum engine_end end;
    int exit_code; /* -1 when ended by a signal */
    int signal;    /* 0 when not */
    bool out_of_memory;
    uint64_t cpu_us; /* 0 = not known */
    uint64_t peak_memory_bytes;
    char left[ENGINE_LEFT_PATHS * (ENGINE_LEFT_PATH_MAX + 1) + 1];
    uint64_t left_omitted; /* more of them */
    /* Its caller's: */
    bool warm;          /* it ran in a warm interpreter */
    int64_t started_us; /* clock_mono_us of: it was handed over, */
    int64_t ended_us;   /* and the end was known */
};

/* What a container starts: a command, or a run, which is a program in a language of the image's and
 * ends everything else in the container. Plain images get the code only. */
struct engine_command {
    bool run;
    const char *language; /* of a run in a container of protocol 3; NULL: the image's first */
    /* Whole records (common/protocol/entry_record.h), whatever their ids: 'C', a run's code, then
     * 'I', the standard input. */
    const char *streams;
    size_t streams_len;
    /* n_argv: of a command, at least one, the first is looked up in the PATH; of a run, behind its
     * program's name */
    const char *const *argv;
    size_t n_argv;
    const char *cwd;        /* NULL: "/data" */
    const char *const *env; /* "NAME=value", n_env: the container's environment plus these */
    size_t n_env;
    /* Then it and what it started is killed; 0: never. A run's begins when it is handed over. */
    uint64_t timeout_ms;
    bool control;     /* of a command: descriptor 3 is the other end of control */
    const char *load; /* of a run: names of engine_runner.preload that it needs, which the container
                         keeps for those that follow; NULL or "": none. Where they are not there
                         yet, LOADING and LOADED come, and the run is held until go */
};

enum engine_event_kind {
    ENGINE_EVENT_NOTHING, /* no more for now: wait for fd */
    ENGINE_EVENT_TIER, /* wait; id is 0. Runs and commands may be sent before. Of protocol 3, again
                          with other memory */
    ENGINE_EVENT_LOADING, /* of a run: what it needs is being imported. Once, before BEGUN */
    ENGINE_EVENT_LOADED,  /* that is over, and nothing of the run begins before go */
    ENGINE_EVENT_BEGUN,   /* of a run: warm */
    ENGINE_EVENT_OUT,     /* data: of the command's standard output */
    ENGINE_EVENT_ERR,     /* data: of its standard error */
    ENGINE_EVENT_CONTROL, /* data: what it wrote to descriptor 3, in order with its output */
    ENGINE_EVENT_ENDED,   /* outcome; the last event of this id */
    ENGINE_EVENT_FAILED,  /* it could not be started: data says why; the last event of this id */
};

struct engine_event {
    enum engine_event_kind kind;
    uint32_t id;
    const char *data; /* valid until the next call of any operation */
    size_t len;
    struct engine_wait wait;
    bool warm;                     /* BEGUN: in the warm interpreter, not in a new one */
    struct engine_outcome outcome; /* ENDED: EXITED or TIMED_OUT, of a run KILLED, too; a command's
                                      memory is its largest process's */
};

#define ENGINE_PRELOAD_MAX 1024 /* bytes of engine_runner.preload */

/* A language of a runner image found by its labels. Strings are owned by the list. */
struct engine_runner {
    char *language; /* [a-z0-9+#._-]{1,32} */
    char *image;    /* "repository:tag" */
    char *image_id;
    int protocol;    /* 0: code on stdin; from 3 on it is told the language of a run */
    char *version;   /* of the interpreter; "" unknown */
    char *libraries; /* "name=version name=version"; "" none */
    bool warm;       /* label sandbox.warm: containers can be started before a run */
    bool install;    /* label sandbox.install: it can install packages */
    char *preload;   /* label sandbox.preload: names for the full tier; "" none, as in all but the
                        image's first language */
    bool load;       /* label sandbox.load: a run may say which of them it needs, and is held */
    int64_t created; /* unix seconds; the newest image of a language wins */
};

struct engine_runners {
    struct engine_runner *items; /* sorted by language, one per language */
    size_t n;
};

/* What the image's containers call its language; NULL: they have no name for it. */
const char *engine_runner_language(const struct engine_runner *runner);

struct engine;

struct engine_ops {
    /*
     * Removes the container that the object had, makes one of spec and starts it. -1, and nothing
     * is left: ERR_UNAVAILABLE engine down, ERR_NOT_FOUND the image or a directory is missing,
     * ERR_REFUSED the engine's words, ERR_TIMEOUT, ERR_CANCELLED. A create under way is awaited
     * even then (up to 30 s): unanswered it might still make a container.
     */
    int (*start)(struct engine *, const struct engine_spec *, const struct engine_attend *,
                 struct deadline, struct err *);
    /* To be polled for what waits says, then read; -1: nothing is started. */
    int (*fd)(struct engine *);
    /* Has the warm container import names (engine_runner.preload), once. */
    int (*preload)(struct engine *, const char *names, struct err *);
    /* Gives the container another limit of processor time. 0: the engine confirms it. -1:
     * ERR_REFUSED and ERR_NOT_FOUND say that the engine cannot, and the limit is as before; after
     * other errors it is not known. */
    int (*limit_cpu)(struct engine *, uint64_t cpu_milli, struct err *);
    /* Has the container made ready for another run: what the last one left is removed, and proved
     * to be. Then a TIER is due again. -1 of next: there is no container that a run's report has
     * left; of read then: ERR_REFUSED it is not as it was, in the entry program's words. */
    int (*next)(struct engine *, struct err *);
    /* Processor time of all that has run in the container; 0: it cannot be seen from here, or the
     * container has ended. Without the engine, in microseconds. */
    uint64_t (*cpu_us)(struct engine *);
    /* Removes the container, if there is one. */
    void (*finish)(struct engine *);
    /* What its calls have found out; all zero as long as no call has been made. Borrowed. */
    const struct engine_facts *(*facts)(struct engine *);
    /*
     * The next seven talk with the container. All but pause only send or take what is possible at
     * once. ERR_LOST: there is no container (any more).
     *
     * Sends a run, one at a time, or a command; *out_id is never used again. ERR_LIMIT: too many
     * run, or it is too large.
     */
    int (*exec)(struct engine *, const struct engine_command *, uint32_t *out_id, struct err *);
    /* Sends what is left to send and takes one event; to be called until that is NOTHING. -1: the
     * container cannot be used: ERR_LOST it ended (sys ENOMEM: for want of memory), ERR_REFUSED its
     * entry program's words, ERR_PROTOCOL; no command's end is known, and a run has not begun:
     * another container may take it. Else the end of a container with a run is the run's: after any
     * end but a report, the container is removed. Waits for the engine to tell how it has ended,
     * until the run's time is over. */
    int (*read)(struct engine *, struct engine_event *out, struct err *);
    /* Writes to the command's descriptor 3. 0, too, when the command has ended, as for kill. */
    int (*control)(struct engine *, uint32_t id, const char *data, size_t len, struct err *);
    /* Lets the run begin that is held. ERR_LOST, too, when none is. */
    int (*go)(struct engine *, uint32_t id, struct err *);
    /* Kills the command and what it started in its session or its tree; its end is an event. */
    int (*kill)(struct engine *, uint32_t id, struct err *);
    /* What fd is to be polled for: POLLIN, and POLLOUT while something is left to send. */
    short (*waits)(struct engine *);
    /* Freezes all processes of the container, or lets them go on; their timers go on. */
    int (*pause)(struct engine *, bool pause, struct err *);
    /* Lists runner images in the repositories of allow. */
    int (*runners)(struct engine *, const char *allow, struct engine_runners *out, struct err *);
    /* Removes those of the instance's containers that orphan names. Returns how many, or -1. */
    int (*reap)(struct engine *, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                struct err *);
    /* Tells of each of the instance's containers how much memory the kernel charges to it, as far
     * as that can be seen from here; run_id as for reap. */
    int (*memory)(struct engine *, const char *instance,
                  void (*tell)(void *ctx, const char *run_id, uint64_t bytes), void *ctx,
                  struct err *);
    /* A descriptor that is readable when images came or went, until watch_drain; that returns
     * false when the stream has ended and a new one is needed. */
    int (*watch)(struct engine *, struct err *);
    bool (*watch_drain)(struct engine *);
    void (*free)(struct engine *);
};

struct engine {
    const struct engine_ops *ops;
};

void engine_runner_clear(struct engine_runner *r);
void engine_runners_clear(struct engine_runners *r);
/* NULL: no image runs the language. */
const struct engine_runner *engine_runners_find(const struct engine_runners *r,
                                                const char *language);

/* About the engine: asked for once, then given to the engine objects of other processes. */
struct engine_facts {
    char version[16]; /* of the API, "/v1.41"; "": not known, the first call asks */
    bool podman, rootless;
};

/* Where the engine is, from the settings; "" = unset. */
struct engine_address {
    const char *host; /* unix:///path, tcp://host:port; "" = unix:///var/run/docker.sock */
    bool tls_verify;
    const char *cert_path;     /* directory with ca.pem, cert.pem, key.pem */
    int limit_ms;              /* of all requests together; 0: each has its own alone */
    struct engine_facts facts; /* of another engine object (ops->facts), or all zero. Outdated ones
                                  make calls fail. */
};

/* Does once what each forked process would do again, in a millisecond of its start. */
void docker_engine_set_up(void);

/* Is it of a form that the following takes, and can its certificates be read? ERR_INVALID names the
 * variable. */
int docker_address_check(const struct engine_address *, struct err *);

/* Connects with the first call. */
struct engine *docker_engine_new(const struct engine_address *, struct err *);

/* Is image's repository (without tag and registry default) in the comma-separated list, where a
 * trailing '*' matches any rest? */
bool engine_image_allowed(const char *allow, const char *image);
