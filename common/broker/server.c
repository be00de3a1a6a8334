#include "config.h"

#include "common/broker/server.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/machine.h"
#include "common/base/sock.h"
#include "common/broker/broker.h"
#include "common/sandbox/helpers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS_IN_A_ROW 64 /* before the ticks */
#define ACCEPT_PAUSE_MS 100
#define DESCRIPTORS_MAX 65536 /* each warm container has one, each caller another */

/* ---- signals ---- */

static void broker_reap(struct broker *b, pid_t pid, int status)
{
    struct child *child = children_find_pid(b->children, pid);

    if (pid == b->housekeeper.helper.pid) {
        housekeeper_link_reap(&b->housekeeper, b->stopping);
    } else if (child && child->kind == CHILD_JOB) {
        prune_reap(&b->prune, child);
        saver_link_reap(&b->saver, child);
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM) /* which is ours, at the end */
            log_error("a job was killed by signal %d", WTERMSIG(status));
        children_remove(b->children, child);
        b->held.retry = true;
    } else if (child) {
        supervisors_reap(b, child, status);
    }
}

static void on_signal(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct signalfd_siginfo info;
    int status;

    (void)item;
    (void)events;
    while (read(b->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            b->stopping = true;
        else if (info.ssi_signo == SIGHUP)
            b->stopping = b->relieved = true;
        else if (info.ssi_signo == SIGURG)
            b->stopping = b->ending = true;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        broker_reap(b, pid, status);
}

static int open_signals(struct broker *b, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGURG); /* other processes ignore it */
    if (sigprocmask(SIG_BLOCK, &set, &b->spawner.old_mask) < 0)
        return err_errno(e, "sigprocmask");
    b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (b->signal_fd < 0)
        return err_errno(e, "signalfd");
    return loop_add(&b->loop, &b->signal_watch, b->signal_fd, EPOLLIN, on_signal, NULL, e);
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

/* By the socket's path: the account tells. */
static enum op_sender sender_by_path(int fd)
{
    struct err e = ERR_INIT;
    uid_t uid;

    return sock_peer(fd, &uid, NULL, &e) == 0 && (uid == geteuid() || uid == 0) ? OP_FROM_OWN
                                                                                : OP_FROM_CALLS;
}

/* -1: there is none; errno says why. door NULL: it came by the path. */
static void add_connection(struct broker *b, int take_fd, const struct broker_door *door)
{
    AUTO_FD int fd = take_fd;

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            log_error("accept: %s", strerror(errno));
            b->accept_at = deadline_in_ms(ACCEPT_PAUSE_MS);
        }
        return;
    }
    if (!peer_allowed(b, fd)) {
        log_warn("refused a connection from another user");
        return;
    }
    const enum op_sender sender = door ? door->sender : sender_by_path(fd);
    pending_conns_add(&b->pending_conns, TAKE_FD(fd), sender);
}

static void on_connection(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;

    (void)item;
    (void)events;
    add_connection(b, accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC), NULL);
}

static void on_handed_connection(void *owner, void *item, uint32_t events)
{
    const struct broker_door *door = item;

    (void)events;
    add_connection(owner, sock_accept_over(door->fd), door);
}

static int open_doors(struct broker *b, struct err *e)
{
    if (loop_add(&b->loop, &b->listen_watch, b->listen_fd, EPOLLIN, on_connection, NULL, e) < 0)
        return -1;
    for (struct broker_door *d = b->doors; d < b->doors + OP_SENDERS; d++)
        if (d->fd >= 0 &&
            loop_add(&b->loop, &d->watch, d->fd, EPOLLIN, on_handed_connection, d, e) < 0)
            return -1;
    return 0;
}

static void shut_doors(struct broker *b)
{
    loop_remove(&b->loop, &b->listen_watch);
    for (size_t i = 0; i < OP_SENDERS; i++)
        loop_remove(&b->loop, &b->doors[i].watch);
}

/* Connections are accepted from the housekeeper's first report on, until the server stops. */
static void watch_listener(struct broker *b)
{
    struct err e = ERR_INIT;

    if (deadline_passed(b->accept_at))
        b->accept_at = DEADLINE_NEVER;
    bool open = !b->stopping && b->accept_at.at_ms < 0 && b->housekeeper.first_message.at_ms < 0;
    if (open == (b->listen_watch.fd >= 0))
        return;
    if (!open)
        shut_doors(b);
    else if (open_doors(b, &e) < 0)
        log_error("no connections are accepted: %s", e.text);
}

