#include "config.h"

#include "common/broker/server.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/sandbox/helpers.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define JOBS_MAX        64 /* at the same time; those that last (limit.c) leave room for others */
#define EVENTS_IN_A_ROW 64 /* before what is due is looked at */
#define DOOR_PAUSE_MS   100
#define DESCRIPTORS_MAX 65536

const struct engine_runner *broker_runner(const struct broker *b, const char *language,
                                          struct err *e)
{
    const struct engine_runners *runners = &b->housekeeper.runners;
    AUTO_BUF struct buf known = BUF_INIT(400);

    if (*b->housekeeper.trouble) {
        err_set(e, ERR_UNAVAILABLE, "%s", b->housekeeper.trouble);
        return NULL;
    }
    for (size_t i = 0; i < runners->n; i++) {
        if (strcmp(runners->items[i].language, language) == 0)
            return &runners->items[i];
        buf_addf(&known, "%s%s", i ? ", " : "", runners->items[i].language);
    }
    if (runners->n == 0)
        err_set(e, ERR_NOT_FOUND,
                "no runner image is installed; run runners/build.sh on the server");
    else
        err_set(e, ERR_NOT_FOUND, "language: unknown; there are: %s", buf_str(&known));
    return NULL;
}

/* ---- signals ---- */

static void bury(struct broker *b, pid_t pid, int status)
{
    if (pid == b->housekeeper.pid) {
        housekeeper_link_reap(b);
        return;
    }
    struct child *child = children_find_pid(b->children, pid);
    if (!child)
        return;
    if (child->kind != CHILD_JOB) {
        child_io_reap(b, child, status);
        return;
    }
    prune_reap(b, child);
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM) /* which is ours, at the end */
        log_error("a job was ended by signal %d", WTERMSIG(status));
    children_remove(b->children, child);
}

static void hear_signal(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct signalfd_siginfo info;
    (void)item;
    (void)events;
    while (read(b->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            b->stopping = true;
        else if (info.ssi_signo == SIGHUP)
            b->stopping = b->relieved = true;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        bury(b, pid, status);
}

static int open_signals(struct broker *b, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, &b->old_mask) < 0)
        return err_errno(e, "sigprocmask");
    b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (b->signal_fd < 0)
        return err_errno(e, "signalfd");
    return loop_add(&b->loop, &b->signal_watch, b->signal_fd, EPOLLIN, hear_signal, NULL, e);
}

/* ---- connections ---- */

static bool peer_allowed(const struct broker *b, int fd)
{
    struct err e = ERR_INIT;
    uid_t uid;
    if (sock_peer(fd, &uid, NULL, &e) < 0)
        return false;
    return uid == geteuid() || uid == 0 || uid == b->config->client_uid;
}

static void take_connection(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    (void)item;
    (void)events;
    AUTO_FD int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            log_error("accept: %s", strerror(errno));
            b->door_opens = deadline_in_ms(DOOR_PAUSE_MS);
        }
        return;
    }
    if (!peer_allowed(b, fd)) {
        log_warn("refused a connection from another user");
        return;
    }
    pending_conns_take(b, TAKE_FD(fd));
}

static bool is_job(const struct child *c, const void *ctx)
{
    (void)ctx;
    return c->kind == CHILD_JOB;
}

/* Connections are taken when there is somebody to see to them. */
static void open_or_close_door(struct broker *b)
{
    struct err e = ERR_INIT;
    if (deadline_passed(b->door_opens))
        b->door_opens = DEADLINE_NEVER;
    bool open = !b->stopping && b->door_opens.at_ms < 0 &&
                housekeeper_link_ready(&b->housekeeper) &&
                children_count(b->children, is_job, NULL) < JOBS_MAX;
    if (open == (b->listen_watch.fd >= 0))
        return;
    if (!open)
        loop_remove(&b->loop, &b->listen_watch);
    else if (loop_add(&b->loop, &b->listen_watch, b->listen_fd, EPOLLIN, take_connection, NULL,
                      &e) < 0)
        log_error("%s", e.text);
}

/* ---- the loop ---- */

