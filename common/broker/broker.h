/*
 * The main process of the broker. Known to three files:
 *
 *   server.c    the loop: connections, signals, what is due
 *   dispatch.c  which process carries out an operation; jobs, and those that wait
 *   runs.c      runs: what the run queue decides is carried out, what children say is applied
 *
 * The others have structs of their own, which begin here: see their headers.
 */
#pragma once

#include "common/broker/child_io.h"
#include "common/broker/housekeeper.h"
#include "common/broker/pending_conns.h"
#include "common/broker/prune.h"
#include "common/broker/psandboxes.h"
#include "common/broker/spawn.h"
#include "common/broker/warm_pool.h"
#include "common/scheduler/run_queue.h"

struct held_job;

/* Jobs that wait for the end of others, and calls that wait for the test of their network. */
struct held_jobs {
    struct held_job *first; /* the oldest */
    size_t n;
    bool retry; /* a job has ended, or a network has been tested: the next may begin */
};

struct broker {
    const struct broker_config *config;
    struct loop loop;
    int listen_fd, conns_fd, signal_fd; /* conns_fd: see broker_serve */
    struct loop_watch listen_watch, conns_watch, signal_watch;
    struct sandbox_root root;
    struct children *children;
    struct pool *pool;
    struct run_queue *queue;
    struct child_io io;
    struct spawner spawner;
    struct housekeeper_link housekeeper;
    struct pending_conns pending_conns;
    struct held_jobs held_jobs;
    struct warm_pool warm_pool;
    struct prune prune;
    struct psandboxes psandboxes;
    struct deadline accept_at; /* no connection is accepted until then; never: now */
    bool stopping;
    bool relieved; /* another broker takes over */
    bool ending;   /* runs are not waited for */
};

/* dispatch.c */

/* A connection has sent its request; ctx is the broker. Takes both descriptors (-1: none). */
void dispatch_call(void *ctx, int take_fd, const json_t *head, int take_passed_fd);
/* Begins jobs that were held, refuses those whose time is over. */
void dispatch_tick(struct broker *b);
struct deadline dispatch_due(const struct broker *b);

/* runs.c */

/* OP_RUN; OP_ADOPT_RUN: a supervisor of a broker before comes back on this connection. */
void runs_begin(struct broker *b, int take_fd, const json_t *head);
void runs_adopt(struct broker *b, int take_fd, const json_t *head);
/* Operations of a run that goes on: true when its supervisor has the connection. */
bool runs_hand(struct broker *b, int fd, const json_t *head);

/* Applies what children have sent, then carries out what the run queue decides. */
void runs_tick(struct broker *b);
/* Applies what all children have sent by now, not only what the loop has told of. */
void runs_catch_up(struct broker *b);
/* The process of a supervisor is gone (status as of waitpid; 0: unknown), and so is its row. */
void runs_reap(struct broker *b, struct child *child, int status);