/* ---- the loop ---- */

static void broker_tick(struct broker *b)
{
    housekeeper_link_tick(&b->housekeeper, b->stopping);
    pending_conns_tick(&b->pending_conns);
    readback_tick(&b->readback);
    dispatch_tick(b); /* it may begin runs */
    supervisors_tick(b);
    runs_tick(b);
    tenant_limits_tick(b);
    if (b->stopping) {
        pending_conns_clear(&b->pending_conns);
        warm_pool_release(&b->warm_pool, NULL);
        prune_end(&b->prune);
        supervisors_end(b);
        saver_link_stop(&b->saver, b->relieved || b->ending);
    } else {
        reattach_tick(&b->reattach);
        warm_pool_tick(&b->warm_pool, run_queue_length(b->queue));
        prune_tick(&b->prune);
        saver_link_tick(&b->saver);
    }
    watch_listener(b);
}

static struct deadline broker_due(const struct broker *b)
{
    const struct deadline due[] = {
        b->housekeeper.first_message,
        b->housekeeper.start,
        b->housekeeper.notify,
        pending_conns_due(&b->pending_conns),
        run_queue_due(b->queue),
        dispatch_due(b),
        b->prune.next,
        saver_link_due(&b->saver),
        b->reattach.check,
        b->warm_pool.due,
        b->accept_at,
        b->books_at,
    };
    struct deadline first = DEADLINE_NEVER;

    for (size_t i = 0; i < ARRAY_LEN(due); i++)
        first = deadline_min(first, due[i]);
    return first;
}

/* One event at a time: what follows from it comes before the next. */
static bool broker_wait_one(struct broker *b, struct deadline until)
{
    struct err e = ERR_INIT;
    int n = loop_wait_one(&b->loop, until, &e);

    if (n < 0) {
        log_error("the broker stops: %s", e.text);
        b->stopping = true;
    }
    if (n > 0) {
        supervisors_tick(b);
        runs_tick(b);
    }
    return n > 0;
}

static bool is_done(const struct broker *b)
{
    return b->stopping && run_queue_is_empty(b->queue) && !b->held.first &&
           children_count(b->children, NULL, NULL) == 0;
}

/* Callers first: the ticks, above all new containers, come when no event is left. */
static void broker_turn(struct broker *b)
{
    broker_tick(b);
    if (is_done(b)) /* the last child was released: no event would come */
        return;
    bool more = broker_wait_one(b, broker_due(b));
    for (int n = 1; more && n < EVENTS_IN_A_ROW; n++)
        more = broker_wait_one(b, deadline_in_ms(0));
}