/* What is due besides what is heard. */
static void see_to_the_rest(struct broker *b)
{
    housekeeper_link_tick(b);
    pending_conns_tick(b);
    run_queue_tick(b);
    if (b->stopping) {
        pending_conns_clear(b);
        warm_end(b);
        prune_end(b);
        psandboxes_end(b);
    } else {
        reattach_tick(b);
        warm_tick(b);
        prune_tick(b);
    }
    open_or_close_door(b);
}

static struct deadline next_due(const struct broker *b)
{
    struct deadline next = housekeeper_link_next(&b->housekeeper);
    next = deadline_min(next, pending_conns_next(&b->pending_conns));
    next = deadline_min(next, run_queue_next(&b->run_queue));
    next = deadline_min(next, b->door_opens);
    next = deadline_min(next, prune_next(&b->prune));
    next = deadline_min(next, reattach_next(&b->reattach));
    return deadline_min(next, b->pool_at);
}

/* One event at a time: what follows from it comes before the next. */
static bool hear_one(struct broker *b, struct deadline until)
{
    struct err e = ERR_INIT;
    int n = loop_wait_one(&b->loop, until, &e);
    if (n < 0) {
        log_error("%s", e.text);
        b->stopping = true;
    }
    if (n > 0)
        run_queue_tick(b);
    return n > 0;
}

static bool is_done(const struct broker *b)
{
    return b->stopping && !b->run_queue.first && children_count(b->children, NULL, NULL) == 0;
}

/* Callers first: the rest, above all new containers, comes when nobody says anything. */
static void broker_tick(struct broker *b)
{
    see_to_the_rest(b);
    if (is_done(b)) /* the last one was let go: nobody would say anything */
        return;
    bool more = hear_one(b, next_due(b));
    for (int n = 1; more && n < EVENTS_IN_A_ROW; n++)
        more = hear_one(b, deadline_in_ms(0));
}

/* Each container that waits has one, each caller another. */
static void allow_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= DESCRIPTORS_MAX)
        return;
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn("no more descriptors than usual: %s", strerror(errno));
}

static int open_broker(struct broker *b, struct err *e)
{
    const struct broker_config *config = b->config;
    const struct admission_limits limits = {.server = config->limits.max_runs,
                                            .tenant = config->limits.tenant_runs,
                                            .conversation = config->limits.conversation_runs,
                                            .queue = config->limits.queue,
                                            .background = config->limits.background_max};
    allow_descriptors();
    docker_engine_set_up();
    b->children = children_new();
    b->admission = admission_new(&limits);
    b->pool = pool_new(&config->pool);
    cpu_pressure_init(&b->cpu_pressure);
    housekeeper_link_init(&b->housekeeper);
    prune_init(&b->prune);
    reattach_init(&b->reattach);
    if (loop_init(&b->loop, b, e) < 0 ||
        sandbox_root_open(&b->root, config->root_path, config->host_path, config->file_secret,
                          config->base_url, config->sandbox_uid, config->sandbox_gid, e) < 0 ||
        open_signals(b, e) < 0)
        return -1;
    b->root.url_ttl_s = config->url_ttl_s;
    b->root.bounds = config->bounds;
    reattach_expect(b);
    b->helpers_path = helpers_install(&b->root, e);
    if (!b->helpers_path)
        return -1;
    return housekeeper_link_start(b, e);
}

static void close_broker(struct broker *b)
{
    pending_conns_clear(b); /* who came in the turn in which everything ended */
    reattach_end(b);
    housekeeper_link_clear(b);
    prune_end(b);
    auto_close_fd(&b->signal_fd);
    loop_clear(&b->loop);
    pool_free(b->pool);
    admission_free(b->admission);
    children_free(b->children);
    free(b->helpers_path);
    sandbox_root_close(&b->root);
}

int broker_serve(const struct broker_config *config, int listen_fd, struct err *e)
{
    struct broker b = {.config = config,
                       .loop = LOOP_INIT,
                       .listen_fd = listen_fd,
                       .signal_fd = -1,
                       .listen_watch = LOOP_WATCH_INIT,
                       .signal_watch = LOOP_WATCH_INIT,
                       .root = {.fd = -1},
                       .door_opens = DEADLINE_NEVER,
                       .pool_at = DEADLINE_NEVER};
    int result = open_broker(&b, e);

    while (result == 0 && !is_done(&b))
        broker_tick(&b);
    close_broker(&b);
    return result;
}
