/*
 * The container engine behind one interface: starts a container, runs a program in it at once or
 * later (a warm container), and passes its output to a sink until a deadline or a cancellation.
 *
 * Implementation: docker.c (Docker Engine 20.10+ and Podman 4.3+ by their Docker-compatible REST
 * API). One engine object belongs to one process and has one container at a time: for one program,
 * or for any number of commands of a persistent sandbox (engine_spec.psandbox). A forked child
 * makes an object of its own.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits of one container. 0 means: as the engine's default, where that makes sense (fsize,
 * runtime). */
struct engine_limits {
    uint64_t cpu_milli;    /* thousandths of a CPU */
    uint64_t memory_bytes; /* memory = memory + swap */
    uint64_t pids;
    uint64_t tmp_bytes; /* size of the tmpfs /tmp */
    uint64_t nofile;
    uint64_t fsize_bytes;
};

/* Commands of one persistent sandbox at the same time. */
#define ENGINE_PSANDBOX_COMMANDS 64

/* The container: the fixed shape that no caller can weaken. All pointers are borrowed for the call.
 */
struct engine_spec {
    const char *image;      /* id or tag, from discovery, never from a client */
    const char *image_name; /* what errors call it; NULL: image */
    int protocol; /* 1: the image's entry program speaks sandbox.protocol=1; 0: code on stdin */
    const char *data_path; /* directory on the engine's host, bound to /data read-write */
    const char *user;      /* "uid:gid" */
    const char *instance;  /* label sandbox.instance: the server that owns the container */
    const char *run_id;    /* label sandbox.run; also part of the container's name */
    int64_t deadline_unix; /* label sandbox.deadline: the reaper may remove it after this second */
    const char *runtime;   /* "" = the engine's default */
    bool network;
    /*
     * NULL, or a directory on the engine's host with the socket of a package index (common/index):
     * it is bound to /run/index, and the image's installer runs instead of its interpreter. For
     * images with install.
     */
    const char *index_path;
    struct engine_limits limits;
    const char *const *env; /* "NAME=value", n_env; protocol 0 only: there it is the container's */
    size_t n_env;
    /* A persistent sandbox, which takes commands, whatever the image; protocol is ignored. */
    bool psandbox;
    const char
        *helpers_path; /* psandbox: directory of the helpers on the engine's host (helpers.h) */
    const char *alias; /* psandbox: a second mount of the sandbox directory ("/app"); NULL: none */
};

/* The program that a started container gets. All pointers are borrowed for the call. */
struct engine_program {
    const char *code;
    size_t code_len;
    const char *input; /* its stdin; protocol 1 only; may be NULL */
    size_t input_len;
    const char *const *args; /* n_args; protocol 1 only */
    size_t n_args;
    const char *const *env; /* "NAME=value", n_env; protocol 1 only */
    size_t n_env;
    uint64_t timeout_ms; /* from when it is handed over; 0: only run's deadline. The entry program
                            is told a second more, as a second line of defence. */
};

/*
 * The caller's descriptor, polled during every wait of the engine. tick has to take in what made fd
 * readable (or hung up), else it is called again at once. It returns false to cancel, and is not
 * called any more then. fd is read anew for every wait, -1 is none.
 */
struct engine_attend {
    int fd;
    bool (*tick)(void *ctx);
    void *ctx;
};

/* How far a warm container has come. */
enum engine_tier {
    ENGINE_TIER_NONE,  /* it is starting; plain images never get further */
    ENGINE_TIER_LIGHT, /* the interpreter has started */
    ENGINE_TIER_FULL,  /* and what preload named is there */
};

struct engine_wait {
    enum engine_tier tier;
    uint64_t
        memory_bytes; /* that its processes have for themselves, as it reports; 0: not reported */
};

enum engine_stream { ENGINE_STDOUT, ENGINE_STDERR };

/* Called with output as it arrives; data is only valid during the call. false: stop the run (too
 * much output). */
struct engine_sink {
    bool (*output)(void *ctx, enum engine_stream stream, const char *data, size_t len);
    void *ctx;
};

enum engine_end {
    ENGINE_EXITED,       /* exit_code or signal say how */
    ENGINE_TIMED_OUT,    /* the deadline passed; the container was killed */
    ENGINE_CANCELLED,    /* tick said so; the container was killed */
    ENGINE_OUTPUT_LIMIT, /* the sink said stop; the container was killed */
    ENGINE_KILLED, /* the container was ended from outside (an operator, the engine's restart) */
};

