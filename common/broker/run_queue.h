/*
 * Runs between their connection's head and the moment when their supervisor has taken them up: they
 * wait for a place (admission.h), then for a container that may be started, then for their
 * supervisor to say "running". Until then the connection is kept, so that another supervisor can
 * have it when that one dies. Private to common/broker.
 */
#ifndef SANDCGI_BROKER_RUN_QUEUE_H
#define SANDCGI_BROKER_RUN_QUEUE_H

#include "common/base/clock.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;
struct child;
struct queued_run;

struct run_queue {
    struct queued_run *first; /* in order of arrival */
    size_t n_starting;        /* have a place, wait for a container that may be started */
    uint64_t round;           /* of starts: each tenant has one in each */
};

/* A connection asks for a run. */
void run_queue_begin(struct broker *b, int take_fd, const json_t *head);

/* Gives supervisors to those that have a place, answers those whose time in the queue is up. */
void run_queue_tick(struct broker *b);
struct deadline run_queue_next(const struct run_queue *c);

/* Its supervisor has taken it up: the connection is the supervisor's alone. */
void run_queue_begun(struct broker *b, struct child *child);
/* Its supervisor died before that: another gets it if its body has not been read. True: then the
 * child's place is its place still. */
bool run_queue_child_lost(struct broker *b, struct child *child);
/* A place is free. */
void run_queue_release(struct broker *b, struct child *child);

/* For births.c. */
const json_t *claim_head(const struct queued_run *c);
int claim_connection(const struct queued_run *c);

/* Does a run of this sandbox wait for a place or a start? */
bool run_queue_uses_sandbox(const struct broker *b, const char *sandbox_dir);

/* How many wait for a place or a start. */
size_t run_queue_length(const struct broker *b);

#endif
