#include "config.h"

#include "fcgi/process/master.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/purpose.h"
#include "common/protocol/client_call.h"
#include "fcgi/commands.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/oauth/judge_serve.h"
#include "fcgi/oauth/server/server.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG_MS     2000 /* a child that dies younger than this is started again with a pause */
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 5000
#define GRACE_MS     5000 /* on top of the longest run, for a drain to end by itself */
#define TOKENS_MS    250  /* between two looks at SANDCGI_TOKENS_FILE */
#define LOOK_MS      25   /* between two looks at workers with brief calls */
#define SHRINK_MS    1000 /* between two ends of an eighth of the workers that are too many */
#define SHRINK_PART  8

enum role { ROLE_BROKER, ROLE_WORKER, ROLE_HUB, ROLE_METRICS, ROLE_JUDGE, ROLE_OAUTH };

static const char *const role_names[] = {"broker", "worker", "hub", "metrics", "judge", "oauth"};
static const enum purpose purposes[] = {PURPOSE_BROKER,  PURPOSE_WORKER, PURPOSE_HUB,
                                        PURPOSE_METRICS, PURPOSE_OAUTH,  PURPOSE_OAUTH};

/* The other sockets are closed: a worker could take connections of others from them. */
#define BROKER_CONNS                                                                               \
    (1u << SOCKET_CONNS_IN | 1u << SOCKET_HUB_CONNS_IN | 1u << SOCKET_METRICS_CONNS_IN)
#define FRONT_SOCKETS (1u << SOCKET_EVENTS_OUT | 1u << SOCKET_ASKS_OUT)
static const unsigned kept_sockets[] = {
    [ROLE_BROKER] = 1u << SOCKET_BROKER | BROKER_CONNS,
    [ROLE_WORKER] = FRONT_SOCKETS | 1u << SOCKET_CONNS_OUT | 1u << SOCKET_FASTCGI,
    [ROLE_METRICS] = 1u << SOCKET_METRICS | 1u << SOCKET_METRICS_CONNS_OUT,
    [ROLE_JUDGE] = 1u << SOCKET_JUDGE | 1u << SOCKET_ASKS_IN,
    [ROLE_OAUTH] = 1u << SOCKET_OAUTH,
    [ROLE_HUB] = FRONT_SOCKETS | 1u << SOCKET_HUB_CONNS_OUT | 1u << SOCKET_HUB |
                 1u << SOCKET_EVENTS | 1u << SOCKET_EVENTS_IN,
};

/* Where nobody is answered any more when the server ends and one of these has. */
static const unsigned served_sockets[] = {
    [ROLE_BROKER] = BROKER_CONNS,      [ROLE_WORKER] = 1u << SOCKET_FASTCGI,
    [ROLE_HUB] = 1u << SOCKET_HUB,     [ROLE_METRICS] = 1u << SOCKET_METRICS,
    [ROLE_JUDGE] = 1u << SOCKET_JUDGE, [ROLE_OAUTH] = 1u << SOCKET_OAUTH,
};

/* One child that is to run. */
struct child_slot {
    enum role role;
    pid_t pid; /* 0: not running */
    int64_t started_ms;
    int64_t pause_ms;         /* before the last restart; 0 after a good life */
    struct deadline start_at; /* without pid; never: the slot is not used */
    bool ending;              /* a worker that is too many has been asked to end */
};

struct master {
    struct settings *settings;
    struct account workers;
    struct server_sockets sockets;
    int sessions_fd, oauth_fd, signal_fd;
    struct token_table *tokens; /* for SANDCGI_AUTH=token; else NULL */
    struct deadline look_at_tokens;
    int wake_fd; /* eventfd: a call has begun or ended while the master did not look */
    sigset_t children_mask;
    struct child_slot *slots;
    size_t n_slots, first_worker;
    struct calls *calls; /* of the workers' slots */
    struct deadline shrink_at;
    bool stopping;           /* waits for the runs */
    bool followed;           /* another master serves the sockets */
    bool broker_asked;       /* to end */
    bool ending;             /* has had the broker end the runs */
    struct deadline give_up; /* end of the time for that */
};

