/* The container's loop: any number of commands and runs, several at the same time, until stdin
 * ends. Memory holds one frame on its way out, the commands' standard input, and what programs have
 * not read from their control channels. */
#include "runners/common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a wipe may take. */
#define WIPE_MS      2000
#define COMMANDS_MAX 64

enum { ON_SERVER, ON_SIGNAL, ON_WRITE, ON_WARM };
#define ON_ALL (ON_WARM + WARM_POLLS_MAX + ORPHANS_MAX + COMMANDS_MAX * STREAM_N)

static struct command commands[COMMANDS_MAX];

static struct {
    const struct languages *languages;
    int signal_fd;
    bool claimed;   /* a run has come: nothing is told of waiting, until the next one may come */
    bool next;      /* 'N' has come, and is to be answered */
    bool alone;     /* no process but ours is left */
    unsigned first; /* command whose output is looked at first */
    bool over;      /* the server is gone, or the container is stopped */
    int status;     /* then: ours */
} self;

static void serve_end(int status)
{
    self.over = true;
    self.status = status;
}

/* ---- records from the server ---- */

static struct command *find_command(uint32_t id)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        if (commands[i].state != COMMAND_NONE && commands[i].id == id)
            return &commands[i];
    }
    return NULL;
}

/* The command that id names, or a new one. NULL: there are too many. */
static struct command *find_or_make(uint32_t id)
{
    struct command *c = find_command(id);

    for (size_t i = 0; !c && i < COMMANDS_MAX; i++) {
        if (commands[i].state == COMMAND_NONE) {
            c = &commands[i];
            *c = (struct command){
                .state = COMMAND_FILLING, .id = id, .options = self.languages->items};
        }
    }
    return c;
}

/* The run that is under way; NULL: none. */
static struct command *find_run(void)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        if (commands[i].state != COMMAND_NONE && commands[i].run)
            return &commands[i];
    }
    return NULL;
}

/* Makes a run of a new command, in that language. There is one, until 'N' is answered. */
static bool make_run(struct command *c, const struct options *o)
{
    if (self.claimed || !o || !o->script || c->input.fd > 0)
        return false;
    self.alone = false;
    c->run = self.claimed = true;
    c->options = o;
    proof_note_sockets();
    script_sweep(self.languages);
    warm_claim(o);
    return true;
}

/* 'N': behind a run, with nothing else under way. */
static bool take_next(void)
{
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        if (commands[i].state != COMMAND_NONE)
            return false;
    }
    if (!self.claimed || self.next)
        return false;
    self.next = true;
    return true;
}

/* False when the record makes no sense. K, Z and G may meet one that has just ended. */
static bool take_record(char tag, uint32_t id, char *data, size_t len)
{
    bool begins = strchr("BCIX", tag) != NULL;
    struct command *c = begins ? find_or_make(id) : find_command(id);

    if (begins && (!c || c->state != COMMAND_FILLING))
        return false;
    switch (tag) {
    case 'P':
        return !self.claimed && warm_preload(data, len);
    case 'N':
        return id == 0 && take_next();
    case 'B':
        return !c->run && make_run(c, languages_find(self.languages, data, len));
    case 'C':
        if (!c->run && !make_run(c, self.languages->items))
            return false;
        command_add_code(c, data, len);
        return true;
    case 'I':
        command_fill(c, data, len);
        return true;
    case 'X':
        return command_start(c, data, len);
    case 'K':
        if (c)
            command_control(c, data, len);
        return true;
    case 'Z':
        if (c)
            command_kill(c);
        return true;
    case 'G':
        if (c)
            command_go(c);
        return true;
    default:
        return false;
    }
}

static void on_server(void)
{
    int status = inbox_read(take_record);

    if (status >= 0)
        serve_end(status);
}

/* ---- signals, packets and time ---- */

/* The warm interpreter has said something, or is dead. */
static void on_hook(bool dead)
{
    struct command *run = find_run();
    int answer = warm_packets();

    if (!run || run->state != COMMAND_OFFERED)
        return;
    if (answer == 'Y')
        command_taken(run);
    else if (answer != 0 || dead)
        command_refused(run);
}

static void on_child(pid_t pid, int status, const struct rusage *used)
{
    uint64_t peak = (uint64_t)used->ru_maxrss * 1024;
    struct command *run;

    on_hook(false); /* it may have become the program before it ended */
    if (pid == warm_pid())
        on_hook(true);
    run = find_run();
    if (warm_reaped(pid) && run)
        run->used_us += rusage_us(used);
    else if (run && run->report.peak_memory_bytes < peak)
        run->report.peak_memory_bytes = peak;
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        struct command *c = &commands[i];

        if (c->state != COMMAND_RUNS || c->pid != pid)
            continue;
        c->report.cpu_us = rusage_us(used);
        if (!c->run)
            c->report.peak_memory_bytes = peak;
        command_end(c, status);
    }
}

