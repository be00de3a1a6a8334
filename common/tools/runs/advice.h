/*
 * What a model could do next, from how a run ended and the last lines that it printed: rows of a
 * table. Programs are hostile: what they print chooses a sentence, and gives it one name at most.
 */
#pragma once

#include "common/base/buf.h"
#include "common/protocol/limits.h"

#include <stdbool.h>

/* How the run was started, as far as it is known. */
enum advice_fact {
    ADVICE_OFFLINE = 1 << 0,  /* it certainly had no network */
    ADVICE_ALONE = 1 << 1,    /* no session, in a conversation that there was before */
    ADVICE_BEGINS = 1 << 2,   /* its call began the conversation */
    ADVICE_NO_INPUT = 1 << 3, /* nothing on standard input */
    ADVICE_FRESH = 1 << 4,    /* a session that there was not before */
    ADVICE_NETWORK = 1 << 5,  /* the server gives this caller network */
    ADVICE_PACKAGES = 1 << 6, /* and has install_package */
    ADVICE_SESSIONS = 1 << 7, /* and sessions */
    ADVICE_INPUT = 1 << 8,    /* something on standard input */
};

#define ADVICE_NAME_MAX 100 /* bytes of a name from the output */

struct advice_case {
    const char *status; /* of the result */
    unsigned facts;     /* enum advice_fact */
    const char *text;   /* what it printed */
    size_t len;
    const char *prefix; /* of tools' names */
    const struct run_bounds *bounds;
};

/* Appends the sentence of the first row that fits; false: none does. */
bool advice_find(const struct advice_case *c, struct buf *out);
