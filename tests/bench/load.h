/* A closed loop: n connections, each sending its next request when the reply to the last one is
 * complete. */
#pragma once

#include "common/base/buf.h"
#include "tests/bench/stats.h"

#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 256

struct load {
    const char *address;
    const struct buf *request;
    int connections;
    int duration_ms;
};

/* Requests per second; the time of each, in milliseconds, goes to times. Every reply has to be a
 * 200. */
double load_run(const struct load *l, struct samples *times);
