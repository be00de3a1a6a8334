/*
 * The main process of the broker, as its parts see it. Private to common/broker.
 *
 *   server.c       the loop, accepting, signals, start and end
 *   housekeeper_link.c  the housekeeper's process and what it says
 *   heads.c        connections that have not said yet what they want
 *   calls.c        what they want, and who does it
 *   run_queue.c       runs that wait for a place, a start, or for their supervisor to take them up
 *   recent_tenants.c      which other tenants asked lately: whoever has recent_tenants gets half of
 * the starts supervisors.c  what supervisors say, their end, those of a broker before limit.c jobs
 * that may last: how many of them everybody may have prune.c     conversations that go stays.c
 * persistent sandboxes: who may have one, who has which reattach.c      those of a broker before
 * that have not come back yet births.c       forking warm.c         carries out what the pool
 * wishes
 */
#ifndef SANDCGI_BROKER_BROKER_H
#define SANDCGI_BROKER_BROKER_H

#include "common/base/loop.h"
#include "common/broker/cpu_pressure.h"
#include "common/broker/housekeeper_link.h"
#include "common/broker/pending_conns.h"
#include "common/broker/prune.h"
#include "common/broker/reattach.h"
#include "common/broker/run_queue.h"
#include "common/broker/server.h"
#include "common/jobs/job.h"
#include "common/protocol/ops.h"
#include "common/protocol/reply.h"
#include "common/scheduler/admission.h"
#include "common/scheduler/children.h"
#include "common/scheduler/pool.h"

#include <signal.h>

struct broker {
    const struct broker_config *config;
    struct loop loop;
    int listen_fd, signal_fd;
    struct loop_watch listen_watch, signal_watch;
    sigset_t old_mask;
    struct sandbox_root root;
    char *helpers_path; /* what containers that stay get: engine_spec.helpers_path */
    struct housekeeper_link housekeeper;
    struct pending_conns pending_conns;
    struct run_queue run_queue;
    struct children *children;
    struct admission *admission;
    struct prune prune;
    struct reattach reattach;
    struct pool *pool;
    struct cpu_pressure cpu_pressure;
    struct deadline door_opens; /* no connection is taken until then; never: now */
    struct deadline pool_at;    /* when the pool wants to be asked again */
    struct broker_tally tally;
    bool stopping;
    bool relieved; /* another broker takes over */
};

/* The runner of a language, or NULL with ERR_UNAVAILABLE (the engine is away) or ERR_NOT_FOUND.
 * Valid until the housekeeper's next word. */
const struct engine_runner *broker_runner(const struct broker *b, const char *language,
                                          struct err *e);

/* calls.c: a connection has said what it wants. Takes fd and passed_fd (-1: none). */
void dispatch_call(struct broker *b, int take_fd, const json_t *head, int take_passed_fd);

/* limit.c */

/* May the operation begin? ERR_BUSY: the tenant has its share of jobs of this kind, or the server
 * has; operations that do not last may always. */
int job_limits_check(const struct broker *b, const json_t *head, struct err *e);
/* The child is on it from now on. */
void job_limits_note(const struct broker *b, struct child *child, const json_t *head);

/* births.c */

struct spawn {
    const struct engine_runner *runner;
    const char *warm_dir, *sandbox_dir;  /* what it sits on, ahead; NULL: neither */
    const struct queued_run *queued_run; /* whose run it is for; NULL: ahead */
    bool network;
    int64_t queue_ms;
};

/* NULL: the process could not be made. The row is in the books, its channel is watched. */
struct child *spawn_supervisor(struct broker *b, const struct spawn *spawn, struct err *e);

struct psandbox_spawn {
    const struct engine_runner *runner;                         /* NULL: an image */
    const char *tenant, *conversation, *language, *sandbox_dir; /* language NULL: an image;
                                                           sandbox_dir: the conversation's */
    bool session;
    const json_t *head; /* of the call that wants it */
    int connection;     /* and its caller; stays the caller's */
};

/* A persistent sandbox; as above. */
struct child *spawn_psandbox(struct broker *b, const struct psandbox_spawn *spawn, struct err *e);
/* A short operation on a connection, in a process of its own; both descriptors stay the caller's.
 */
int spawn_job(struct broker *b, int fd, const json_t *head, int passed_fd, struct err *e);
/*
 * A process that works for this one and dies with it: be, in a process that logs as role, with its
 * end of a connection; it ends when be returns. The process id, the other end in *out_fd; or -1.
 */
pid_t spawn_helper(struct broker *b, const char *role, void (*be)(struct broker *b, int fd),
                   int *out_fd, struct err *e);
/* In a fresh child: only standard input to error, the sandbox root and keep stay open, signals act
 * as usual again. */
void spawn_leave_broker(struct broker *b, const int *keep, size_t n_keep);

/* supervisors.c */

void child_io_watch(struct broker *b, struct child *child);
/* Hears now what all of a kind have said by now. */
void child_io_catch_up(struct broker *b, enum child_kind kind);
/* Its process is gone (status as of waitpid; 0: unknown). The row goes. */
void child_io_reap(struct broker *b, struct child *child, int status);
/* One of a broker before comes back to us on this connection; takes it. */
void child_io_adopt(struct broker *b, int take_fd, const json_t *head);
/* get_run and cancel_run of a run that goes on: true when its supervisor has the connection. */
bool child_io_hand(struct broker *b, int fd, const json_t *head);
/* Is the other end of the connection this account's? */
bool child_io_come_from_us(int fd);
/* It waits no longer: its channel is closed, it ends by itself. */
void child_io_release(struct broker *b, struct child *child);

/* stays.c: persistent sandboxes; what they say is heard by supervisors.c. */

/* create_box and session: a connection asks for one, or for the one that keeps its variables. */
void psandboxes_create(struct broker *b, int take_fd, const json_t *head);
void psandboxes_session(struct broker *b, int take_fd, const json_t *head);
/* exec, close_psandbox and box_logs: true when one that lives has the connection. */
bool psandboxes_hand(struct broker *b, int fd, const json_t *head);
/* One of a broker before comes back to us on this connection; takes it. */
void psandboxes_adopt(struct broker *b, int take_fd, const json_t *head);
/* The server stops: they end when what runs in them has ended. Relieved, we let go of them: they
 * look for the next broker. */
void psandboxes_end(struct broker *b);

/* warm.c */

/* Does what the pool wishes now, up to one start; then pool_at says when to go on. */
void warm_tick(struct broker *b);
/* The head of a put: its conversation will run something. */
void warm_note_upload(struct broker *b, const json_t *head);
/* Nobody needs to wait any more. */
void warm_end(struct broker *b);

#endif
