#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/version.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/store.h"
#include "fcgi/process/control.h"
#include "fcgi/process/handover.h"
#include "fcgi/process/master.h"
#include "fcgi/process/settings_check.h"
#include "fcgi/process/takeover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOTES_MAX     (64u * 1024)
#define YOUNG_MS      2000 /* a master that ends younger than this is replaced after a pause */
#define PAUSE_MS      100
#define LOCK_PAUSE_MS 1000 /* between attempts, while the server before has SANDBOX_ROOT */

struct guard {
    struct settings *settings;
    const char *config_path;
    char program[PATH_MAX]; /* as it was named at the start: another one may lie there later */
    struct account workers;
    struct handover kept; /* by the program that follows */
    int sessions_fd, oauth_fd, signal_fd;
    struct deadline lock_at; /* the next attempt to lock SANDBOX_ROOT; never: it is locked */
    sigset_t mask;           /* of the children */
    int64_t started_ms;
    struct deadline start_at; /* without a master */
    bool can_start;           /* the settings and sockets are usable */
    pid_t waiter;             /* takes over when it ends well; 0: none runs */
    bool stopping;
    bool again; /* starts once more when it has stopped */
    int status; /* for the exit */
};

static void log_asked(const struct guard *g, enum audit_act act, const char *text)
{
    audit_log(act, NULL, 0, g->kept.asked_pid, g->kept.asked_uid, "%s", text);
}

/* The order is refused; the server goes on as before. */
static void refuse(struct guard *g, enum audit_act act, const struct err *e)
{
    audit_log(act, NULL, 0, g->kept.asked_pid, g->kept.asked_uid, "%s: %s",
              act == AUDIT_RELOAD_REFUSED ? "settings not reloaded" : "not restarted", e->text);
    control_answer(&g->kept.order_fd, e);
}

/* ---- reloading ---- */

/* Has the program that lies there now check the settings. */
static int ask_check(struct guard *g, struct err *e)
{
    AUTO_BUF struct buf notes = BUF_INIT(NOTES_MAX);

    if (settings_check_ask(g->program, NULL, g->config_path, &g->mask, &notes, e) < 0)
        return -1;
    settings_check_tell(buf_str(&notes), g->kept.order_fd);
    return 0;
}

/* Returns only when there is no other program to become. */
static int become_program(struct guard *g, struct err *e)
{
    if (g->stopping)
        return err_set(e, ERR_BUSY, "the server is stopping");
    if (g->waiter)
        return err_set(e, ERR_BUSY, "the server is about to take over from another one");
    if (g->kept.n_old == OLD_MAX)
        return err_set(e, ERR_BUSY, "%d earlier generations still answer calls", OLD_MAX);
    if (ask_check(g, e) < 0)
        return -1;
    return handover_exec(&g->kept, g->program, g->config_path, e);
}

static void guard_reload(struct guard *g)
{
    struct err e = ERR_INIT;

    log_follow(g->settings); /* also when the settings are wrong */
    become_program(g, &e);
    refuse(g, AUDIT_RELOAD_REFUSED, &e);
}

/* ---- masters ---- */

static void master_start(struct guard *g)
{
    const pid_t guard = getpid();
    const struct master_config config = {.settings = g->settings,
                                         .workers = g->workers,
                                         .sockets = &g->kept.sockets,
                                         .sessions_fd = g->sessions_fd,
                                         .oauth_fd = g->oauth_fd,
                                         .signal_fd = g->signal_fd,
                                         .draining = g->kept.draining,
                                         .mask = g->mask};
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGHUP); /* runs and sandboxes outlive a guard that is killed */
        metrics_close_fd();
        auto_close_fd(&g->kept.lock_fd);
        auto_close_fd(&g->kept.sockets.fds[SOCKET_CONTROL]);
        if (getppid() == guard)
            master_run(&config);
        _exit(0);
    }
    g->started_ms = clock_mono_ms();
    g->start_at = deadline_in_ms(PAUSE_MS);
    if (pid < 0)
        log_error("fork: %s", strerror(errno));
    else
        g->kept.master = pid;
}