static bool sandbox_exists(void *ctx, const char *sandbox_dir)
{
    const struct broker *b = ctx;

    return faccessat(b->root.fd, sandbox_dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool memory_available(void *ctx, uint64_t *out)
{
    struct machine_memory memory;

    (void)ctx;
    if (!machine_memory_look("", &memory))
        return false;
    *out = memory.available;
    return true;
}

static void make_books(struct broker *b)
{
    const struct broker_limits *limits = &b->config->limits;

    b->children = children_new();
    b->tenant_books = tenant_books_new(b->config->tenants);
    b->books_at = DEADLINE_NEVER;
    b->pool = pool_new(&b->config->pool, &b->housekeeper.runners.list);
    b->queue = run_queue_new(
        &(struct run_queue_settings){.limits = {.server = limits->max_runs,
                                                .tenant = limits->tenant_runs,
                                                .conversation = limits->conversation_runs,
                                                .queue = limits->queue},
                                     .background_max = limits->background_max,
                                     .starts_max = b->config->pool.starts_max,
                                     .background_wait_ms = limits->wait_ms,
                                     .memory = {.limit = b->config->container.memory_bytes,
                                                .reserve = b->config->memory_reserve},
                                     .children = b->children,
                                     .pool = b->pool,
                                     .runners = &b->housekeeper.runners,
                                     .sandbox_exists = sandbox_exists,
                                     .memory_available = memory_available,
                                     .ctx = b});
}

/* Points the parts at each other; nothing here can fail. */
static void connect_parts(struct broker *b)
{
    b->io = (struct child_io){.loop = &b->loop};
    b->spawner.config = b->config;
    b->spawner.root = &b->root;
    b->spawner.runners = &b->housekeeper.runners;
    b->spawner.children = b->children;
    b->spawner.io = &b->io;
    b->warm_pool = (struct warm_pool){
        .spawner = &b->spawner, .pool = b->pool, .due = DEADLINE_NEVER};
    b->pending_conns = (struct pending_conns){
        .loop = &b->loop, .dispatch = dispatch_call, .ctx = b};
    b->rooms = (struct rooms){.loop = &b->loop, .root = &b->root};
    housekeeper_link_init(&b->housekeeper, &b->spawner, &b->held.retry);
    prune_init(&b->prune, &b->spawner, &b->warm_pool, b->queue);
    saver_link_init(&b->saver, &b->spawner);
    readback_init(&b->readback, &b->spawner, &b->prune, dispatch_read_back, b);
}

/* A share of the file system is known when SANDBOX_ROOT is open. */
static void set_bounds(struct broker *b)
{
    struct sandbox_bounds *bounds = &b->root.bounds;
    struct statvfs fs;

    *bounds = b->config->bounds;
    if (bounds->total_percent > 0 && fstatvfs(b->root.fd, &fs) == 0)
        bounds->total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize / 100 * bounds->total_percent;
}

static int open_broker(struct broker *b, struct err *e)
{
    const struct broker_config *config = b->config;

    fdio_allow(DESCRIPTORS_MAX);
    docker_engine_set_up();
    make_books(b);
    connect_parts(b);
    if (loop_init(&b->loop, b, e) < 0 ||
        sandbox_root_open(&b->root, config->root_path, config->host_path, config->file_secret,
                          config->base_url, config->sandbox_uid, config->sandbox_gid,
                          config->web_gid, e) < 0 ||
        open_signals(b, e) < 0)
        return -1;
    if (config->old_secret && *config->old_secret &&
        sandbox_root_keep_old(&b->root, config->old_secret, config->old_secret_until, e) < 0)
        return -1;
    b->root.url_ttl_s = config->url_ttl_s;
    b->root.tenants = config->tenants;
    set_bounds(b);
    reattach_init(&b->reattach, &b->spawner, &b->held.retry);
    if (saver_link_open(&b->saver, e) < 0)
        return -1;
    b->spawner.helpers_path = helpers_install(&b->root, e);
    if (!b->spawner.helpers_path)
        return -1;
    return housekeeper_link_start(&b->housekeeper, e);
}

static void close_broker(struct broker *b)
{
    pending_conns_clear(&b->pending_conns); /* those of the turn in which all ended */
    b->relieved = true;                     /* the supervisors that are left go on */
    supervisors_end(b);
    housekeeper_link_clear(&b->housekeeper);
    prune_end(&b->prune);
    helper_end(&b->saver.helper);
    readback_clear(&b->readback);
    rooms_clear(&b->rooms);
    auto_close_fd(&b->signal_fd);
    loop_clear(&b->loop);
    tenant_limits_close(b);
    run_queue_free(b->queue);
    pool_free(b->pool);
    children_free(b->children);
    free(b->spawner.helpers_path);
    sandbox_root_close(&b->root);
}

int broker_serve(const struct broker_config *config, int listen_fd, const int *conns, struct err *e)
{
    struct broker b = {.config = config,
                       .loop = LOOP_INIT,
                       .listen_fd = listen_fd,
                       .signal_fd = -1,
                       .listen_watch = LOOP_WATCH_INIT,
                       .signal_watch = LOOP_WATCH_INIT,
                       .root = {.fd = -1},
                       .accept_at = DEADLINE_NEVER};

    for (enum op_sender i = 0; i < OP_SENDERS; i++)
        b.doors[i] = (struct broker_door){conns ? conns[i] : -1, i, LOOP_WATCH_INIT};
    int result = open_broker(&b, e);

    while (result == 0 && !is_done(&b))
        broker_turn(&b);
    close_broker(&b);
    return result;
}
