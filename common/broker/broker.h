/*
 * The main process of the broker. Known to six files:
 *
 *   server.c       the loop: connections, signals, what is due
 *   dispatch.c     which process carries out an operation; jobs, and those that wait
 *   supervisors.c  which supervisor gets a call, and what supervisors say
 *   runs.c         runs that are queued: what the run queue decides is carried out
 *   psandboxes.c   who may have a persistent sandbox
 *   tenant_limits.c  which calls a tenant's limits allow, and what they have used
 *
 * The others have structs of their own, which begin here: see their headers.
 */
#pragma once

#include "common/broker/child_io.h"
#include "common/broker/housekeeper.h"
#include "common/broker/pending_conns.h"
#include "common/broker/prune.h"
#include "common/broker/readback.h"
#include "common/broker/reattach.h"
#include "common/broker/rooms.h"
#include "common/broker/saver.h"
#include "common/broker/spawn.h"
#include "common/broker/warm_pool.h"
#include "common/scheduler/run_queue.h"
#include "common/scheduler/tenant_books.h"

struct held_call;

/* Jobs that wait for the end of others; calls that wait for the test of their network, or for a
 * persistent sandbox of the broker before. */
struct held_calls {
    struct held_call *first; /* the oldest */
    bool retry;              /* what one of them waits for may have come */
};

/* Where processes without sockets of their own hand connections over (broker_serve). */
struct broker_door {
    int fd; /* -1: there is none */
    enum op_sender sender;
    struct loop_watch watch;
};

struct broker {
    const struct broker_config *config;
    struct loop loop;
    int listen_fd, signal_fd;
    struct loop_watch listen_watch, signal_watch;
    struct broker_door doors[OP_SENDERS];
    struct sandbox_root root;
    struct children *children;
    struct pool *pool;
    struct run_queue *queue;
    struct child_io io;
    struct spawner spawner;
    struct housekeeper_link housekeeper;
    struct pending_conns pending_conns;
    struct held_calls held;
    struct rooms rooms;
    struct warm_pool warm_pool;
    struct prune prune;
    struct saver_link saver;
    struct readback readback;
    struct reattach reattach;
    struct tenant_books *tenant_books;
    struct timespec books_read; /* the time of the file that they have taken in */
    struct deadline books_at;   /* when what tenants have used is saved; never: it is */
    struct deadline accept_at;  /* no connection is accepted until then; never: now */
    bool stopping;
    bool relieved; /* another broker takes over */
    bool ending;   /* runs are not waited for */
};

/* dispatch.c */

/* A connection has sent its request; ctx is the broker. Takes both descriptors (-1: none). What the
 * sender may not ask for is refused. */
void dispatch_call(void *ctx, int take_fd, enum op_sender sender, const json_t *head,
                   int take_passed_fd);
/* Begins calls that were held, refuses those whose time is over. */
void dispatch_tick(struct broker *b);
struct deadline dispatch_due(const struct broker *b);
/* readback's done; ctx is the broker. */
void dispatch_read_back(void *ctx, const char *sandbox_dir, const struct err *why);

/* supervisors.c */

/* OP_BY_SUPERVISOR: true when the supervisor has the connection. */
bool supervisors_hand(struct broker *b, int fd, const json_t *head);
/* Is the call for a persistent sandbox that lives, but is not back yet? */
bool supervisors_await(struct broker *b, const json_t *head);
/* OP_ADOPT: one of a broker before comes back on this connection. */
void supervisors_adopt(struct broker *b, int take_fd, const json_t *head);
/* Applies what they have sent. */
void supervisors_tick(struct broker *b);
/* Applies what all have sent by now, not only what the loop has told of. */
void supervisors_catch_up(struct broker *b);
/* Its process is gone (status as of waitpid; 0: unknown), and so is its row. */
void supervisors_reap(struct broker *b, struct child *child, int status);
/* That persistent sandbox, or a run that is not waited for, ends, and takes no more calls; why: as
 * child_io_end. */
void supervisors_end_one(struct child *child, const char *why);
/* The server stops: persistent sandboxes end when what runs in them has ended, and runs if they are
 * not waited for. Relieved by another broker, the former are released, and look for that one. */
void supervisors_end(struct broker *b);

/* runs.c */

/* OP_RUN. */
void runs_begin(struct broker *b, int take_fd, const json_t *head);
/* The child has taken its run. */
void runs_taken(struct broker *b, struct child *child);
/* The child's process is gone; another may get its run. */
void runs_lost(struct broker *b, struct child *child);
/* Counts a run that no supervisor counts (metrics.h). */
void runs_count(const char *language, const char *status);
/* Carries out what the run queue decides, from what supervisors have sent. */
void runs_tick(struct broker *b);

/* psandboxes.c */

/* OP_CREATE_PSANDBOX, and OP_SESSION of a conversation whose variables no sandbox keeps. What
 * sandboxes have sent must have been applied. */
void psandboxes_begin(const struct broker *b, int take_fd, const json_t *head);

/* tenant_limits.c */

/* The limits that count for a call: of a section that its head names (a group of the caller), else
 * of its tenant. */
const struct tenant_limits *tenant_limits_of(const struct broker *b, const json_t *head);
/* May this call of a tenant begin, by the file of SANDBOX_TENANTS_FILE? -1: *e names the limit, and
 * *out_retry_ms is when to try again (0: not by waiting). Supervisors have been caught up with. */
int tenant_limits_check(struct broker *b, enum broker_op op, const json_t *head,
                        int64_t *out_retry_ms, struct err *e);
/* A program of the tenant has run for so long; tenant NULL: of nobody. */
void tenant_limits_note_run(struct broker *b, const char *tenant, int64_t ms);
/* Saves what was used, when that is due; at the end of the broker at once. */
void tenant_limits_tick(struct broker *b);
void tenant_limits_close(struct broker *b);
