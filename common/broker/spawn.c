#include "config.h"

#include "common/broker/spawn.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/base/purpose.h"
#include "common/jobs/job.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEEP_MAX 3

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Only standard input to error, the sandbox root and keep stay open: a copy of another connection
 * would keep it from ending, one of a socket from being free. */
static void close_other_fds(const struct spawner *s, const int keep[KEEP_MAX])
{
    int fds[KEEP_MAX + 2] = {STDERR_FILENO, s->root->fd};
    size_t n = 2;

    for (size_t i = 0; i < KEEP_MAX; i++)
        if (keep[i] >= 0)
            fds[n++] = keep[i];
    qsort(fds, n, sizeof *fds, compare_fds);
    for (size_t i = 0; i < n; i++) {
        unsigned first = (unsigned)fds[i] + 1;
        unsigned last = i + 1 < n ? (unsigned)fds[i + 1] - 1 : ~0u;
        if (first <= last)
            close_range(first, last, 0);
    }
}

/*
 * As fork. The new process has no descriptors but those of keep (-1: none), and ends with
 * process_end. helper_role: of one that dies with the main process; NULL: it outlives that.
 */
static pid_t process_fork(const struct spawner *s, const int keep[KEEP_MAX], enum purpose purpose,
                          const char *helper_role, struct err *e)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        return err_errno(e, "fork");
    if (pid > 0)
        return pid;
    if (helper_role)
        privsep_die_with(parent);
    close_other_fds(s, keep);
    if (helper_role)
        log_set_role(helper_role);
    else /* the terminal's Ctrl-C stops the server, but no run: its client still waits */
        sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    sigprocmask(SIG_SETMASK, &s->old_mask, NULL);
    purpose_set(purpose);
    return 0;
}

static _Noreturn void process_end(void)
{
    purpose_count_end();
    _exit(0);
}

static int make_channel(int *out_ours, int *out_theirs, struct err *e)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    *out_ours = pair[0];
    *out_theirs = pair[1];
    return 0;
}

/* ---- supervisors ---- */

static struct child *row_new(const struct spawner *s, enum child_kind kind,
                             const struct supervisor_start *wanted)
{
    struct child *child = children_add(s->children, kind);

    crypto_random_hex(RUN_ID_LEN / 2, child->container_id);
    memcpy(child->run_id, child->container_id, sizeof child->run_id);
    snprintf(child->sandbox_dir, sizeof child->sandbox_dir, "%s",
             wanted->call.sandbox_dir ? wanted->call.sandbox_dir : "");
    snprintf(child->warm_dir, sizeof child->warm_dir, "%s",
             wanted->warm_dir ? wanted->warm_dir : "");
    if (!wanted->runner)
        return child;
    snprintf(child->language, sizeof child->language, "%s", wanted->runner->language);
    child->image_id = mem_strdup(wanted->runner->image_id);
    child->image = mem_strdup(wanted->runner->image);
    return child;
}

struct child *spawn_adopt_row(const struct spawner *s, enum child_kind kind, const char *run_id,
                              const json_t *from)
{
    const char *call = json_get_string(from, "call");
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (!run_id || !run_id_ok(run_id) || sandbox_name_of(s->root, from, sandbox_dir, &e) < 0)
        return NULL;
    struct child *child = children_find_id(s->children, run_id);
    if (child && (child->kind != kind || strcmp(child->sandbox_dir, sandbox_dir) != 0))
        return NULL;
    if (!child) {
        child = children_add(s->children, kind);
        memcpy(child->run_id, run_id, sizeof child->run_id);
        memcpy(child->container_id, run_id, sizeof child->container_id);
        memcpy(child->sandbox_dir, sandbox_dir, sizeof child->sandbox_dir);
        child_set_state(child, CHILD_RUNNING);
    }
    json_copy_string(from, "language", child->language, sizeof child->language);
    child_set_owner(child, json_get_string(from, "tenant"),
                    json_get_string(from, "conversationId"));
    child->claimed = kind == CHILD_SUPERVISOR;
    child->session = json_get_bool(from, "session", 0) ||
                     (call && strcmp(call, op_name(OP_SESSION)) == 0);
    child->background = json_get_bool(from, "background", 0);
    child->network = wire_network(from) != NETWORK_NONE;
    child->session_network = wire_network(from);
    child->used_us = 1000 * json_get_integer(from, "usedMs", 0);
    json_decref(child->calls);
    child->calls = json_incref(json_object_get(from, "runs")); /* the head goes */
    child->n_handed = 0;                                       /* what it has taken is among them */
    return child;
}

