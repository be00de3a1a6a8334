#include "config.h"

#include "fcgi/commands.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/parse.h"
#include "common/protocol/client_runs.h"
#include "fcgi/doctor/check.h"
#include "fcgi/oauth/server/passphrase.h"
#include "fcgi/oauth/server/store.h"
#include "fcgi/process/master.h"
#include "fcgi/process/reload_check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDOVER       "SANDCGI_HANDOVER"
#define HANDOVER_MAX   4096
#define READY_MS       120000 /* for programs to run, before the sockets are taken over */
#define READY_ASK_MS   5000
#define READY_PAUSE_MS 100
#define YOUNG_MS       2000 /* a master that ends younger than this is replaced after a pause */
#define PAUSE_MS       100
#define LOCK_PAUSE_MS  1000 /* between attempts, while the server before has SANDBOX_ROOT */
#define OLD_MAX        32 /* masters of earlier generations; the next reload waits for their end */

struct guard {
    struct settings *settings;
    const char *config_path;
    char program[PATH_MAX]; /* as it was named at the start: another one may lie there later */
    struct account workers;
    struct server_sockets sockets;
    int sessions_fd, oauth_fd, signal_fd;
    int lock_fd;             /* of SANDBOX_ROOT; -1: not locked */
    struct deadline lock_at; /* the next attempt; never: it is locked */
    int metrics_fd;          /* of the program before; -1: none */
    sigset_t mask;           /* of the children */
    pid_t master;            /* 0: none runs */
    int64_t started_ms;
    struct deadline start_at; /* without a master */
    bool can_start;           /* the settings and sockets are usable */
    bool draining;            /* sandcgi drain */
    pid_t waiter;             /* takes over when it ends well; 0: none runs */
    pid_t old[OLD_MAX]; /* masters of earlier generations, which end when their calls have ended */
    size_t n_old;
    bool stopping;
    int status; /* for the exit */
};

/* ---- handing over to the program that follows ---- */

static void add_old(struct guard *g, pid_t pid)
{
    if (g->n_old < OLD_MAX)
        g->old[g->n_old++] = pid;
}

static void take_pair(struct guard *g, const char *name, int value)
{
    if (strcmp(name, "master") == 0)
        g->master = value;
    else if (strcmp(name, "old") == 0)
        add_old(g, value);
    else if (strcmp(name, "counts") == 0 && fcntl(value, F_SETFD, FD_CLOEXEC) == 0)
        g->metrics_fd = value;
    else if (strcmp(name, "lock") == 0 && fcntl(value, F_SETFD, FD_CLOEXEC) == 0)
        g->lock_fd = value;
    for (size_t i = 0; i < N_SOCKETS; i++) {
        if (strcmp(name, "handed") == 0 && value == g->sockets.fds[i])
            g->sockets.handed[i] = true;
        if (strcmp(name, server_socket_names[i]) == 0 && fcntl(value, F_SETFD, FD_CLOEXEC) == 0)
            g->sockets.fds[i] = value;
    }
}

/* From the program that this process was before: "master=17 old=9 fastcgi=4 …". A name that is not
 * known is of another version. */
static void handover_take(struct guard *g)
{
    char *save, *words = getenv(HANDOVER);
    uint64_t value;

    if (!words)
        return;
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        if (!equals)
            continue;
        *equals = '\0';
        if (parse_u64(equals + 1, 0, INT32_MAX, &value) == 0)
            take_pair(g, word, (int)value);
    }
    unsetenv(HANDOVER);
}

static void handover_give(const struct guard *g)
{
    AUTO_BUF struct buf words = BUF_INIT(HANDOVER_MAX);

    buf_addf(&words, "master=%d", (int)g->master);
    for (size_t i = 0; i < g->n_old; i++)
        buf_addf(&words, " old=%d", (int)g->old[i]);
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (g->sockets.fds[i] >= 0) {
            buf_addf(&words, " %s=%d", server_socket_names[i], g->sockets.fds[i]);
            if (g->sockets.handed[i])
                buf_addf(&words, " handed=%d", g->sockets.fds[i]);
            fcntl(g->sockets.fds[i], F_SETFD, 0);
        }
    if (metrics_fd() >= 0 && fcntl(metrics_fd(), F_SETFD, 0) == 0)
        buf_addf(&words, " counts=%d", metrics_fd());
    if (g->lock_fd >= 0 && fcntl(g->lock_fd, F_SETFD, 0) == 0)
        buf_addf(&words, " lock=%d", g->lock_fd);
    setenv(HANDOVER, buf_str(&words), 1);
}

