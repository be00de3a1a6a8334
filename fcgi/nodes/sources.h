/* Who knows which nodes there are. */
#pragma once

#include "fcgi/nodes/nodes.h"

struct nodes_source {
    const char *name;
    bool exact; /* what it does not name has gone; else a node may be missing for a while */
    /* Is all of place there that it needs? */
    int (*check)(const struct nodes_place *place, struct err *e);
    /* Adds the nodes to out, with their states. Any error: it cannot be told now. */
    int (*look)(const struct nodes_place *place, struct nodes *out, struct err *e);
};

/* NULL: there is none of this name. */
const struct nodes_source *nodes_source_find(const char *name);
