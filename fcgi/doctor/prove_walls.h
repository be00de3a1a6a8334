/* The walls around programs that are tried by programs. */
#pragma once

#include "fcgi/settings.h"

#include <jansson.h>

/* A program prints "begun", and then a line for each hole that it found. So one that did not run,
 * or ended in another way than it should, proves nothing. */
struct wall {
    const char *about, *program; /* of Python */
    uint64_t timeout_ms;
    const char *ends; /* the states of a run in which the wall holds, separated by blanks */
    /* Is there something to try? NULL: always. status is the broker's. */
    bool (*applies)(const struct settings *s, const json_t *status);
    bool network; /* with that of the settings */
    const char *holds, *missing, *mend;
};

extern const struct wall walls[];
extern const size_t walls_n;