struct child *spawn_supervisor(const struct spawner *s, enum child_kind kind,
                               const struct supervisor_start *wanted, struct err *e)
{
    struct child *child = row_new(s, kind, wanted);
    struct supervisor_start start = *wanted;
    AUTO_FD int theirs = -1;
    int ours = -1;

    start.config = s->config;
    start.root = s->root;
    start.runners = &s->runners->list;
    start.facts = s->runners->facts;
    start.psandbox = kind == CHILD_PSANDBOX;
    start.helpers_path = s->helpers_path;
    memcpy(start.container_id, child->container_id, sizeof start.container_id);
    if (make_channel(&ours, &theirs, e) == 0 && child_io_open(s->io, child, ours, e) == 0) {
        const int keep[KEEP_MAX] = {theirs, start.call.connection, -1};

        child->pid = process_fork(s, keep, PURPOSE_SUPERVISOR, NULL, e);
        if (child->pid == 0) {
            start.channel = theirs;
            supervisor_main(&start);
            process_end();
        }
        if (child->pid > 0)
            return child;
    }
    child_io_close(s->io, child);
    children_remove(s->children, child);
    return NULL;
}

/* ---- jobs ---- */

int spawn_job(const struct spawner *s, const struct job_world *world, const struct job_call *call,
              const char *tenant, struct err *e)
{
    const int keep[KEEP_MAX] = {call->fd, call->passed_fd, call->room_fd};
    pid_t pid = process_fork(s, keep, PURPOSE_JOB, NULL, e);

    if (pid == 0) {
        job_main(world, call);
        process_end();
    }
    if (pid < 0)
        return -1;
    struct child *child = children_add(s->children, CHILD_JOB);
    child->pid = pid;
    child->limit = op_row(op_of(call->head))->limit;
    child_set_owner(child, tenant, NULL);
    return 0;
}

/* ---- helpers ---- */

int helper_start(struct helper *h, const struct spawner *s, const struct helper_spawn *spawn,
                 struct err *e)
{
    AUTO_FD int theirs = -1;
    pid_t pid = -1;

    h->loop = s->io->loop;
    if (make_channel(&h->fd, &theirs, e) < 0)
        return -1;
    const int keep[KEEP_MAX] = {theirs, -1, -1};
    if (!spawn->on_message ||
        loop_add(h->loop, &h->watch, h->fd, EPOLLIN, spawn->on_message, spawn->item, e) == 0)
        pid = process_fork(s, keep, PURPOSE_HELPER, spawn->role, e);
    if (pid == 0) {
        spawn->main(spawn->ctx, theirs);
        process_end();
    }
    if (pid < 0 || !spawn->on_message)
        helper_close(h);
    if (pid < 0)
        return -1;
    h->pid = pid;
    if (spawn->awaited)
        children_add(s->children, CHILD_JOB)->pid = pid;
    return 0;
}

json_t *helper_next_message(struct helper *h, bool *out_ended)
{
    struct err e = ERR_INIT;
    int whole = sock_inbox_take(&h->inbox, h->fd, &e);
    json_t *message = whole > 0 ? wire_parse(&h->inbox.message, &e) : NULL;

    *out_ended = whole != 0 && !message;
    if (*out_ended)
        helper_close(h);
    return message;
}

void helper_close(struct helper *h)
{
    loop_remove(h->loop, &h->watch);
    auto_close_fd(&h->fd);
    sock_inbox_clear(&h->inbox);
}

void helper_end(struct helper *h)
{
    if (h->pid > 0)
        kill(h->pid, SIGTERM);
    h->pid = 0;
    helper_close(h);
}