/* Reaps what has ended; whether a child is left. */
static bool reap(void)
{
    struct rusage used;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0)
        on_child(pid, status, &used);
    return pid == 0;
}

/* Returns the last one that came from outside of the container to stop it; 0: none. */
static int read_signals(void)
{
    struct signalfd_siginfo info;
    int stop = 0;

    while (read(self.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        /* A sender without a pid here is outside, if we are PID 1. */
        if (info.ssi_signo == SIGIO)
            script_opened();
        else if (info.ssi_signo != SIGCHLD && (info.ssi_pid == 0 || getpid() != 1))
            stop = (int)info.ssi_signo;
    }
    return stop;
}

static void on_signals(void)
{
    int stop = read_signals();
    struct command *run;
    bool children;

    if (stop)
        serve_end(128 + stop);
    children = reap();
    run = find_run();
    if (!run || (run->state != COMMAND_OVER && !run->dead_at_ms))
        return;
    self.alone = !children || !others_left();
    if (run->dead_at_ms && !self.alone)
        kill_all(); /* orphans that became ours by these deaths */
}

/* It has not been given to an interpreter, or that has not answered. */
static bool is_to_begin(const struct command *c)
{
    return c->state == COMMAND_LOADS || c->state == COMMAND_HELD || c->state == COMMAND_OFFERED;
}

/* Only its last frame is still to be sent. */
static bool can_end(const struct command *c)
{
    return c->state == COMMAND_FAILED ||
           (c->state == COMMAND_OVER && command_drained(c) && (!c->run || self.alone || c->last));
}

/* Time until something has to happen without an event; -1 = none. */
static int serve_timeout(void)
{
    int64_t at = 0;

    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];
        int64_t own = 0;

        if ((can_end(c) || c->news) && !frame_pending())
            return 0;
        if (is_to_begin(c))
            own = c->hard_at_ms;
        else if (c->state == COMMAND_RUNS || (c->run && c->dead_at_ms && !c->last))
            own = c->dead_at_ms ? c->dead_at_ms : c->hard_at_ms;
        else if (c->state == COMMAND_OVER && !c->last)
            own = c->over_at_ms;
        if (own && (at == 0 || own < at))
            at = own;
    }
    return !self.claimed && warm_tier_due(false) && !frame_pending() ? 0 : poll_timeout(at);
}

/* A run's process has ended, perhaps with others left: they get a while only for their output. */
static void run_check_end(struct command *c, int64_t now)
{
    if (!c->dead_at_ms && (now >= c->over_at_ms || (!self.alone && command_drained(c)))) {
        kill_all();
        c->dead_at_ms = now + DEATH_MS;
    }
    if (!c->last && c->dead_at_ms && now >= c->dead_at_ms)
        output_last(c); /* those that are left are stuck in the kernel */
}

static void check_clock(struct command *c, int64_t now)
{
    bool goes = c->state == COMMAND_RUNS || is_to_begin(c);

    if (goes && c->hard_at_ms && now >= c->hard_at_ms && !c->dead_at_ms) {
        c->report.timed_out = true;
        command_kill(c);
    }
    if (c->state == COMMAND_RUNS && c->dead_at_ms && now >= c->dead_at_ms)
        command_end(c, SIGKILL); /* it is stuck in the kernel */
    if (c->state == COMMAND_OVER && c->run)
        run_check_end(c, now);
    else if (c->state == COMMAND_OVER && !c->last && now >= c->over_at_ms)
        output_last(c);
}

/* ---- between two runs ---- */

/* Kills all that is left but the templates; false when something does not go. */
static bool kill_rest(int64_t until_ms)
{
    struct pollfd death = {.fd = self.signal_fd, .events = POLLIN};
    int stop;

    reap();
    while (others_left()) {
        if (clock_ms() >= until_ms)
            return false;
        kill_all();
        poll(&death, 1, 1);
        stop = read_signals();
        if (stop)
            serve_end(128 + stop);
        reap();
    }
    return true;
}

/* Answers 'N': the container is made as it was before the run, and waits for the next one; or it is
 * not as it was. */