static void on_master_exit(struct guard *g, int status)
{
    bool killed = WIFSIGNALED(status);

    g->kept.master = 0;
    if (g->stopping || (!killed && WEXITSTATUS(status) == 0)) { /* it was asked to end */
        g->stopping = true;
        g->status = killed;
        return;
    }
    log_error("master ended with %s %d; restarting", killed ? "signal" : "status",
              killed ? WTERMSIG(status) : WEXITSTATUS(status));
    g->start_at = deadline_in_ms(clock_mono_ms() - g->started_ms < YOUNG_MS ? PAUSE_MS : 0);
    if (!g->can_start) { /* its sockets and settings are not ours */
        log_error("the settings of the last reload cannot be used; stopping");
        g->stopping = true;
        g->status = 1;
    }
}

/* ---- taking over from another server ---- */

static void signal_masters(const struct guard *g, int sig)
{
    if (g->kept.master)
        kill(g->kept.master, sig);
    for (size_t i = 0; i < g->kept.n_old; i++)
        kill(g->kept.old[i], sig);
}

static void on_waiter_exit(struct guard *g, int status)
{
    struct err e = ERR_INIT;

    g->waiter = 0;
    if (g->stopping)
        return;
    if (status == 0 && server_sockets_take_over(&g->kept.sockets, g->settings, &e) == 0) {
        audit_log(AUDIT_TAKE_OVER, NULL, 0, 0, 0,
                  "programs can run; took the sockets over from another server");
        return;
    }
    log_error("not taking over from the server that runs%s%s; stopping", *e.text ? ": " : "",
              e.text);
    g->stopping = true;
    g->status = 1;
    signal_masters(g, SIGTERM);
}

static void on_exit_of_child(struct guard *g, pid_t pid, int status)
{
    if (pid == g->kept.master)
        on_master_exit(g, status);
    if (pid == g->waiter)
        on_waiter_exit(g, status);
    for (size_t i = 0; i < g->kept.n_old; i++)
        if (g->kept.old[i] == pid) {
            g->kept.old[i] = g->kept.old[--g->kept.n_old];
            return;
        }
}

/* ---- signals and orders ---- */

/* Masters that a restart has asked to end are not asked twice: then they would not wait. */
static void guard_stop(struct guard *g)
{
    const bool asked = g->again;
    struct err instead = ERR_INIT;

    if (!g->stopping || asked)
        log_asked(g, AUDIT_STOP, "stopping; waiting for running programs");
    g->stopping = true;
    g->again = false;
    err_set(&instead, ERR_CANCELLED, "the server was told to stop");
    control_answer(&g->kept.order_fd, &instead);
    if (!asked)
        signal_masters(g, SIGTERM);
}

/* As a stop and a start, with the same processes' ends, but only if the settings are right. */
static void guard_restart(struct guard *g)
{
    struct err e = ERR_INIT;

    if (g->stopping)
        err_set(&e, ERR_BUSY, "the server is stopping");
    if (e.kind != ERR_NONE || ask_check(g, &e) < 0) {
        refuse(g, AUDIT_RESTART_REFUSED, &e);
        return;
    }
    log_asked(g, AUDIT_RESTART, "restarting when the running programs have ended");
    signal_masters(g, SIGTERM);
    g->stopping = g->again = true;
}

static void on_order(struct guard *g)
{
    struct err busy = ERR_INIT;
    uid_t uid = 0;
    pid_t pid = 0;
    int fd = -1;
    const enum order order = control_take(g->kept.sockets.fds[SOCKET_CONTROL], &fd, &pid, &uid);

    if (order == ORDER_NONE)
        return;
    g->kept.asked_pid = pid;
    g->kept.asked_uid = uid;
    if (order == ORDER_STOP || order == ORDER_STOP_NOW) {
        if (!g->stopping || g->again || order == ORDER_STOP_NOW)
            guard_stop(g);
        return; /* the connection stays: its end tells that of this process */
    }
    if (g->kept.order_fd >= 0) {
        err_set(&busy, ERR_BUSY, "another order is under way");
        control_answer(&fd, &busy);
        return;
    }
    g->kept.order_fd = fd;
    if (order == ORDER_RELOAD)
        guard_reload(g);
    else
        guard_restart(g);
}

