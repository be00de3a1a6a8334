/* A run's request, options and status, on both sides of the broker's socket (JSON form: wire.c). */
#pragma once

#include "common/base/err.h"
#include "common/base/network.h"

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

/* A program to run. All pointers are borrowed. */
struct run_request {
    const char *tenant;
    const char *conversation;
    const char *language;
    enum network_tier network;
    bool single_use; /* in a container that serves no other run, before or after */
    bool index;      /* install the packages args: the language's package index is the only network;
                        code, input and env are empty */
    uint64_t timeout_ms; /* 0: the default */
    uint64_t keep_bytes; /* of each output stream; 0: the setting */
    /* In its body (run_body.h), as a supervisor has it. */
    struct run_text code;
    struct run_text input; /* stdin */
    const struct run_text *args;
    size_t n_args;
    const struct run_env *env;
    size_t n_env;
};

/* Whether no warm container can serve it. */
bool run_needs_new(const struct run_request *request);

/* When and how the caller is answered. */
struct run_options {
    uint64_t wait_ms; /* until the answer, time in the queue included; its status may be "running";
                         0: at the end */
    bool background;  /* the answer comes at once, with the run's id */
    bool live;        /* pieces of output come before the answer */
    bool detach;      /* the run outlives its connection: its result is kept */
    bool cancel_on_disconnect;
    bool open_files;    /* descriptors of the first changed files come with the answer */
    uint64_t keep_over; /* the result is kept when the program has printed more bytes; 0: not for
                           that */
    bool session;       /* in the conversation's persistent sandbox that keeps variables */
    enum network_tier session_network; /* that such a sandbox may have, though the run wants none */
    const json_t *imports; /* names that the code imports, an array of strings; NULL: unknown */
};

enum run_status {
    RUN_RUNNING, /* not over yet */
    RUN_OK,
    RUN_ERROR, /* exit code other than 0 */
    RUN_TIMEOUT,
    RUN_OUT_OF_MEMORY,
    RUN_OUTPUT_LIMIT,
    RUN_DISK_LIMIT, /* its files passed a bound, and what was too much is removed */
    RUN_KILLED,     /* by a signal, or the container was removed */
    RUN_BUSY,       /* not started: too many runs at the moment */
    RUN_CANCELLED,  /* by its caller or cancel_run */
    RUN_LOST,       /* its supervisor died: the outcome is unknown */
};

/* "ok", "error", "timeout", … as in run_code's result */
const char *run_status_name(enum run_status s);
