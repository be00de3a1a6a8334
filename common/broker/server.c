#include "config.h"

#include "common/broker/server.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/broker/job.h"
#include "common/broker/keeper.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define FIRST_WORD_MS                                                                              \
    5000 /* how long connections wait for the keeper's first look at the engine                    \
          */
#define KEEPER_RESTART_MS 1000
#define NEWS_DELAY_MS     2200 /* workers remember a list of runners for 2 s */
#define EXTRA_CHILDREN    64   /* beyond the runs: uploads, file reads, lists */

struct broker {
    const struct broker_config *config;
    int listen_fd;
    int signal_fd;
    sigset_t old_mask;
    struct sandbox_root root;
    struct slots *slots;
    struct engine_runners runners;
    char trouble[sizeof((struct err *)0)->text];
    pid_t keeper;
    int keeper_fd;
    struct deadline keeper_start; /* when a dead keeper is started again */
    struct deadline first_word;   /* connections wait until then; never: they need not */
    struct deadline news;         /* when to tell that the runners changed; never: they did not */
    size_t children;
    bool stopping;
};

/* Runs in a fresh child: only what it needs stays open, signals act as usual again. */
static void become_child(struct broker *b, const char *role)
{
    auto_close_fd(&b->listen_fd);
    auto_close_fd(&b->signal_fd);
    sigprocmask(SIG_SETMASK, &b->old_mask, NULL);
    if (role)
        log_set_role(role);
}

static int start_keeper(struct broker *b, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_errno(e, "socketpair");
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return err_errno(e, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        auto_close_fd(&ours);
        become_child(b, "keeper");
        keeper_main(b->config, &b->root, theirs);
        _exit(0);
    }
    b->keeper = pid;
    b->keeper_fd = TAKE_FD(ours);
    b->keeper_start = DEADLINE_NEVER;
    return 0;
}

/* What a client can see of the runners: the list, or that there is none to be had. */
static json_t *seen_of_runners(const struct broker *b)
{
    return *b->trouble ? json_null() : keeper_runners_encode(&b->runners);
}

static void take_word(struct broker *b, const json_t *message)
{
    const char *trouble = json_get_string(message, "trouble");
    const json_t *list = json_object_get(message, "runners");

    snprintf(b->trouble, sizeof b->trouble, "%s", trouble ? trouble : "");
    if (list) {
        engine_runners_clear(&b->runners);
        keeper_runners_decode(list, &b->runners);
    }
}

static void hear_keeper(struct broker *b)
{
    struct err e = ERR_INIT;
    json_auto_t *message = wire_recv(b->keeper_fd, NULL, deadline_in_ms(1000), &e);
    if (!message) {
        auto_close_fd(&b->keeper_fd); /* its death is noticed by SIGCHLD */
        return;
    }
    b->first_word = DEADLINE_NEVER;
    json_auto_t *before = seen_of_runners(b);
    take_word(b, message);
    json_auto_t *after = seen_of_runners(b);
    if (!json_equal(before, after))
        b->news = deadline_min(b->news, deadline_in_ms(NEWS_DELAY_MS));
}

static void tell_news(struct broker *b)
{
    if (!deadline_passed(b->news))
        return;
    b->news = DEADLINE_NEVER;
    if (b->config->runners_changed)
        b->config->runners_changed(b->config->runners_changed_ctx);
}

/* A child that died with its run under way left a container behind. */
static void ask_for_sweep(struct broker *b)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:i}", "sweepInMs", 0);
    if (b->keeper_fd >= 0 && wire_send(b->keeper_fd, message, -1, &e) < 0)
        log_debug("keeper: %s", e.text);
}

static void bury(struct broker *b, pid_t pid, int status)
{
    if (pid == b->keeper) {
        b->keeper = 0;
        auto_close_fd(&b->keeper_fd);
        if (!b->stopping)
            log_warn("the keeper ended unexpectedly; starting another");
        b->keeper_start = deadline_in_ms(KEEPER_RESTART_MS);
        return;
    }
    b->children--;
    struct slot *slot = slots_held_by(b->slots, pid);
    if (WIFSIGNALED(status))
        log_error("run %s: its supervisor was ended by signal %d", slot ? slot->run_id : "-",
                  WTERMSIG(status));
    if (slot)
        slots_give_back(slot);
    if (slot || WIFSIGNALED(status)) /* it may have left its container */
        ask_for_sweep(b);
}

