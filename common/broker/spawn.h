/*
 * The processes that the main process forks: jobs, supervisors of runs and of persistent sandboxes,
 * and helpers. A fork is the last thing that can fail: what watches the new process is in the loop
 * before, so a failure leaves no process, no descriptor and no row behind.
 */
#pragma once

#include "common/base/sock.h"
#include "common/broker/child_io.h"
#include "common/jobs/job.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"
#include "common/scheduler/runners.h"
#include "common/supervisor/supervisor.h"

#include <signal.h>

/* What children inherit. Borrowed. */
struct spawner {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct runners *runners;
    struct children *children;
    struct child_io *io;
    char *helpers_path; /* engine_spec.helpers_path */
    sigset_t old_mask;  /* the signal mask that children get back */
};

/* Of wanted: runner, reuse, warm_dir and call, whose connection stays the caller's. NULL: the
 * process could not be made. The row is among the children, its channel is open. */
struct child *spawn_supervisor(const struct spawner *s, enum child_kind kind,
                               const struct supervisor_start *wanted, struct err *e);

/* The running row of a child that an earlier broker spawned, from its record or the head with which
 * it comes back; NULL: that is not complete. */
struct child *spawn_adopt_row(const struct spawner *s, enum child_kind kind, const char *run_id,
                              const json_t *from);

/* An operation on a connection; its row counts for tenant. All descriptors stay the caller's. */
int spawn_job(const struct spawner *s, const struct job_world *world, const struct job_call *call,
              const char *tenant, struct err *e);

/* A process that works for the main process and dies with it, and the messages that it sends. */
struct helper {
    pid_t pid;         /* 0: none */
    int fd;            /* -1: its end is closed */
    struct loop *loop; /* the main process's; borrowed */
    struct sock_inbox inbox;
    struct loop_watch watch;
};

#define HELPER_INIT(max_message)                                                                   \
    ((struct helper){.fd = -1, .inbox = SOCK_INBOX_INIT(max_message), .watch = LOOP_WATCH_INIT})

struct helper_spawn {
    const char *role;                /* in the log */
    void (*main)(void *ctx, int fd); /* the process ends when this returns */
    void *ctx;
    loop_handler *on_message; /* with item; NULL: it sends nothing */
    void *item;
    bool awaited; /* it has a row among the children, so that the server's end waits for it */
};

int helper_start(struct helper *h, const struct spawner *s, const struct helper_spawn *spawn,
                 struct err *e);
/* Its next message; NULL: there is none yet, or (*out_ended) it has closed its end, and the
 * connection is closed. New reference. */
json_t *helper_next_message(struct helper *h, bool *out_ended);
/* Closes the connection. */
void helper_close(struct helper *h);
/* The same, and tells it to end, if there is one. */
void helper_end(struct helper *h);
