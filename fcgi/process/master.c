#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/client_call.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/process/guard.h"
#include "fcgi/process/resources.h"

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
#define LOOK_MS      25   /* between two looks at workers with brief calls */
#define SHRINK_MS    1000 /* between two ends of an eighth of the workers that are too many */
#define SHRINK_PART  8

enum role { ROLE_BROKER, ROLE_WORKER, ROLE_HUB };

static const char *const role_names[] = {"broker", "worker", "hub"};

/* No hub: FD_HUB and FD_EVENTS are -1. FD_WAKE: a call has begun or ended while the master did not
 * look. …_IN and …_OUT are pairs, on which workers and hub send: connections to the broker, events
 * to the hub. */
enum { FD_SIGNAL, FD_FASTCGI, FD_BROKER, FD_HUB, FD_EVENTS, FD_SESSIONS, FD_WAKE };
enum { FD_CONNS_IN = FD_WAKE + 1, FD_CONNS_OUT, FD_EVENTS_IN, FD_EVENTS_OUT, N_FDS };

/* The other descriptors are closed: a worker could take connections of others from them. */
#define FRONT_FDS (1u << FD_SESSIONS | 1u << FD_CONNS_OUT | 1u << FD_EVENTS_OUT)
static const unsigned kept_fds[] = {
    [ROLE_BROKER] = 1u << FD_BROKER | 1u << FD_CONNS_IN,
    [ROLE_WORKER] = FRONT_FDS | 1u << FD_FASTCGI | 1u << FD_WAKE,
    [ROLE_HUB] = FRONT_FDS | 1u << FD_HUB | 1u << FD_EVENTS | 1u << FD_EVENTS_IN,
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
    const char *config_path;
    struct account workers;
    int fds[N_FDS];
    sigset_t old_mask;
    struct child_slot *slots;
    size_t n_slots, first_worker;
    struct calls *calls; /* of the workers' slots */
    struct deadline shrink_at;
    pid_t *draining; /* children of earlier generations (SIGHUP) that have not ended yet */
    size_t n_draining;
    bool guarded;            /* another master follows this one, whatever ends it */
    bool stopping, ending;   /* waits for the runs; has had the broker end them */
    struct deadline give_up; /* end of the time for that */
};

/* The programs of the children: 0 when asked to stop, or -1. */
static int broker_main(struct master *m, struct err *e)
{
    const struct broker_config config = broker_config_of(m->settings, m->workers.uid);

    return broker_serve(&config, m->fds[FD_BROKER], m->fds[FD_CONNS_IN], e);
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
    if (app_init(&app, m->settings, true, e) < 0 || account_become(&m->workers, e) < 0 ||
        front_memory_bound(m->settings, hub, e) < 0)
        return -1;
    explicit_bzero(m->settings->file_secret, strlen(m->settings->file_secret));
    explicit_bzero(m->settings->api_token, strlen(m->settings->api_token));
    app_set_sessions(&app, m->fds[FD_SESSIONS]);
    client_connect_over(m->fds[FD_CONNS_OUT]);
    event_sender_use(&app.events, TAKE_FD(m->fds[FD_EVENTS_OUT]));
    if (!hub)
        app.place = (struct call_place){.calls = m->calls,
                                        .i = (size_t)(slot - m->slots) - m->first_worker,
                                        .n = m->n_slots - m->first_worker,
                                        .max = m->settings->max_calls,
                                        .wake_fd = m->fds[FD_WAKE]};
    json_object_seed(0); /* from /dev/urandom, which cannot be opened later */
    if (account_confine(m->fds[FD_SESSIONS], hub, e) < 0)
        return -1;
    mem_trim();              /* what it took to make the filter */
    if (getppid() == master) /* else it died while the change of account had cleared the signal */
        result = hub ? hub_serve(&app, m->fds[FD_HUB],
                                 (int[]){m->fds[FD_EVENTS], m->fds[FD_EVENTS_IN]}, e)
                     : fastcgi_serve(&app, m->fds[FD_FASTCGI], e);
    app_clear(&app);
    return result;
}

