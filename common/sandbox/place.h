/*
 * Places: so much of a kind of work may go on at the same time, whichever of our processes does it.
 */
#ifndef SANDCGI_SANDBOX_PLACE_H
#define SANDCGI_SANDBOX_PLACE_H

#include "common/sandbox/sandbox.h"

struct place_kind {
    const char *name; /* of its files */
    int max;
    const char *busy; /* what that many things are being */
};

/* A place, kept while the descriptor that is returned is open. Never waits: ERR_BUSY when all are
 * taken. */
int place_take(const struct sandbox_root *root, const struct place_kind *kind, struct err *e);

#endif