/* The exec has failed. */
static void handover_undo(const struct guard *g)
{
    for (size_t i = 0; i < N_SOCKETS; i++)
        if (g->sockets.fds[i] >= 0)
            fcntl(g->sockets.fds[i], F_SETFD, FD_CLOEXEC);
    if (metrics_fd() >= 0)
        fcntl(metrics_fd(), F_SETFD, FD_CLOEXEC);
    if (g->lock_fd >= 0)
        fcntl(g->lock_fd, F_SETFD, FD_CLOEXEC);
    unsetenv(HANDOVER);
}

/* ---- reloading ---- */

/* Returns only when there is no other program to become. */
static void guard_reload(struct guard *g)
{
    log_follow(g->settings); /* also when the settings are wrong */
    if (g->waiter) {
        log_error("settings not reloaded: the server is about to take over from another one");
        return;
    }
    if (g->n_old == OLD_MAX) {
        log_error("settings not reloaded: %d earlier generations still answer calls", OLD_MAX);
        return;
    }
    if (!reload_check(g->program, g->config_path, &g->mask))
        return;
    handover_give(g);
    execl(g->program, g->program, "serve", g->config_path ? "--config" : (char *)NULL,
          g->config_path, (char *)NULL);
    log_error("settings not reloaded: cannot execute %s: %s", g->program, strerror(errno));
    handover_undo(g);
}

/* ---- masters ---- */

static void master_start(struct guard *g)
{
    const pid_t guard = getpid();
    const struct master_config config = {.settings = g->settings,
                                         .workers = g->workers,
                                         .sockets = &g->sockets,
                                         .sessions_fd = g->sessions_fd,
                                         .oauth_fd = g->oauth_fd,
                                         .signal_fd = g->signal_fd,
                                         .draining = g->draining,
                                         .mask = g->mask};
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGHUP); /* runs and sandboxes outlive a guard that is killed */
        metrics_close_fd();
        auto_close_fd(&g->lock_fd);
        if (getppid() == guard)
            master_run(&config);
        _exit(0);
    }
    g->started_ms = clock_mono_ms();
    g->start_at = deadline_in_ms(PAUSE_MS);
    if (pid < 0)
        log_error("fork: %s", strerror(errno));
    else
        g->master = pid;
}

static void on_master_exit(struct guard *g, int status)
{
    bool killed = WIFSIGNALED(status);

    g->master = 0;
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
    if (g->master)
        kill(g->master, sig);
    for (size_t i = 0; i < g->n_old; i++)
        kill(g->old[i], sig);
}

