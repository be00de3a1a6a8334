#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define YOUNG_MS     2000 /* a child that dies younger than this is started again with a pause */
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 5000
#define GRACE_MS     5000 /* on top of the longest run, for a drain to end by itself */

enum role { ROLE_BROKER, ROLE_WORKER, ROLE_HUB };

static const char *const role_names[] = {"broker", "worker", "hub"};

/* One child that is to run. */
struct child_slot {
    enum role role;
    pid_t pid; /* 0: not running */
    int64_t started_ms;
    int64_t pause_ms; /* before the last restart; 0 after a good life */
    struct deadline start_at;
};

struct master {
    struct settings *settings;
    const char *config_path;
    struct account workers;
    int fastcgi_fd, broker_fd, signal_fd;
    int hub_fd, events_fd; /* -1: no hub */
    int sessions_fd;
    sigset_t old_mask;
    struct child_slot *slots;
    size_t n_slots;
    pid_t *draining; /* children of earlier generations (SIGHUP) that have not ended yet */
    size_t n_draining;
    bool stopping;
    struct deadline give_up; /* end of the drain's time */
};

/* The programs of the children: 0 when asked to stop, or -1. */
static int broker_main(struct master *m, struct err *e)
{
    const struct broker_config config = broker_config_of(m->settings, m->workers.uid);

    for (int **fd = (int *[]){&m->fastcgi_fd, &m->hub_fd, &m->events_fd, &m->sessions_fd, NULL};
         *fd; fd++)
        auto_close_fd(*fd);
    return broker_serve(&config, m->broker_fd, e);
}

/* Workers and hub parse hostile input: they drop all rights, and erase the secrets that only the
 * broker needs. */
static int front_main(struct master *m, bool hub, struct err *e)
{
    pid_t master = getppid();
    struct app app;
    int result = 0;

    auto_close_fd(&m->broker_fd);
    auto_close_fd(hub ? &m->fastcgi_fd : &m->hub_fd);
    if (hub)
        hub_streams_reserve(m->settings->max_streams);
    else
        auto_close_fd(&m->events_fd);
    if (app_init(&app, m->settings, true, e) < 0 || account_become(&m->workers, e) < 0 ||
        (!hub && worker_memory_bound(m->settings->max_body, e) < 0))
        return -1;
    explicit_bzero(m->settings->file_secret, strlen(m->settings->file_secret));
    explicit_bzero(m->settings->api_token, strlen(m->settings->api_token));
    /* A call that waits for an elicitation occupies its worker; the answer needs another one. */
    app_set_sessions(&app, m->sessions_fd,
                     m->settings->workers > 1 ? (int)(m->settings->workers / 2) : -1);
    json_object_seed(0); /* from /dev/urandom, which cannot be opened later */
    if (account_confine(m->sessions_fd, hub, e) < 0)
        return -1;
    if (getppid() == master) /* else it died while the change of account had cleared the signal */
        result = hub ? hub_serve(&app, m->hub_fd, m->events_fd, e)
                     : fastcgi_serve(&app, m->fastcgi_fd, e);
    app_clear(&app);
    return result;
}

static void child_main(struct master *m, enum role role, pid_t parent)
{
    struct err e = ERR_INIT;

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(0);
    log_setup((enum log_level)m->settings->log_level, role_names[role]);
    auto_close_fd(&m->signal_fd);
    sigprocmask(SIG_SETMASK, &m->old_mask, NULL);
    int result = role == ROLE_BROKER ? broker_main(m, &e) : front_main(m, role == ROLE_HUB, &e);
    if (result < 0)
        log_error("%s", e.text);
    _exit(result < 0 ? 1 : 0);
}

static void slot_start(struct master *m, struct child_slot *slot)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child_main(m, slot->role, parent);
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
        if (!m->stopping)
            slot_ended(slot, status);
        slot->pid = 0;
        return;
    }
    for (size_t i = 0; i < m->n_draining; i++) {
        if (m->draining[i] == pid) {
            m->draining[i] = m->draining[--m->n_draining];
            return;
        }
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
        log_warn("second stop signal: killing all processes");
        m->give_up = deadline_in_ms(0);
        return;
    }
    log_info("stopping; waiting for running programs");
    m->stopping = true;
    m->give_up = deadline_in_ms((int64_t)m->settings->limits.timeout_max_ms + GRACE_MS);
    signal_all(m, SIGTERM);
}