static void child_main(struct master *m, const struct child_slot *slot, pid_t parent)
{
    struct err e = ERR_INIT;

    /* As at a reload, the broker leaves runs and sandboxes to the one that follows. */
    prctl(PR_SET_PDEATHSIG, slot->role == ROLE_BROKER && m->guarded ? SIGHUP : SIGTERM);
    if (getppid() != parent)
        _exit(0);
    log_setup((enum log_level)m->settings->log_level, role_names[slot->role]);
    for (size_t i = 0; i < N_FDS; i++)
        if (!(kept_fds[slot->role] & 1u << i))
            auto_close_fd(&m->fds[i]);
    sigprocmask(SIG_SETMASK, &m->old_mask, NULL);
    int result = slot->role == ROLE_BROKER ? broker_main(m, &e) : front_main(m, slot, &e);
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
        slot->pid = 0;
        slot->ending = false;
        return;
    }
    for (size_t i = 0; i < m->n_draining; i++)
        if (m->draining[i] == pid) {
            m->draining[i] = m->draining[--m->n_draining];
            return;
        }
}

static void signal_all(const struct master *m, int sig)
{
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].pid > 0)
            kill(m->slots[i].pid, sig);
    for (size_t i = 0; i < m->n_draining; i++)
        kill(m->draining[i], sig);
}

static void master_stop(struct master *m)
{
    if (m->stopping) {
        log_warn("another stop signal: not waiting any longer");
        m->give_up = deadline_in_ms(0);
        return;
    }
    log_info("stopping; waiting for running programs");
    m->stopping = true;
    m->give_up = deadline_in_ms((int64_t)m->settings->limits.timeout_max_ms + GRACE_MS);
    signal_all(m, SIGTERM);
}

static void slots_free(struct master *m)
{
    calls_free(m->calls, m->n_slots - m->first_worker);
    free(m->slots);
}