/* The programs of the children: 0 when asked to stop, or -1. */
static int broker_main(struct master *m, struct err *e)
{
    struct broker_config config = broker_config_of(m->settings, m->workers.uid);

    config.watch_site = strncmp(config.base_url, "https:", 6) == 0;
    const int *fds = m->sockets.fds;
    const int conns[OP_SENDERS] = {[OP_FROM_OWN] = -1,
                                   [OP_FROM_CALLS] = fds[SOCKET_CONNS_IN],
                                   [OP_FROM_HUB] = fds[SOCKET_HUB_CONNS_IN],
                                   [OP_FROM_METRICS] = fds[SOCKET_METRICS_CONNS_IN]};
    return broker_serve(&config, fds[SOCKET_BROKER], conns, e);
}

/* Workers and hub parse hostile input: they drop all rights, and erase the secrets that only the
 * broker needs. */
static int front_main(struct master *m, const struct child_slot *slot, struct err *e)
{
    bool hub = slot->role == ROLE_HUB;
    pid_t master = getppid();
    struct app app;
    int result = 0;

    if (hub)
        hub_streams_reserve(m->settings->max_streams);
    if (app_init(&app, m->settings, true, m->tokens, e) < 0 || account_become(&m->workers, e) < 0 ||
        (m->tokens && token_table_confine(m->tokens, e) < 0) ||
        front_memory_bound(m->settings, hub, e) < 0)
        return -1;
    explicit_bzero(m->settings->file_secret, strlen(m->settings->file_secret));
    explicit_bzero(m->settings->old_secret, strlen(m->settings->old_secret));
    explicit_bzero(m->settings->api_token, strlen(m->settings->api_token));
    app_set_sessions(&app, m->sessions_fd);
    client_connect_over(m->sockets.fds[hub ? SOCKET_HUB_CONNS_OUT : SOCKET_CONNS_OUT]);
    event_sender_use(&app.events, TAKE_FD(m->sockets.fds[SOCKET_EVENTS_OUT]));
    app.asks_fd = m->sockets.fds[SOCKET_ASKS_OUT];
    if (!hub)
        app.place = (struct call_place){.calls = m->calls,
                                        .i = (size_t)(slot - m->slots) - m->first_worker,
                                        .n = m->n_slots - m->first_worker,
                                        .max = m->settings->max_calls,
                                        .wake_fd = m->wake_fd};
    json_object_seed(0); /* from /dev/urandom, which cannot be opened later */
    if (account_confine(m->sessions_fd, hub, e) < 0)
        return -1;
    mem_trim();              /* what it took to make the filter */
    if (getppid() == master) /* else it died while the change of account had cleared the signal */
        result = hub ? hub_serve(
                           &app, m->sockets.fds[SOCKET_HUB],
                           (int[]){m->sockets.fds[SOCKET_EVENTS], m->sockets.fds[SOCKET_EVENTS_IN]},
                           e)
                     : fastcgi_serve(&app, m->sockets.fds[SOCKET_FASTCGI], e);
    app_clear(&app);
    return result;
}

static int role_main(struct master *m, const struct child_slot *slot, struct err *e)
{
    const int *fds = m->sockets.fds;
    const struct call_place calls = {
        .calls = m->calls, .n = m->n_slots - m->first_worker, .max = m->settings->max_calls};

    switch (slot->role) {
    case ROLE_BROKER:
        return broker_main(m, e);
    case ROLE_METRICS:
        return metrics_main(m->settings, &m->workers, &calls, fds[SOCKET_METRICS],
                            fds[SOCKET_METRICS_CONNS_OUT], e);
    case ROLE_JUDGE:
        return judge_main(m->settings, &m->workers, fds[SOCKET_JUDGE], fds[SOCKET_ASKS_IN], e);
    case ROLE_OAUTH:
        return oauth_main(m->settings, &m->workers, fds[SOCKET_OAUTH], m->oauth_fd, e);
    default:
        return front_main(m, slot, e);
    }
}

