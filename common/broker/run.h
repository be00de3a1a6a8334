/*
 * What a run is asked for and what comes of it: the structs on both sides of the broker's socket
 * and their JSON form (run_wire.c). Bounded by the limits in struct broker_limits; nothing in here
 * is an engine's or MCP's business.
 */
#ifndef SANDCGI_BROKER_RUN_H
#define SANDCGI_BROKER_RUN_H

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

/* Borrowed pointers throughout. */
struct run_request {
    const char *tenant;
    const char *conversation;
    const char *language;
    struct run_text code;
    struct run_text input; /* stdin; data NULL: none */
    bool network;
    uint64_t timeout_ms; /* 0: the default */
    uint64_t keep_bytes; /* of each output stream; 0: the setting (our own helper programs ask for
                            more) */
    const struct run_text *args;
    size_t n_args;
    const struct run_env *env;
    size_t n_env;
};

enum run_status {
    RUN_OK,
    RUN_ERROR, /* exit code other than 0 */
    RUN_TIMEOUT,
    RUN_OUT_OF_MEMORY,
    RUN_OUTPUT_LIMIT,
    RUN_KILLED, /* a signal, or somebody removed the container */
    RUN_BUSY,   /* not started: too many runs at the moment */
};

const char *
run_status_name(enum run_status s); /* "ok", "error", "timeout", … as in run_code's result */

#endif
