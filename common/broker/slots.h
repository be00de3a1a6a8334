/*
 * How many runs may go on at once: a table in memory shared by the broker and its children. A child
 * takes a slot for its run and gives it back; when it dies without doing so, the broker finds the
 * slot by the child's pid.
 */
#ifndef SANDCGI_BROKER_SLOTS_H
#define SANDCGI_BROKER_SLOTS_H

#include "common/base/err.h"
#include "common/broker/run.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

struct slot {
    _Atomic pid_t pid; /* 0: free */
    char run_id[RUN_ID_LEN + 1];
};

struct slots {
    size_t n;
    struct slot items[];
};

struct slots *slots_new(size_t n, struct err *e);
void slots_free(struct slots *s);

/* A free slot for the calling process, or NULL when all are taken. */
struct slot *slots_take(struct slots *s);
void slots_give_back(struct slot *slot);

/* The slot a dead process still held, or NULL. */
struct slot *slots_held_by(struct slots *s, pid_t pid);

#endif
