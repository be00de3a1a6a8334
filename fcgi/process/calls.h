/*
 * Which worker is at a call, in memory that the master shares with its workers. The master sees
 * there when a call lasts, and starts another worker: SANDCGI_WORKERS of them are always free for
 * calls. A worker sees there how many calls a tenant has.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALL_LONG_MS 50 /* a call that lasts longer than this gets another worker in its place */
#define CALL_RESERVE 16 /* of a tenant that has its share, only for calls that end something */

struct call_entry {
    _Atomic int64_t since_ms; /* 0: the worker has no call */
    _Atomic uint64_t tenant;  /* share_key, once it is known */
    _Atomic uint64_t turn;    /* in which its tenant's calls were counted; 0: that is under way */
};

/* Written by workers: the master believes nothing but their own entries. */
struct calls {
    _Atomic uint64_t turns;  /* of calls that were counted */
    _Atomic size_t n_used;   /* the entries behind these have no worker */
    _Atomic bool wants_wake; /* the master does not look by itself */
    _Atomic bool last;       /* the server ends: no other worker serves what has connected */
    _Atomic bool draining;   /* the server is to end soon: it is not ready for new conversations */
    struct call_entry entries[];
};

/* For n workers at most. */
struct calls *calls_new(size_t n);
void calls_free(struct calls *c, size_t n);

enum call_state { CALL_NONE, CALL_BRIEF, CALL_LONG };
enum call_state calls_state(const struct calls *c, size_t i, int64_t now_ms);
/* The worker has ended. */
void calls_clear(struct calls *c, size_t i);

/* A worker's own entry. Without calls (CGI, stdio, the hub) nothing is counted. */
struct call_place {
    struct calls *calls;
    size_t i, n; /* the worker's entry, of so many */
    size_t max;  /* calls at once */
    int wake_fd; /* eventfd that the master waits for */
};

/* Is a worker that ends to serve the queue of connections first? */
bool calls_are_last(const struct call_place *p);

/* Is the server to end soon (sandcgi drain)? */
bool calls_are_draining(const struct call_place *p);

void call_begin(const struct call_place *p);
void call_end(const struct call_place *p);

enum call_room {
    CALL_HAS_NO_ROOM,
    CALL_MAY_FREE, /* if it ends something of the tenant's, which makes room */
    CALL_HAS_ROOM,
};

/* May this tenant (NULL: none) have the call that has begun? Of calls that come at once no more
 * have room than there is. most: of one tenant, as nginx says. */
enum call_room call_admit(const struct call_place *p, const char *tenant, size_t most);