/* Waits until programs can run here; 0: they can. */
static int wait_until_ready(struct guard *g)
{
    const struct broker_client client = {
        .path = g->settings->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = READY_ASK_MS};
    const struct deadline end = deadline_in_ms(READY_MS);
    struct err e = ERR_INIT;

    sigprocmask(SIG_SETMASK, &g->mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    client_connect_over(g->sockets.fds[SOCKET_CONNS_OUT]);
    while (broker_ready(&client, &e) < 0) {
        if (deadline_passed(end)) {
            log_error("no program can run here after %d s: %s", READY_MS / 1000, e.text);
            return 1;
        }
        poll(NULL, 0, READY_PAUSE_MS);
    }
    return 0;
}

static void waiter_start(struct guard *g)
{
    pid_t pid = fork();

    if (pid == 0) {
        auto_close_fd(&g->lock_fd);
        _exit(wait_until_ready(g));
    }
    if (pid < 0)
        log_error("fork: %s", strerror(errno));
    else
        g->waiter = pid;
}

static void on_waiter_exit(struct guard *g, int status)
{
    struct err e = ERR_INIT;

    g->waiter = 0;
    if (g->stopping)
        return;
    if (status == 0 && server_sockets_take_over(&g->sockets, g->settings, &e) == 0) {
        log_act("take-over", "programs can run; took the sockets over from another server");
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
    if (pid == g->master)
        on_master_exit(g, status);
    if (pid == g->waiter)
        on_waiter_exit(g, status);
    for (size_t i = 0; i < g->n_old; i++)
        if (g->old[i] == pid) {
            g->old[i] = g->old[--g->n_old];
            return;
        }
}

static void on_signal(struct guard *g)
{
    struct signalfd_siginfo info;
    bool reload = false;
    int status;

    while (read(g->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        bool stop = info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
        g->stopping |= stop;
        reload |= info.ssi_signo == SIGHUP;
        if (info.ssi_signo == SIGURG && !g->draining) {
            g->draining = true;
            log_act("drain", "draining: /readyz answers 503");
            signal_masters(g, SIGURG);
        }
        if (stop)
            signal_masters(g, SIGTERM);
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

    if (g->stopping) {
        auto_close_fd(&g->lock_fd);
        g->lock_at = DEADLINE_NEVER;
    } else if (deadline_passed(g->lock_at)) {
        g->lock_at = root_lock(g->settings, &g->lock_fd, &e) < 0 ? deadline_in_ms(LOCK_PAUSE_MS)
                                                                 : DEADLINE_NEVER;
    }
}

static void guard_loop(struct guard *g)
{
    struct pollfd p = {.fd = g->signal_fd, .events = POLLIN};

    while (!g->stopping || g->master || g->n_old > 0) {
        keep_lock(g);
        bool wanted = !g->master && !g->stopping;
        if (wanted && deadline_passed(g->start_at))
            master_start(g);
        if (!g->waiter && !g->stopping && server_sockets_are_beside(&g->sockets))
            waiter_start(g);
        poll(&p, 1,
             deadline_poll_ms(wanted && !g->master ? deadline_min(g->start_at, g->lock_at)
                                                   : g->lock_at));
        if (p.revents)
            on_signal(g);
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

/* Finds every error of the configuration before the first child is started. */
static int guard_open(struct guard *g, struct err *e)
{
    const struct settings *s = g->settings;
    struct err other = ERR_INIT;

    if (check_usable(s, &g->workers, e) < 0)
        return -1;
    if (root_lock(s, &g->lock_fd, &other) < 0 && !(other.kind == ERR_BUSY && s->takeover)) {
        *e = other;
        return -1;
    }
    g->lock_at = other.kind == ERR_NONE ? DEADLINE_NEVER : deadline_in_ms(LOCK_PAUSE_MS);
    if ((g->sessions_fd = sessions_dir_open(s, &g->workers, e)) < 0)
        return -1;
    if (s->access.builtin && ((g->oauth_fd = store_folder_open(s, &g->workers, e)) < 0 ||
                              passphrase_need(s, g->oauth_fd, e) < 0))
        return -1;
    if (server_sockets_open(&g->sockets, s, &g->workers, e) < 0)
        return -1;
    if (other.kind != ERR_NONE && !g->master && !server_sockets_are_beside(&g->sockets)) {
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
        log_error("settings not reloaded: %s", e->text);
        return;
    }
    log_act("reload", "settings reloaded; starting new processes");
    kill(g->master, SIGHUP);
    add_old(g, g->master);
    g->master = 0;
}

static void name_program(struct guard *g)
{
    static const char deleted[] = " (deleted)";
    ssize_t n = readlink("/proc/self/exe", g->program, sizeof g->program - 1);
    size_t len = n < 0 ? 0 : (size_t)n;

    g->program[len] = '\0';
    if (len >= sizeof deleted && strcmp(g->program + len - (sizeof deleted - 1), deleted) == 0)
        g->program[len - (sizeof deleted - 1)] = '\0';
}

static int start_failed(const struct err *e)
{
    fprintf(stderr, "sandcgi: %s\n", e->text);
    return 1;
}

static void tell_notes(const struct settings *s)
{
    for (const char *line = s->notes; *line; line += strcspn(line, "\n") + 1)
        log_warn("%.*s", (int)strcspn(line, "\n"), line);
}

int serve_run(const char *config_path)
{
    struct err e = ERR_INIT;
    struct guard g = {.config_path = config_path,
                      .sockets = SERVER_SOCKETS_INIT,
                      .sessions_fd = -1,
                      .oauth_fd = -1,
                      .signal_fd = -1,
                      .lock_fd = -1,
                      .lock_at = DEADLINE_NEVER,
                      .metrics_fd = -1,
                      .start_at = deadline_in_ms(0)};

    handover_take(&g); /* before the settings, which refuse an unknown name */
    name_program(&g);
    g.settings = mem_alloc(sizeof *g.settings);
    if (settings_load(g.settings, config_path, &e) < 0) {
        free(g.settings);
        return start_failed(&e);
    }
    log_setup((enum log_level)g.settings->log_level, "guard");
    log_set_format((enum log_format)g.settings->log_format);
    metrics_open(g.metrics_fd);
    log_share();
    if (metrics_get(METRIC_STARTED) == 0) { /* else it is a reload */
        metrics_set(METRIC_STARTED, (uint64_t)clock_unix_s());
        metrics_set(METRIC_STARTED_BOOT, (uint64_t)clock_boot_s());
    }
    g.can_start = open_signals(&g, &e) == 0 && guard_open(&g, &e) == 0;
    if (g.master)
        take_over(&g, &e);
    else if (!g.can_start)
        g.status = start_failed(&e);
    else
        log_act("start", "sandcgi " PACKAGE_VERSION " starts");
    if (g.can_start) /* else these do not count */
        tell_notes(g.settings);
    if (g.can_start || g.master)
        guard_loop(&g);
    server_sockets_close(&g.sockets);
    auto_close_fd(&g.sessions_fd);
    auto_close_fd(&g.oauth_fd);
    auto_close_fd(&g.signal_fd);
    auto_close_fd(&g.lock_fd);
    settings_clear(g.settings);
    free(g.settings);
    return g.status;
}
