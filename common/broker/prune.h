/*
 * Conversations that go: because their owner says so (the operation "delete_conversation"), or
 * because the bounds of what is kept say so. The main process decides and renames, since it has
 * the books of what is in use; what takes long is done by others. Private to common/broker.
 */
#ifndef SANDCGI_BROKER_PRUNE_H
#define SANDCGI_BROKER_PRUNE_H

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/sock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct broker;
struct child;

/* The process that looks, now and then, for what is to go (retention_pass.c), from our side; and
 * the one that empties .trash, of which there is never more than one, whoever deletes how much. */
struct prune {
    pid_t pid; /* 0: nobody looks now */
    int fd;
    struct sock_inbox inbox; /* of fd, as the next */
    struct loop_watch watch;
    struct deadline next; /* when to look again; never: somebody looks */
    size_t n_gone;        /* in this look */
    pid_t emptier;        /* 0: nobody empties .trash now */
    bool trash;           /* something is there that nobody removes yet */
};

void prune_init(struct prune *r);
void prune_tick(struct broker *b);
struct deadline prune_next(const struct prune *r);
/* Nobody is to look any more. */
void prune_end(struct broker *b);
/* A child's process is gone: of a job that deleted, or that emptied .trash? */
void prune_reap(struct broker *b, const struct child *child);

/* A connection asks for a conversation's end. */
void prune_begin(struct broker *b, int take_fd, const json_t *head);

#endif