struct engine_outcome {
    enum engine_end end;
    int exit_code; /* -1 when ended by a signal */
    int signal;    /* 0 when not */
    bool out_of_memory;
    uint64_t cpu_us; /* 0 = not known */
    uint64_t peak_memory_bytes;
    bool warm;          /* it ran in a warm interpreter */
    int64_t started_us; /* clock_mono_us of: the code was handed over, */
    int64_t ended_us;   /* and the end was known */
};

/* A command of a persistent sandbox. All pointers are borrowed for the call. */
struct engine_command {
    const char *const *argv; /* n_argv, at least one; the first is looked up in the PATH */
    size_t n_argv;
    const char *cwd;        /* NULL: "/data" */
    const char *const *env; /* "NAME=value", n_env: the container's environment plus these */
    size_t n_env;
    const char *input; /* its stdin, whole; NULL: empty */
    size_t input_len;
    uint64_t timeout_ms; /* then it and what it started is killed; 0: none */
    bool control;        /* it gets descriptor 3, the other end of psandbox_control and
                            ENGINE_PSANDBOX_CONTROL */
};

enum engine_psandbox_kind {
    ENGINE_PSANDBOX_NOTHING, /* no more for now: wait for fd */
    ENGINE_PSANDBOX_UP,  /* the container takes commands; id is 0. Commands may be sent before */
    ENGINE_PSANDBOX_OUT, /* data: of the command's standard output */
    ENGINE_PSANDBOX_ERR, /* data: of its standard error */
    ENGINE_PSANDBOX_CONTROL, /* data: what it wrote to descriptor 3, after all it had printed before
                              */
    ENGINE_PSANDBOX_ENDED,   /* outcome; the last event of this id */
    ENGINE_PSANDBOX_FAILED,  /* it could not be started: data says why; the last event of this id */
};

struct engine_psandbox_event {
    enum engine_psandbox_kind kind;
    uint32_t id;
    const char *data; /* valid until the next call of any operation */
    size_t len;
    /* ENDED: end is EXITED or TIMED_OUT; peak_memory_bytes is that of the command's largest
     * process; out_of_memory: the kernel killed for lack of memory meanwhile, and the command
     * failed. */
    struct engine_outcome outcome;
};

/* A runner image found by its labels. Strings are owned by the list. */
struct engine_runner {
    char *language; /* [a-z0-9+#._-]{1,32} */
    char *image;    /* "repository:tag" */
    char *image_id;
    int protocol;
    char *version;   /* of the interpreter; "" unknown */
    char *libraries; /* "name=version name=version"; "" none */
    bool warm;       /* label sandbox.warm: containers can be started before a run */
    bool install;    /* label sandbox.install: it can install packages */
    char *preload;   /* label sandbox.preload: names for the full tier; "" none */
    int64_t created; /* unix seconds; the newest image of a language wins */
};

struct engine_runners {
    struct engine_runner *items; /* sorted by language, one per language */
    size_t n;
};

struct engine;

