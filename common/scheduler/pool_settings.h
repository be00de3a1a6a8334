/* How many containers wait, as SANDBOX_WARM and SANDBOX_WARM_MEMORY say it. */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_LANGUAGES_MAX    16
#define POOL_LANGUAGE_NAME    32  /* bytes of a language's name */
#define POOL_PER_LANGUAGE_MAX 200 /* containers that may wait for one */

struct pool_language {
    char language[POOL_LANGUAGE_NAME + 1];
    size_t n; /* containers that wait, at least 1; the numbers of an image's languages add up */
};

/* n == 0: nothing waits, every run starts its container itself. */
struct pool_settings {
    struct pool_language items[POOL_LANGUAGES_MAX];
    size_t n;
    bool automatic;        /* most are made while the machine is idle (pool.h) */
    uint64_t memory_bytes; /* for all that wait */
    int64_t idle_ms;       /* a known conversation's container goes after */
    size_t starts_max;     /* containers being started at the same time */
    bool reuse;            /* a container that served a run waits for its conversation's next one */
};

/*
 * warm is "python=2,typescript=1" (0 leaves one out; languages without an image are fine) or
 * "auto": for an image with Python, TypeScript and Bash as many as half of the memory holds with
 * their libraries, from 2 to 24. memory is a size or a share of machine_bytes such as "25%". Fills
 * items, n, automatic and memory_bytes. ERR_INVALID naming the setting, and what is wrong in it.
 */
int pool_settings_parse(const char *warm, const char *memory, uint64_t machine_bytes,
                        struct pool_settings *out, struct err *e);
