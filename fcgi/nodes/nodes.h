/*
 * The nodes of a cluster, as the edge is to know them: their names and addresses, sorted by name.
 * A list belongs to its owner's stack; all texts are copied.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/err.h"
#include "common/base/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODES_MAX       1000
#define NODES_TEXT_MAX  (512u * 1024) /* of a file with the list */
#define NODE_HOST_CHARS 253
#define NODE_FULL_CHARS 253 /* of a name that the orchestrator gives to a machine */

enum node_state {
    NODE_READY,   /* answers calls, says the control plane */
    NODE_ABSENT,  /* it is known, and does not answer now */
    NODE_LEAVING, /* an operator is taking it out: it gets only calls that name it */
};

struct node_row {
    char name[NODE_NAME_MAX + 1];
    char host[NODE_HOST_CHARS + 1]; /* a name, an IPv4 address, or an IPv6 address in brackets */
    unsigned port;
    enum node_state state;
    int64_t seen_ms; /* when the control plane has named it last; clock_mono_ms */
};

struct nodes {
    struct node_row *rows;
    size_t n;
};

/* Where those are known who know the nodes; NULL and 0: not given. */
struct nodes_place {
    const char *file;       /* file */
    const char *service;    /* swarm, kubernetes: whose tasks or endpoints the nodes are */
    const char *name_space; /* kubernetes; NULL: the pod's own */
    unsigned port;          /* swarm, kubernetes; 0: the one that the service publishes */
};

#define AUTO_NODES AUTO(nodes_clear)

void nodes_clear(struct nodes *list);

/*
 * The name of a machine as a node's name, [a-z0-9]{1,16}: itself where it is one already, else its
 * first letters and digits and 8 hex digits of its SHA-256. It depends on full alone, so that the
 * node finds the same one. out holds NODE_NAME_MAX + 1 bytes. ERR_INVALID: full is empty or
 * longer than NODE_FULL_CHARS.
 */
int node_name_make(const char *full, char *out, struct err *e);

/* Keeps the order. ERR_INVALID: a part of it is malformed; ERR_EXISTS: another one has the name or
 * the address; ERR_LIMIT: over NODES_MAX. */
int nodes_add(struct nodes *list, const char *name, const char *host, unsigned port,
              enum node_state state, struct err *e);

/* NULL: there is none. */
struct node_row *nodes_find(const struct nodes *list, const char *name);

/* Removes it, if it is there. */
void nodes_drop(struct nodes *list, const char *name);

/* How many get calls of every conversation: all but those that are leaving. */
size_t nodes_count_homes(const struct nodes *list);

/* Adds the lines "NAME HOST:PORT", or "NAME HOST:PORT leaving", of text, which is changed; '#'
 * begins a comment. Errors name the line. */
int nodes_read(struct nodes *list, char *text, struct err *e);

/*
 * What the edge is to have after `before`, when the control plane has answered `found` at now_ms:
 * a node comes in when it is ready; it stays while it is named, whether it answers or not; one that
 * is leaving, or is not named any more, goes keep_ms later. Into out, which is empty.
 */
int nodes_follow(const struct nodes *before, const struct nodes *found, int64_t now_ms,
                 int64_t keep_ms, struct nodes *out, struct err *e);