static void on_signal(struct guard *g)
{
    struct signalfd_siginfo info;
    bool reload = false;
    int status;

    while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            g->kept.asked_pid = (pid_t)info.ssi_pid;
            g->kept.asked_uid = info.ssi_uid;
        }
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            guard_stop(g);
        reload |= info.ssi_signo == SIGHUP;
        if (info.ssi_signo == SIGURG && !g->kept.draining) {
            g->kept.draining = true;
            log_asked(g, AUDIT_DRAIN, "draining: /readyz answers 503");
            signal_masters(g, SIGURG);
        }
    }
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        on_exit_of_child(g, pid, status);
    if (reload && !g->stopping)
        guard_reload(g);
}

/* The next server may start as soon as this one is told to end. */
static void keep_lock(struct guard *g)
{
    struct err e = ERR_INIT;

    if (g->stopping && !g->again) {
        auto_close_fd(&g->kept.lock_fd);
        g->lock_at = DEADLINE_NEVER;
    } else if (deadline_passed(g->lock_at)) {
        g->lock_at = root_lock(g->settings, &g->kept.lock_fd, &e) < 0
                         ? deadline_in_ms(LOCK_PAUSE_MS)
                         : DEADLINE_NEVER;
    }
}

static void guard_loop(struct guard *g)
{
    struct pollfd p[] = {{.fd = g->signal_fd, .events = POLLIN},
                         {.fd = g->kept.sockets.fds[SOCKET_CONTROL], .events = POLLIN}};

    while (!g->stopping || g->kept.master || g->kept.n_old > 0) {
        keep_lock(g);
        bool wanted = !g->kept.master && !g->stopping;
        if (wanted && deadline_passed(g->start_at))
            master_start(g);
        if (!g->waiter && !g->stopping && server_sockets_are_beside(&g->kept.sockets))
            g->waiter = takeover_wait(g->settings, g->kept.sockets.fds[SOCKET_METRICS_CONNS_OUT],
                                      g->kept.lock_fd, &g->mask);
        poll(p, ARRAY_LEN(p),
             deadline_poll_ms(wanted && !g->kept.master ? deadline_min(g->start_at, g->lock_at)
                                                        : g->lock_at));
        if (p[0].revents)
            on_signal(g);
        if (p[1].revents)
            on_order(g);
    }
}

/* ---- the start ---- */

static int open_signals(struct guard *g, struct err *e)
{
    static const int handled[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGURG};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(handled); i++)
        sigaddset(&set, handled[i]);
    if (sigprocmask(SIG_BLOCK, &set, &g->mask) < 0)
        return err_errno(e, "sigprocmask");
    for (size_t i = 0; i < ARRAY_LEN(handled); i++)
        sigdelset(&g->mask, handled[i]); /* the program before this one had blocked them */
    g->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return g->signal_fd < 0 ? err_errno(e, "signalfd") : 0;
}

/* Opens what the server needs before the first child is started; the settings have been checked. */
static int guard_open(struct guard *g, struct err *e)
{
    const struct settings *s = g->settings;
    struct err other = ERR_INIT;

    if (account_of_workers(s->user, &g->workers, e) < 0)
        return -1;
    if (root_lock(s, &g->kept.lock_fd, &other) < 0 && !(other.kind == ERR_BUSY && s->takeover)) {
        *e = other;
        return -1;
    }
    g->lock_at = other.kind == ERR_NONE ? DEADLINE_NEVER : deadline_in_ms(LOCK_PAUSE_MS);
    if ((g->sessions_fd = sessions_dir_open(s, &g->workers, e)) < 0)
        return -1;
    if (s->access.builtin && ((g->oauth_fd = store_folder_open(s, &g->workers, e)) < 0 ||
                              passphrase_need(s, g->oauth_fd, e) < 0))
        return -1;
    if (server_sockets_open(&g->kept.sockets, s, &g->workers, e) < 0)
        return -1;
    if (other.kind != ERR_NONE && !g->kept.master && !server_sockets_are_beside(&g->kept.sockets)) {
        *e = other; /* it is not the server that this one takes over from */
        return -1;
    }
    if (*s->log_file && log_open(s->log_file, e) < 0)
        return err_wrap(e, "SANDCGI_LOG");
    return 0;
}

/* The program before this one has a master, which goes on if this one cannot start another. */
static void take_over(struct guard *g, const struct err *e)
{
    if (!g->can_start) {
        refuse(g, AUDIT_RELOAD_REFUSED, e);
        return;
    }
    log_asked(g, AUDIT_RELOAD, "settings reloaded; starting new processes");
    control_answer(&g->kept.order_fd, NULL);
    kill(g->kept.master, SIGHUP);
    handover_add_old(&g->kept, g->kept.master);
    g->kept.master = 0;
}

