/*
 * What a run is asked for and what comes of it: the structs on both sides of the broker's socket
 * and their JSON form (wire.c). Bounded by the limits in struct broker_limits; nothing in here
 * is an engine's or MCP's business.
 */
#ifndef SANDCGI_PROTOCOL_RUN_H
#define SANDCGI_PROTOCOL_RUN_H

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_text {
    const char *data;
    size_t len;
};

struct run_env {
    const char *name;
    const char *value;
};

#define RUN_ID_LEN            24     /* hex digits */
#define RUN_LANGUAGE_MAX      32     /* bytes of a language's name */
#define PSANDBOX_ID_PREFIX    "sbx_" /* and a run id */
#define PSANDBOX_ID_LEN       (sizeof PSANDBOX_ID_PREFIX - 1 + RUN_ID_LEN)
#define PSANDBOX_ID_MAX       1024 /* bytes of a sandboxId in a call */
#define PSANDBOX_COMMANDS_MAX 20   /* of one call */
#define PSANDBOX_IMAGE_MAX    255

/* What is to run. Borrowed pointers throughout. */
struct run_request {
    const char *tenant;
    const char *conversation;
    const char *language;
    struct run_text code;
    struct run_text input; /* stdin; data NULL: none */
    bool network;
    bool index; /* args are packages to install: the image's installer runs, with the language's
                   package index as its only network; code, input and env are empty */
    uint64_t timeout_ms; /* 0: the default */
    uint64_t keep_bytes; /* of each output stream; 0: the setting (our own helper programs ask for
                            more) */
    const struct run_text *args;
    size_t n_args;
    const struct run_env *env;
    size_t n_env;
};

/* Whether a container of its own has to be made for it: none that waits will do. */
bool run_needs_new(const struct run_request *request);

/* How its caller wants to hear of it. Borrowed as well. */
struct run_options {
    uint64_t wait_ms; /* the answer comes by then, with status "running" if need be; 0: at the end.
                         What the run waits for its turn counts. */
    bool background;  /* the answer comes at once, with the run's id */
    bool live;        /* pieces of output come before the answer */
    bool detach;      /* the caller's leaving does not cancel the run: its result is kept */
    bool cancel_on_disconnect; /* a connection that breaks cancels it: nobody would come for the
                                  result */
    bool opened;               /* its first changed files come opened with the answer */
    bool session; /* in the persistent sandbox of the conversation that keeps its variables (made
                     when there is none): no wait_ms, background, stdin, args, env */
    const json_t *wants; /* names that the code imports, an array of strings; NULL: unknown */
};

enum run_status {
    RUN_RUNNING, /* not over yet */
    RUN_OK,
    RUN_ERROR, /* exit code other than 0 */
    RUN_TIMEOUT,
    RUN_OUT_OF_MEMORY,
    RUN_OUTPUT_LIMIT,
    RUN_KILLED,    /* a signal, or somebody removed the container */
    RUN_BUSY,      /* not started: too many runs at the moment */
    RUN_CANCELLED, /* ended because its caller, or cancel_run, said so */
    RUN_LOST,      /* who looked after it has died; nobody knows the outcome */
};

const char *
run_status_name(enum run_status s); /* "ok", "error", "timeout", … as in run_code's result */

#endif