static void child_main(struct master *m, const struct child_slot *slot, pid_t parent)
{
    struct err e = ERR_INIT;

    /* As at a reload, the broker leaves runs and sandboxes to the one that follows. */
    prctl(PR_SET_PDEATHSIG, slot->role == ROLE_BROKER ? SIGHUP : SIGTERM);
    if (getppid() != parent)
        _exit(0);
    log_setup((enum log_level)m->settings->log_level, role_names[slot->role]);
    server_sockets_keep(&m->sockets, kept_sockets[slot->role]);
    auto_close_fd(&m->signal_fd);
    if (slot->role != ROLE_OAUTH)
        auto_close_fd(&m->oauth_fd);
    if (slot->role != ROLE_WORKER && slot->role != ROLE_HUB) {
        auto_close_fd(&m->sessions_fd);
        token_table_free(TAKE_PTR(m->tokens));
    }
    if (slot->role != ROLE_WORKER)
        auto_close_fd(&m->wake_fd);
    sigprocmask(SIG_SETMASK, &m->children_mask, NULL);
    if (slot->role != ROLE_BROKER) /* they parse what strangers send */
        log_unshare();
    if (slot->role != ROLE_METRICS)
        metrics_enter(slot->role == ROLE_BROKER ? METRICS_BACK : METRICS_FRONT);
    purpose_set(purposes[slot->role]);
    int result = role_main(m, slot, &e);
    if (result < 0)
        log_error("%s", e.text);
    _exit(result < 0 ? 1 : 0);
}

static void slot_start(struct master *m, struct child_slot *slot)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child_main(m, slot, parent);
    slot->started_ms = clock_mono_ms();
    if (pid < 0) {
        log_error("fork: %s", strerror(errno));
        slot->start_at = deadline_in_ms(PAUSE_MAX_MS);
        return;
    }
    slot->pid = pid;
    slot->start_at = DEADLINE_NEVER;
}

static void slot_ended(struct child_slot *slot, int status)
{
    bool killed = WIFSIGNALED(status);

    log_error("%s %d exited with %s %d; restarting", role_names[slot->role], (int)slot->pid,
              killed ? "signal" : "status", killed ? WTERMSIG(status) : WEXITSTATUS(status));
    /* A request that took all of a worker's memory may come again at once. */
    int64_t young_ms = WIFEXITED(status) && WEXITSTATUS(status) == MEM_EXIT_STATUS ? PAUSE_MIN_MS
                                                                                   : YOUNG_MS;
    if (clock_mono_ms() - slot->started_ms >= young_ms)
        slot->pause_ms = 0;
    else if (slot->pause_ms == 0)
        slot->pause_ms = PAUSE_MIN_MS;
    else
        slot->pause_ms = slot->pause_ms * 2 < PAUSE_MAX_MS ? slot->pause_ms * 2 : PAUSE_MAX_MS;
    slot->start_at = deadline_in_ms(slot->pause_ms);
}

static void on_child_exit(struct master *m, pid_t pid, int status)
{
    for (size_t i = 0; i < m->n_slots; i++) {
        struct child_slot *slot = &m->slots[i];
        if (slot->pid != pid)
            continue;
        if (!m->stopping && !slot->ending)
            slot_ended(slot, status);
        if (slot->role == ROLE_WORKER)
            calls_clear(m->calls, i - m->first_worker);
        if (m->stopping && !m->followed)
            server_sockets_shut(&m->sockets, served_sockets[slot->role]);
        slot->pid = 0;
        slot->ending = false;
        return;
    }
}

static void signal_all(const struct master *m, int sig)
{
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].pid > 0)
            kill(m->slots[i].pid, sig);
}

static void master_stop(struct master *m)
{
    if (m->give_up.at_ms >= 0) {
        log_warn("another stop signal: not waiting any longer");
        m->give_up = deadline_in_ms(0);
        return;
    }
    log_debug("stopping; waiting for running programs");
    m->give_up = deadline_in_ms((int64_t)m->settings->limits.timeout_max_ms + GRACE_MS);
    if (m->stopping)
        return;
    m->stopping = true;
    atomic_store(&m->calls->last, true);
    if (server_sockets_keep_queue(&m->sockets)) /* else when a worker has found it empty */
        server_sockets_shut(&m->sockets, served_sockets[ROLE_WORKER]);
    for (size_t i = 1; i < m->n_slots; i++)
        if (m->slots[i].pid > 0)
            kill(m->slots[i].pid, SIGTERM);
}