static int start_failed(const struct err *e)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "sandcgi: %s\n", e->text);
    else
        audit_log(AUDIT_START_REFUSED, NULL, 0, 0, 0, "%s", e->text);
    return 1;
}

static int guard_load(struct guard *g, struct err *e)
{
    g->settings = mem_alloc(sizeof *g->settings);
    if (settings_load_served(g->settings, g->config_path, e) < 0)
        return -1;
    log_setup((enum log_level)g->settings->log_level, "guard");
    log_set_format((enum log_format)g->settings->log_format);
    return 0;
}

/* Settings that have changed since the program before asked about them: the master that runs goes
 * on, whatever they say. */
static bool guard_can_go_on(struct guard *g)
{
    struct err none = ERR_INIT;

    if (!g->kept.master || (settings_load_places(g->settings, g->config_path, &none) < 0 &&
                            settings_load_places(g->settings, NULL, &none) < 0))
        return false;
    log_follow(g->settings);
    return open_signals(g, &none) == 0;
}

/* A program that a reload has started was asked before. */
static int guard_prepare(struct guard *g, struct buf *notes, struct err *e)
{
    if (open_signals(g, e) < 0 ||
        (!g->kept.master &&
         settings_check_ask(NULL, g->settings, g->config_path, &g->mask, notes, e) < 0) ||
        guard_open(g, e) < 0)
        return -1;
    g->can_start = true;
    return 0;
}

static int start(struct guard *g, const struct err *e)
{
    control_answer(&g->kept.order_fd, g->can_start ? NULL : e);
    if (!g->can_start)
        return start_failed(e);
    audit_log(AUDIT_START, NULL, 0, 0, 0, "sandcgi %s starts", sandcgi_version);
    return 0;
}

/* What has ended has shut its sockets. Those of the program that has started this one stay. */
static int start_again(struct guard *g)
{
    struct err e = ERR_INIT;

    for (size_t i = 0; i < N_SOCKETS; i++)
        if (!g->kept.sockets.handed[i])
            auto_close_fd(&g->kept.sockets.fds[i]);
    g->kept.draining = false;
    handover_exec(&g->kept, g->program, g->config_path, &e);
    refuse(g, AUDIT_RESTART_REFUSED, &e);
    return 1;
}

int serve_run(const char *config_path)
{
    AUTO_BUF struct buf notes = BUF_INIT(NOTES_MAX);
    struct err e = ERR_INIT;
    struct guard g = {.config_path = config_path,
                      .kept = HANDOVER_INIT,
                      .sessions_fd = -1,
                      .oauth_fd = -1,
                      .signal_fd = -1,
                      .lock_at = DEADLINE_NEVER,
                      .start_at = deadline_in_ms(0)};

    handover_take(&g.kept); /* before the settings, which refuse an unknown name */
    program_find(g.program);
    const bool loaded = guard_load(&g, &e) == 0;
    if (!loaded && !guard_can_go_on(&g)) {
        control_answer(&g.kept.order_fd, &e);
        free(g.settings);
        return start_failed(&e);
    }
    metrics_open(g.kept.metrics_fd);
    log_share();
    if (!g.kept.master || metrics_get(METRIC_STARTED) == 0) { /* else it is a reload */
        metrics_set(METRIC_STARTED, (uint64_t)clock_unix_s());
        metrics_set(METRIC_STARTED_BOOT, (uint64_t)clock_boot_s());
    }
    if (loaded)
        guard_prepare(&g, &notes, &e);
    if (g.kept.master)
        take_over(&g, &e);
    else
        g.status = start(&g, &e);
    if (g.can_start) /* else these do not count */
        settings_check_tell(buf_str(&notes), -1);
    if (g.can_start || g.kept.master)
        guard_loop(&g);
    if (g.again)
        g.status = start_again(&g);
    server_sockets_close(&g.kept.sockets);
    auto_close_fd(&g.sessions_fd);
    auto_close_fd(&g.oauth_fd);
    auto_close_fd(&g.signal_fd);
    auto_close_fd(&g.kept.lock_fd);
    settings_clear(g.settings);
    free(g.settings);
    return g.status;
}