static void slots_make(struct master *m)
{
    size_t others = m->hub_fd >= 0 ? 2 : 1;

    m->n_slots = others + m->settings->workers;
    m->slots = mem_array(m->n_slots, sizeof *m->slots);
    for (size_t i = 0; i < m->n_slots; i++)
        m->slots[i] = (struct child_slot){.role = i == 0       ? ROLE_BROKER
                                                  : i < others ? ROLE_HUB
                                                               : ROLE_WORKER,
                                          .start_at = deadline_in_ms(0)};
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
    free(m->slots);
    settings_clear(m->settings);
    free(m->settings);
    m->settings = fresh;
    m->workers = workers;
    slots_make(m);
}

static void on_signal(struct master *m)
{
    struct signalfd_siginfo info;
    while (read(m->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
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
    struct deadline next = m->stopping ? m->give_up : DEADLINE_NEVER;
    for (size_t i = 0; i < m->n_slots && !m->stopping; i++) {
        if (deadline_passed(m->slots[i].start_at))
            slot_start(m, &m->slots[i]);
        next = deadline_min(next, m->slots[i].start_at);
    }
    struct pollfd p = {.fd = m->signal_fd, .events = POLLIN};
    if (poll(&p, 1, deadline_poll_ms(next)) > 0)
        on_signal(m);
    if (m->stopping && deadline_passed(m->give_up)) {
        signal_all(m, SIGKILL);
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
    m->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return m->signal_fd < 0 ? err_errno(e, "signalfd") : 0;
}

/* Finds every error of the configuration before the first child is started. */
static int master_open(struct master *m, struct err *e)
{
    const struct settings *s = m->settings;

    if (settings_usable(s, &m->workers, e) < 0 || (m->fastcgi_fd = listen_fastcgi(s, e)) < 0 ||
        (m->broker_fd = listen_broker(s, &m->workers, e)) < 0 ||
        (m->sessions_fd = sessions_dir_open(s, &m->workers, e)) < 0 ||
        (*s->hub && (m->hub_fd = listen_front(s, s->hub, "SANDCGI_HUB", e)) < 0))
        return -1;
    if (*s->hub && (m->events_fd = events_listen(s->events, &m->workers, e)) < 0)
        return err_wrap(e, "SANDCGI_EVENTS");
    return master_open_signals(m, e);
}

static void master_close(struct master *m)
{
    for (int **fd = (int *[]){&m->fastcgi_fd, &m->broker_fd, &m->hub_fd, &m->events_fd,
                              &m->sessions_fd, &m->signal_fd, NULL};
         *fd; fd++)
        auto_close_fd(*fd);
    free(m->slots);
    free(m->draining);
    settings_clear(m->settings);
    free(m->settings);
}

int master_run(struct settings *take_settings, const char *config_path)
{
    struct err e = ERR_INIT;
    struct master m = {.settings = take_settings,
                       .config_path = config_path,
                       .fastcgi_fd = -1,
                       .broker_fd = -1,
                       .signal_fd = -1,
                       .hub_fd = -1,
                       .events_fd = -1,
                       .sessions_fd = -1,
                       .give_up = DEADLINE_NEVER};
    int status = 1;

    log_setup((enum log_level)m.settings->log_level, "master");
    if (master_open(&m, &e) < 0) {
        fprintf(stderr, "sandcgi: %s\n", e.text);
    } else {
        slots_make(&m);
        log_info("sandcgi " PACKAGE_VERSION " listening on %s, %ju workers%s", m.settings->listen,
                 (uintmax_t)m.settings->workers, m.hub_fd >= 0 ? ", hub" : "");
        kernel_log_walls();
        while (!m.stopping || has_children(&m))
            master_tick(&m);
        log_info("stopped");
        status = 0;
    }
    master_close(&m);
    return status;
}