/* At the end of the server: workers may still serve connections of the queue, which need a broker
 * that starts runs. Returns when to look again. */
static struct deadline end_broker(struct master *m)
{
    for (size_t i = m->first_worker; i < m->n_slots; i++)
        if (m->slots[i].pid > 0 &&
            calls_state(m->calls, i - m->first_worker, clock_mono_ms()) != CALL_LONG)
            return deadline_in_ms(LOOK_MS);
    m->broker_asked = true;
    if (m->slots[0].pid > 0)
        kill(m->slots[0].pid, SIGTERM);
    return DEADLINE_NEVER;
}

/* Under SIGHUP the broker leaves its runs and persistent sandboxes to the next one. */
static void master_leave(struct master *m)
{
    m->stopping = m->followed = m->broker_asked = true;
    server_sockets_keep(&m->sockets, ~BROKER_CONNS); /* else they would be open without a broker */
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].pid > 0)
            kill(m->slots[i].pid, m->slots[i].role == ROLE_BROKER ? SIGHUP : SIGTERM);
}

static void slots_make(struct master *m)
{
    const size_t wanted[] = {[ROLE_BROKER] = 1,
                             [ROLE_HUB] = m->sockets.fds[SOCKET_HUB] >= 0,
                             [ROLE_METRICS] = m->sockets.fds[SOCKET_METRICS] >= 0,
                             [ROLE_JUDGE] = m->sockets.fds[SOCKET_JUDGE] >= 0,
                             [ROLE_OAUTH] = m->sockets.fds[SOCKET_OAUTH] >= 0 ? OAUTH_PROCESSES
                                                                              : 0};

    m->first_worker = 0;
    for (size_t role = 0; role < ARRAY_LEN(wanted); role++)
        m->first_worker += wanted[role];
    m->n_slots = m->first_worker + m->settings->workers + m->settings->max_calls;
    m->calls = calls_new(m->n_slots - m->first_worker);
    m->slots = mem_array(m->n_slots, sizeof *m->slots);
    for (size_t i = 0; i < m->n_slots; i++)
        m->slots[i] = (struct child_slot){.role = ROLE_WORKER, .start_at = DEADLINE_NEVER};
    for (size_t role = 0, i = 0; role < ARRAY_LEN(wanted); role++)
        for (size_t n = 0; n < wanted[role]; n++)
            m->slots[i++] = (struct child_slot){.role = (enum role)role,
                                                .start_at = deadline_in_ms(0)};
}

/* ---- free workers ---- */

static bool slot_is_unused(const struct child_slot *slot)
{
    return slot->pid == 0 && slot->start_at.at_ms < 0;
}

/* How many workers have no call that lasts; *out_brief: one of them has a call. */
static size_t count_free(const struct master *m, bool *out_brief)
{
    int64_t now = clock_mono_ms();
    size_t n_free = 0;

    *out_brief = false;
    for (size_t i = m->first_worker; i < m->n_slots; i++) {
        const struct child_slot *slot = &m->slots[i];
        enum call_state state = calls_state(m->calls, i - m->first_worker, now);
        n_free += !slot_is_unused(slot) && !slot->ending && state != CALL_LONG;
        *out_brief = *out_brief || state == CALL_BRIEF;
    }
    return n_free;
}

/* Ends workers without a call. One that gets a call just now answers it first. */
static void end_workers(struct master *m, size_t n)
{
    for (size_t i = m->n_slots; i-- > m->first_worker && n > 0;) {
        struct child_slot *slot = &m->slots[i];
        if (slot->pid == 0 || slot->ending ||
            calls_state(m->calls, i - m->first_worker, clock_mono_ms()) != CALL_NONE)
            continue;
        slot->ending = true;
        kill(slot->pid, SIGTERM);
        n--;
    }
}

/* Has a worker started for each call that lasts, and fewer of them again slowly, since calls like
 * these may come again. Returns when to look again. */
static struct deadline keep_workers_free(struct master *m)
{
    size_t wanted = m->settings->workers, used = 0;
    bool brief;

