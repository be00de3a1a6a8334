/* Who knows which nodes there are. */
#pragma once

#include "fcgi/nodes/nodes.h"

/* Where to ask; NULL and 0: not given. */
struct nodes_place {
    const char *file;       /* file */
    const char *service;    /* swarm, kubernetes: whose tasks or endpoints the nodes are */
    const char *name_space; /* kubernetes; NULL: the pod's own */
    unsigned port;          /* swarm, kubernetes; 0: the one that the service publishes */
};

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