struct engine_ops {
    /*
     * Makes a container of spec and starts it; it is warm then. The container that this object had
     * before is removed first. -1: it could not be made, and nothing is left behind:
     * ERR_UNAVAILABLE engine down, ERR_NOT_FOUND the image or a directory is missing (which is
     * never made), ERR_REFUSED the engine's words, ERR_TIMEOUT, ERR_CANCELLED tick said so. The
     * engine's answer to a create under way is awaited even then (it has 30 s), since an unanswered
     * one may still make a container.
     */
    int (*start)(struct engine *, const struct engine_spec *, const struct engine_attend *,
                 struct deadline, struct err *);
    /* Becomes readable when there is something for look to take in; -1: nothing is started. */
    int (*fd)(struct engine *);
    /*
     * Takes in what came from the warm container, without blocking; *out is its state. Call it
     * after start, too: something may have come already. -1: the container is not usable any more:
     * ERR_LOST it ended, ERR_REFUSED its entry program said why, ERR_PROTOCOL.
     */
    int (*look)(struct engine *, struct engine_wait *out, struct err *);
    /* Has the warm container import names (the image's label, blank-separated). Once at
     * most, for images that have preload. */
    int (*preload)(struct engine *, const char *names, struct err *);
    /*
     * Hands program to the started container and takes its output to its end; the container serves
     * no other. 0 when a program ran (outcome tells how it ended), and then nothing of it is alive.
     * -1 when it did not run: ERR_LOST the container was gone before any byte was handed over, so
     * another one may be tried; else as start, ERR_LIMIT the program is too large. The deadline is
     * for all of it; the program has timeout_ms within it.
     */
    int (*run)(struct engine *, const struct engine_program *, const struct engine_sink *,
               const struct engine_attend *, struct deadline, struct engine_outcome *out,
               struct err *);
    /* Removes the container, warm or done; call it after the answer has been sent. Idempotent.
     */
    void (*finish)(struct engine *);
    /* The version of the API that was agreed on, "" as long as no call has been made. Borrowed. */
    const char *(*version)(struct engine *);
    /*
     * The next six are for persistent sandboxes: start with spec.psandbox, then any number of
     * commands at a time up to ENGINE_PSANDBOX_COMMANDS, until finish. All but psandbox_pause only
     * send or take what is possible at once, without waiting. ERR_LOST: there is no such
     * container (any more).
     *
     * Sends a command; *out_id names it from now on and is never used again. ERR_LIMIT:
     * too many run, or it is too large; ERR_INVALID.
     */
    int (*psandbox_exec)(struct engine *, const struct engine_command *, uint32_t *out_id,
                         struct err *);
    /*
     * Takes in what came and sends what is left to send. 0: *out is one event, call it again until
     * that is ENGINE_PSANDBOX_NOTHING. -1: the container is not usable any more, and no command's
     * end is known: ERR_LOST it ended (the text tells how, as far as the engine knows), ERR_REFUSED
     * its entry program said why, ERR_PROTOCOL.
     */
    int (*psandbox_read)(struct engine *, struct engine_psandbox_event *out, struct err *);
    /* Writes to the command's descriptor 3. No error when the command has ended meanwhile. */
    int (*psandbox_control)(struct engine *, uint32_t id, const char *data, size_t len,
                            struct err *);
    /* Kills the command with everything it started that has not left its session and its tree; its
     * end comes as an event. No error when it has ended meanwhile. */
    int (*psandbox_kill)(struct engine *, uint32_t id, struct err *);
    /* What fd is to be polled for: POLLIN, and POLLOUT while something is left to send. */
    short (*psandbox_waits)(struct engine *);
    /* Freezes all processes of the container; false: lets them go on. Timers of commands pass
     * meanwhile. 0 too when it is so already. */
    int (*psandbox_pause)(struct engine *, bool pause, struct err *);
    /* Lists runner images (labels sandbox.runner=true, sandbox.language) in the repositories of
     * allow. */
    int (*runners)(struct engine *, const char *allow, struct engine_runners *out, struct err *);
    /*
     * Looks at every container with our labels and this instance's, never another's, running or
     * not, and removes those for which orphan says so. Returns how many were removed, or -1; *seen
     * is how many there were.
     */
    int (*reap)(struct engine *, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                size_t *seen, struct err *);
    /*
     * A descriptor that becomes readable when images come or go (an open event stream); drain it
     * with watch_drain, which returns false when the stream has ended and a new one is needed.
     */
    int (*watch)(struct engine *, struct err *);
    bool (*watch_drain)(struct engine *);
    void (*free)(struct engine *);
};

struct engine {
    const struct engine_ops *ops;
};

void engine_runners_clear(struct engine_runners *r);

/* Where the engine is, from the settings; "" = unset. */
struct engine_address {
    const char *host; /* unix:///path, tcp://host:port; "" = unix:///var/run/docker.sock */
    bool tls_verify;
    const char *cert_path; /* directory with ca.pem, cert.pem, key.pem */
    const char *version;   /* what another engine object has agreed on (ops->version); NULL or "":
                              the first call asks. An outdated one makes calls fail. */
};

/* Does once what every process that is forked later would have to do again: a millisecond of each
 * start. May be left out. */
void docker_engine_set_up(void);

/* A Docker/Podman engine at that address; connects lazily, so an engine that is down is no error
 * here. */
struct engine *docker_engine_new(const struct engine_address *, struct err *);

/* Is image's repository (without tag and registry default) in the comma-separated list, where a
 * trailing '*' matches any rest? */
bool engine_image_allowed(const char *allow, const char *image);