static void answer_next(void)
{
    int64_t until = clock_ms() + WIPE_MS;
    char why[CHILD_WHY_MAX] = "processes cannot be killed";
    bool clean = kill_rest(until) && wipe(until, why) && proof(why);

    self.next = false;
    if (clean && warm_again()) {
        self.claimed = false;
    } else {
        if (clean)
            snprintf(why, sizeof(why), "no interpreter can be started");
        memcpy(frame_room(), why, strlen(why));
        frame_begin('F', 0, strlen(why));
    }
}

/* ---- the loop ---- */

/* Fills the table; returns how many entries are used. Those of the commands, at *streams behind
 * those at *orphans, end with the last one that exists. */
static nfds_t fill_polls(struct pollfd *p, struct pollfd **orphans, struct pollfd **streams)
{
    bool busy = frame_pending();
    size_t used = 0;

    p[ON_SERVER] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    p[ON_SIGNAL] = (struct pollfd){.fd = self.signal_fd, .events = POLLIN};
    p[ON_WRITE] = (struct pollfd){.fd = STDOUT_FILENO, .events = busy ? POLLOUT : 0};
    *orphans = p + ON_WARM + warm_polls(p + ON_WARM);
    *streams = *orphans + orphan_polls(*orphans);
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];
        bool lives = c->state == COMMAND_RUNS || c->state == COMMAND_OVER;

        if (c->state != COMMAND_NONE)
            used = i + 1;
        for (int of = 0; of < STREAM_N; of++) {
            short events = lives ? output_events(c, (enum stream_of)of, busy) : 0;

            (*streams)[i * STREAM_N + (size_t)of] = (struct pollfd){
                .fd = events ? c->streams[of].fd : -1, .events = events};
        }
    }
    return (nfds_t)(*streams - p) + used * STREAM_N;
}

/* Sends one frame of the command's, if it has one and there is room. */
static void command_tick(struct command *c, const struct pollfd *p)
{
    short seen[STREAM_N];

    if (c->state == COMMAND_LOADS && !warm_loads())
        command_hold(c);
    if (c->state == COMMAND_NONE || c->state == COMMAND_FILLING)
        return;
    if (p[STREAM_CONTROL].revents & POLLOUT)
        command_feed(c);
    for (int of = 0; of < STREAM_N; of++)
        seen[of] = p[of].revents & (POLLIN | POLLHUP | POLLERR);
    if (!frame_pending() && c->news) {
        size_t len = strlen(c->news);

        memcpy(frame_room(), c->news, len);
        frame_begin(c->news_tag, c->id, len);
        c->news = NULL;
        if (!frame_push())
            serve_end(ENTRY_FAILED);
    }
    if (!frame_pending() && c->state != COMMAND_FAILED)
        output_take(c, seen);
    if (!frame_pending() && can_end(c))
        output_end(c);
    if (!frame_push())
        serve_end(ENTRY_FAILED);
}

static void serve_tick(void)
{
    static struct pollfd p[ON_ALL];
    struct pollfd *orphans, *streams;
    nfds_t n = fill_polls(p, &orphans, &streams);
    bool packets = false;
    int64_t now;

    if (poll(p, n, serve_timeout()) < 0) {
        if (errno == EINVAL) { /* a program, which has our user, has lowered our limits */
            entry_error(0, "fewer descriptors are allowed than it needs");
            serve_end(ENTRY_FAILED);
        }
        return;
    }
    if (p[ON_WRITE].revents & (POLLERR | POLLHUP | POLLNVAL) || !frame_push())
        serve_end(ENTRY_FAILED);
    for (const struct pollfd *one = p + ON_WARM; one < orphans; one++)
        packets |= one->revents != 0;
    if (packets)
        on_hook(false);
    if (p[ON_SIGNAL].revents)
        on_signals();
    if (p[ON_SERVER].revents)
        on_server();
    if (streams > orphans)
        orphan_drain();
    now = clock_ms();
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        size_t at = (self.first + i) % COMMANDS_MAX;

        command_tick(&commands[at], streams + at * STREAM_N);
        check_clock(&commands[at], now);
    }
    self.first++;
    if (self.next && !frame_pending())
        answer_next();
    if (!frame_pending() && !self.claimed && warm_tier_due(true) && !frame_push())
        serve_end(ENTRY_FAILED);
}

int serve_run(const struct languages *languages, int signal_fd)
{
    self.languages = languages;
    self.signal_fd = signal_fd;
    wipe_note(languages->items->cwd);
    proof_note();
    warm_start(languages);
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    while (!self.over)
        serve_tick();
    kill_and_reap_all(clock_ms() + DEATH_MS);
    script_remove();
    script_unplace();
    return self.status;
}