static void hear_signal(struct broker *b)
{
    struct signalfd_siginfo info;
    while (read(b->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            b->stopping = true;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        bury(b, pid, status);
}

static bool peer_allowed(const struct broker *b, int fd)
{
    struct err e = ERR_INIT;
    uid_t uid;
    if (sock_peer(fd, &uid, NULL, &e) < 0)
        return false;
    return uid == geteuid() || uid == 0 || uid == b->config->client_uid;
}

static void serve_child(struct broker *b, int fd)
{
    const struct job_world world = {.config = b->config,
                                    .root = &b->root,
                                    .runners = &b->runners,
                                    .engine_trouble = b->trouble,
                                    .slots = b->slots};
    auto_close_fd(&b->keeper_fd);
    become_child(b, NULL);
    /* A run is not ended by the terminal's Ctrl-C that stops the server: its client still waits. */
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    job_handle(&world, fd);
    _exit(0);
}

static void take_connection(struct broker *b)
{
    AUTO_FD int fd = accept4(b->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (!peer_allowed(b, fd)) {
        log_warn("refused a connection from another user");
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        serve_child(b, fd);
    if (pid < 0)
        log_error("fork: %s", strerror(errno));
    else
        b->children++;
}

static void keep_keeper(struct broker *b)
{
    struct err e = ERR_INIT;
    if (b->stopping || !deadline_passed(b->keeper_start))
        return;
    if (start_keeper(b, &e) < 0) {
        log_error("keeper: %s", e.text);
        b->keeper_start = deadline_in_ms(KEEPER_RESTART_MS);
    }
}

static void broker_turn(struct broker *b)
{
    bool take = !b->stopping && (b->first_word.at_ms < 0 || deadline_passed(b->first_word)) &&
                b->children < b->config->limits.max_runs + EXTRA_CHILDREN;
    struct pollfd p[3] = {{.fd = b->signal_fd, .events = POLLIN},
                          {.fd = b->keeper_fd, .events = POLLIN},
                          {.fd = take ? b->listen_fd : -1, .events = POLLIN}};
    struct deadline next = deadline_min(b->keeper_start, b->news);
    if (!take)
        next = deadline_min(next, b->first_word);
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(next)) < 0 && errno != EINTR) {
        log_error("poll: %s", strerror(errno));
        b->stopping = true;
    }
    if (p[0].revents)
        hear_signal(b);
    if (p[1].revents && b->keeper_fd >= 0)
        hear_keeper(b);
    if (p[2].revents)
        take_connection(b);
    keep_keeper(b);
    tell_news(b);
}

static int open_signals(struct broker *b, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, &b->old_mask) < 0)
        return err_errno(e, "sigprocmask");
    b->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return b->signal_fd < 0 ? err_errno(e, "signalfd") : 0;
}

static void close_broker(struct broker *b)
{
    if (b->keeper > 0)
        kill(b->keeper, SIGTERM);
    auto_close_fd(&b->keeper_fd);
    auto_close_fd(&b->signal_fd);
    engine_runners_clear(&b->runners);
    slots_free(b->slots);
    sandbox_root_close(&b->root);
}

int broker_serve(const struct broker_config *config, int listen_fd, struct err *e)
{
    struct broker b = {.config = config,
                       .listen_fd = listen_fd,
                       .signal_fd = -1,
                       .keeper_fd = -1,
                       .root = {.fd = -1},
                       .keeper_start = DEADLINE_NEVER,
                       .first_word = deadline_in_ms(FIRST_WORD_MS),
                       .news = DEADLINE_NEVER,
                       .trouble = "the container engine has not answered yet"};
    int result = -1;

    if (sandbox_root_open(&b.root, config->root_path, config->host_path, config->file_secret,
                          config->base_url, config->sandbox_uid, config->sandbox_gid, e) == 0 &&
        (b.slots = slots_new(config->limits.max_runs, e)) && open_signals(&b, e) == 0 &&
        start_keeper(&b, e) == 0) {
        while (!b.stopping || b.children > 0)
            broker_turn(&b);
        result = 0;
    }
    close_broker(&b);
    return result;
}