    atomic_store(&m->calls->wants_wake, true); /* before the look: see wake_master */
    size_t n_free = count_free(m, &brief);
    if (brief)
        atomic_store(&m->calls->wants_wake, false);
    if (n_free > wanted && deadline_passed(m->shrink_at)) {
        end_workers(m, (n_free - wanted + SHRINK_PART - 1) / SHRINK_PART);
        m->shrink_at = deadline_in_ms(SHRINK_MS);
    }
    for (size_t i = m->first_worker; i < m->n_slots; i++) {
        struct child_slot *slot = &m->slots[i];
        if (n_free < wanted && slot_is_unused(slot)) {
            slot->start_at = deadline_in_ms(0);
            n_free++;
        }
        if (!slot_is_unused(slot))
            used = i + 1 - m->first_worker;
    }
    atomic_store(&m->calls->n_used, used);
    if (brief)
        return deadline_in_ms(LOOK_MS);
    return n_free > wanted ? m->shrink_at : DEADLINE_NEVER;
}

static void on_signal(struct master *m)
{
    struct signalfd_siginfo info;

    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            master_stop(m);
        else if (info.ssi_signo == SIGHUP && !m->stopping)
            master_leave(m);
        else if (info.ssi_signo == SIGURG)
            atomic_store(&m->calls->draining, true);
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        on_child_exit(m, pid, status);
}

static bool has_children(const struct master *m)
{
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].pid > 0)
            return true;
    return false;
}

/* Returns when to look again. */
static struct deadline look_at_tokens(struct master *m)
{
    if (deadline_passed(m->look_at_tokens)) {
        token_table_look(m->tokens);
        m->look_at_tokens = deadline_in_ms(TOKENS_MS);
    }
    return m->look_at_tokens;
}

static void master_tick(struct master *m)
{
    struct deadline next = m->stopping ? m->give_up : keep_workers_free(m);
    eventfd_t ignored;

    for (size_t i = 0; i < m->n_slots && !m->stopping; i++) {
        if (deadline_passed(m->slots[i].start_at))
            slot_start(m, &m->slots[i]);
        next = deadline_min(next, m->slots[i].start_at);
    }
    if (m->stopping && !m->broker_asked)
        next = deadline_min(next, end_broker(m));
    if (m->tokens && !m->stopping)
        next = deadline_min(next, look_at_tokens(m));
    struct pollfd p[] = {{.fd = m->signal_fd, .events = POLLIN},
                         {.fd = m->wake_fd, .events = POLLIN}};
    purpose_count();
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(next)) > 0 && p[0].revents)
        on_signal(m);
    eventfd_read(m->wake_fd, &ignored);
    if (m->stopping && deadline_passed(m->give_up)) {
        signal_all(m, m->ending ? SIGKILL : SIGURG); /* only the broker heeds it */
        m->ending = true;
        m->give_up = deadline_in_ms(GRACE_MS);
    }
}

void master_run(const struct master_config *config)
{
    struct master m = {.settings = config->settings,
                       .workers = config->workers,
                       .sockets = *config->sockets,
                       .sessions_fd = config->sessions_fd,
                       .oauth_fd = config->oauth_fd,
                       .signal_fd = config->signal_fd,
                       .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                       .children_mask = config->mask,
                       .shrink_at = deadline_in_ms(0),
                       .look_at_tokens = deadline_in_ms(0),
                       .give_up = DEADLINE_NEVER};

    struct err e = ERR_INIT;

    log_set_role("master");
    purpose_set(PURPOSE_MASTER);
    if (m.settings->auth == SETTINGS_AUTH_TOKEN &&
        !(m.tokens = token_table_new(m.settings->tokens_file, m.settings->api_token, &e))) {
        log_error("SANDCGI_TOKENS_FILE: %s", e.text);
        return;
    }
    slots_make(&m);
    atomic_store(&m.calls->draining, config->draining);
    log_info("listening on %s, %ju free workers%s", m.settings->listen,
             (uintmax_t)m.settings->workers, m.sockets.fds[SOCKET_HUB] >= 0 ? ", hub" : "");
    kernel_log_walls();
    while (!m.stopping || has_children(&m))
        master_tick(&m);
    log_info(m.followed ? "the earlier generation has ended" : "stopped");
    calls_free(m.calls, m.n_slots - m.first_worker);
    free(m.slots);
    token_table_free(m.tokens);
}