static void slots_make(struct master *m)
{
    m->first_worker = m->fds[FD_HUB] >= 0 ? 2 : 1;
    m->n_slots = m->first_worker + m->settings->workers + m->settings->max_calls;
    m->calls = calls_new(m->n_slots - m->first_worker);
    m->slots = mem_array(m->n_slots, sizeof *m->slots);
    for (size_t i = 0; i < m->n_slots; i++)
        m->slots[i] = (struct child_slot){.role = ROLE_WORKER, .start_at = DEADLINE_NEVER};
    for (size_t i = 0; i < m->first_worker; i++)
        m->slots[i] = (struct child_slot){.role = i == 0 ? ROLE_BROKER : ROLE_HUB,
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

/* Checks what can be checked without a change: a bad configuration must not end a running server.
 */
static int settings_usable(const struct settings *s, struct account *workers, struct err *e)
{
    struct app app;
    if (account_of_workers(s->user, workers, e) < 0 || app_init(&app, s, true, e) < 0)
        return -1;
    if (geteuid() == 0 && s->web_gid && workers->gid == s->web_gid)
        log_warn("SANDCGI_USER=%s is in the web server's group: a worker could read all files in "
                 "SANDBOX_ROOT; give the workers an account of their own",
                 s->user);
    app_clear(&app);
    return 0;
}

static struct settings *settings_reread(const struct master *m, struct account *workers)
{
    struct err e = ERR_INIT;
    struct settings *fresh = mem_alloc(sizeof *fresh);

    if (settings_load(fresh, m->config_path, &e) == 0) {
        if (settings_usable(fresh, workers, &e) == 0)
            return fresh;
        settings_clear(fresh);
    }
    free(fresh);
    log_error("settings not reloaded: %s", e.text);
    return NULL;
}

static void master_reload(struct master *m)
{
    struct account workers;
    struct settings *fresh = settings_reread(m, &workers);

    if (!fresh)
        return;
    log_info("settings reloaded; starting new processes");
    m->draining = mem_resize(m->draining, m->n_draining + m->n_slots, sizeof *m->draining);
    for (size_t i = 0; i < m->n_slots; i++) {
        struct child_slot *slot = &m->slots[i];
        if (slot->pid == 0)
            continue;
        /* Under SIGHUP the broker leaves its runs and persistent sandboxes to the next one. */
        kill(slot->pid, slot->role == ROLE_BROKER ? SIGHUP : SIGTERM);
        m->draining[m->n_draining++] = slot->pid;
    }
    settings_clear(m->settings);
    free(m->settings);
    m->settings = fresh;
    m->workers = workers;
    slots_free(m); /* workers that answer their last call have the memory, too */
    slots_make(m);
}

static void on_signal(struct master *m)
{
    struct signalfd_siginfo info;

    while (read(m->fds[FD_SIGNAL], &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            master_stop(m);
        else if (info.ssi_signo == SIGHUP && !m->stopping)
            master_reload(m);
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
    return m->n_draining > 0;
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
    struct pollfd p[] = {{.fd = m->fds[FD_SIGNAL], .events = POLLIN},
                         {.fd = m->fds[FD_WAKE], .events = POLLIN}};
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(next)) > 0 && p[0].revents)
        on_signal(m);
    eventfd_read(m->fds[FD_WAKE], &ignored);
    if (m->stopping && deadline_passed(m->give_up)) {
        signal_all(m, m->ending ? SIGKILL : SIGURG); /* only the broker heeds it */
        m->ending = true;
        m->give_up = deadline_in_ms(GRACE_MS);
    }
}

static int master_open_signals(struct master *m, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    for (const int *sig = (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0}; *sig; sig++)
        sigaddset(&set, *sig);
    if (sigprocmask(SIG_BLOCK, &set, &m->old_mask) < 0)
        return err_errno(e, "sigprocmask");
    if ((m->fds[FD_SIGNAL] = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
        return err_errno(e, "signalfd");
    m->fds[FD_WAKE] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return m->fds[FD_WAKE] < 0 ? err_errno(e, "eventfd") : 0;
}

/* Finds every error of the configuration before the first child is started. */
static int master_open(struct master *m, struct err *e)
{
    const struct settings *s = m->settings;
    int *fds = m->fds;

    if (settings_usable(s, &m->workers, e) < 0 || (fds[FD_FASTCGI] = listen_fastcgi(s, e)) < 0 ||
        (fds[FD_BROKER] = listen_broker(s, &m->workers, e)) < 0 ||
        (fds[FD_SESSIONS] = sessions_dir_open(s, &m->workers, e)) < 0 ||
        (*s->hub && (fds[FD_HUB] = listen_front(s, s->hub, "SANDCGI_HUB", e)) < 0))
        return -1;
    if (*s->hub && (fds[FD_EVENTS] = events_listen(s->events, &m->workers, e)) < 0)
        return err_wrap(e, "SANDCGI_EVENTS");
    if (pair_open(&fds[FD_CONNS_IN], e) < 0 || pair_open(&fds[FD_EVENTS_IN], e) < 0)
        return -1;
    return master_open_signals(m, e);
}

static void master_close(struct master *m)
{
    for (size_t i = 0; i < N_FDS; i++)
        auto_close_fd(&m->fds[i]);
    if (m->slots)
        slots_free(m);
    free(m->draining);
    settings_clear(m->settings);
    free(m->settings);
}

static void master_main(void *ctx)
{
    struct master *m = ctx;

    slots_make(m);
    log_info("sandcgi " PACKAGE_VERSION " listening on %s, %ju free workers%s", m->settings->listen,
             (uintmax_t)m->settings->workers, m->fds[FD_HUB] >= 0 ? ", hub" : "");
    kernel_log_walls();
    while (!m->stopping || has_children(m))
        master_tick(m);
    log_info("stopped");
}

/* For the next master: the settings may have changed since the start. */
static void reread(void *ctx)
{
    struct master *m = ctx;
    struct settings *fresh = settings_reread(m, &m->workers);

    if (!fresh)
        return;
    settings_clear(m->settings);
    free(m->settings);
    m->settings = fresh;
}

int master_run(struct settings *take_settings, const char *config_path, bool guarded)
{
    struct err e = ERR_INIT;
    struct master m = {.settings = take_settings,
                       .config_path = config_path,
                       .shrink_at = deadline_in_ms(0),
                       .guarded = guarded,
                       .give_up = DEADLINE_NEVER};
    int status = 1;

    memset(m.fds, -1, sizeof m.fds);
    log_setup((enum log_level)m.settings->log_level, "master");
    if (master_open(&m, &e) < 0) {
        fprintf(stderr, "sandcgi: %s\n", e.text);
    } else if (guarded) {
        status = guard_main(&(struct guard){m.fds[FD_SIGNAL], master_main, reread, &m});
    } else {
        master_main(&m);
        status = 0;
    }
    master_close(&m);
    return status;
}
