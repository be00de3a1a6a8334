#include "config.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/broker/broker.h"
#include "common/supervisor/supervisor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEEP_MAX 4

static int compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void spawn_leave_broker(struct broker *b, const int *keep, size_t n_keep)
{
    int fds[KEEP_MAX + 2] = {STDERR_FILENO, b->root.fd};
    size_t n = 2;
    for (size_t i = 0; i < n_keep && n < ARRAY_LEN(fds); i++)
        if (keep[i] >= 0)
            fds[n++] = keep[i];
    qsort(fds, n, sizeof *fds, compare_fds);
    /* Connections of others would never end, and sockets never be free, while we hold them. */
    for (size_t i = 0; i < n; i++) {
        unsigned first = (unsigned)fds[i] + 1;
        unsigned last = i + 1 < n ? (unsigned)fds[i + 1] : 0;
        if (i + 1 == n)
            close_range(first, ~0u, 0);
        else if (first < last)
            close_range(first, last - 1, 0);
    }
    sigprocmask(SIG_SETMASK, &b->old_mask, NULL);
}

/* A run is not ended by the terminal's Ctrl-C that stops the server: its client still waits. */
static void ignore_interrupt(void)
{
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static void be_job(struct broker *b, int fd, const json_t *head, int passed_fd)
{
    const int keep[] = {fd, passed_fd};
    const struct job_world world = {.config = b->config,
                                    .root = &b->root,
                                    .runners = &b->housekeeper.runners,
                                    .engine_trouble = b->housekeeper.trouble,
                                    .children = b->children,
                                    .admission = b->admission,
                                    .pool = b->pool,
                                    .tally = b->tally,
                                    .waiting = run_queue_length(b)};
    spawn_leave_broker(b, keep, ARRAY_LEN(keep));
    ignore_interrupt();
    job_handle(&world, fd, head, passed_fd);
    _exit(0);
}

int spawn_job(struct broker *b, int fd, const json_t *head, int passed_fd, struct err *e)
{
    pid_t pid = fork();
    if (pid == 0)
        be_job(b, fd, head, passed_fd);
    if (pid < 0)
        return err_errno(e, "fork");
    struct child *child = children_add(b->children, CHILD_JOB);
    child->pid = pid;
    job_limits_note(b, child, head);
    return 0;
}

static void be_helper(struct broker *b, const char *role, void (*be)(struct broker *b, int fd),
                      int fd, pid_t parent)
{
    privsep_die_with(parent);
    spawn_leave_broker(b, &fd, 1);
    log_set_role(role);
    be(b, fd);
    _exit(0);
}

pid_t spawn_helper(struct broker *b, const char *role, void (*be)(struct broker *b, int fd),
                   int *out_fd, struct err *e)
{
    pid_t parent = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    pid_t pid = fork();
    if (pid == 0)
        be_helper(b, role, be, theirs, parent);
    if (pid < 0)
        return err_errno(e, "fork");
    *out_fd = TAKE_FD(ours);
    return pid;
}

static void be_supervisor(struct broker *b, const void *of, const struct child *child, int channel)
{
    const struct spawn *spawn = of;
    const struct queued_run *queued_run = spawn->queued_run;
    struct supervisor_start start = {
        .config = b->config,
        .root = &b->root,
        .runner = spawn->runner,
        .version = b->housekeeper.version,
        .channel = channel,
        .warm_dir = spawn->warm_dir,
        .sandbox_dir = spawn->sandbox_dir,
        .head = queued_run ? claim_head(queued_run) : NULL,
        .queue_ms = spawn->queue_ms,
        .connection = queued_run ? claim_connection(queued_run) : -1,
    };
    const int keep[] = {channel, start.connection};
    memcpy(start.run_id, child->run_id, sizeof start.run_id);
    spawn_leave_broker(b, keep, ARRAY_LEN(keep));
    ignore_interrupt();
    supervisor_main(&start);
    _exit(0);
}

static void be_psandbox(struct broker *b, const void *of, const struct child *child, int channel)
{
    const struct psandbox_spawn *spawn = of;
    struct supervisor_start start = {
        .config = b->config,
        .root = &b->root,
        .runner = spawn->runner,
        .version = b->housekeeper.version,
        .helpers_path = b->helpers_path,
        .channel = channel,
        .head = spawn->head,
        .connection = spawn->connection,
    };
    const int keep[] = {channel, start.connection};
    memcpy(start.run_id, child->run_id, sizeof start.run_id);
    spawn_leave_broker(b, keep, ARRAY_LEN(keep));
    ignore_interrupt();
    psandbox_main(&start);
    _exit(0);
}

static void copy_name(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", name ? name : "");
}

static struct child *new_row(struct broker *b, const struct spawn *spawn)
{
    struct child *child = children_add(b->children, CHILD_SUPERVISOR);
    crypto_random_hex(RUN_ID_LEN / 2, child->run_id);
    copy_name(child->language, sizeof child->language, spawn->runner->language);
    copy_name(child->warm_dir, sizeof child->warm_dir, spawn->warm_dir);
    copy_name(child->sandbox_dir, sizeof child->sandbox_dir, spawn->sandbox_dir);
    child->image_id = mem_strdup(spawn->runner->image_id);
    child->network = spawn->network;
    return child;
}

/* Forks; in the child be does not return. On failure the row goes. */
static struct child *give_life(struct broker *b, struct child *child, const void *spawn,
                               void (*be)(struct broker *, const void *, const struct child *, int),
                               struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        err_errno(e, "socketpair");
        children_remove(b->children, child);
        return NULL;
    }
    AUTO_FD int theirs = pair[1];
    child->channel = pair[0];
    child->pid = fork();
    if (child->pid == 0)
        be(b, spawn, child, theirs);
    if (child->pid < 0) {
        err_errno(e, "fork");
        children_remove(b->children, child);
        return NULL;
    }
    child_io_watch(b, child);
    return child;
}

struct child *spawn_supervisor(struct broker *b, const struct spawn *spawn, struct err *e)
{
    return give_life(b, new_row(b, spawn), spawn, be_supervisor, e);
}

struct child *spawn_psandbox(struct broker *b, const struct psandbox_spawn *spawn, struct err *e)
{
    struct child *child = children_add(b->children, CHILD_PSANDBOX);
    crypto_random_hex(RUN_ID_LEN / 2, child->run_id);
    copy_name(child->language, sizeof child->language, spawn->language);
    copy_name(child->sandbox_dir, sizeof child->sandbox_dir, spawn->sandbox_dir);
    child_set_owner(child, spawn->tenant, spawn->conversation);
    child->session = spawn->session;
    child->network = json_is_true(json_object_get(spawn->head, "network"));
    return give_life(b, child, spawn, be_psandbox, e);
}
