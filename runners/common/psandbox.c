#include "runners/common/psandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ON_SERVER, ON_SIGNAL, ON_WRITE, ON_STREAMS };
#define ON_LEFT (ON_STREAMS + COMMANDS_MAX * STREAM_N)
#define ON_ALL  (ON_LEFT + LEFT_MAX)

static struct command commands[COMMANDS_MAX];

static struct {
    int signal_fd;
    unsigned turn; /* whose output is looked at first */
    bool over;     /* the server is gone, or the container is stopped */
    int status;    /* then: ours */
} stay;

static void end(int status)
{
    stay.over = true;
    stay.status = status;
}

static struct command *find(uint32_t id)
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
    struct command *c = find(id);

    for (size_t i = 0; !c && i < COMMANDS_MAX; i++) {
        if (commands[i].state == COMMAND_NONE) {
            c = &commands[i];
            *c = (struct command){.state = COMMAND_FILLING, .id = id};
        }
    }
    return c;
}

static bool take_record(char tag, uint32_t id, char *data, size_t len)
{
    struct command *c = tag == 'I' || tag == 'X' ? find_or_make(id) : find(id);

    switch (tag) {
    case 'I':
        if (!c || c->state != COMMAND_FILLING)
            return false;
        command_fill(c, data, len);
        return true;
    case 'X':
        return c && c->state == COMMAND_FILLING && command_start(c, data, len);
    case 'K':
        if (c) /* else it has ended meanwhile */
            command_control(c, data, len);
        return true;
    case 'Z':
        if (c)
            command_kill(c);
        return true;
    default:
        return false;
    }
}

static void hear_server(void)
{
    switch (inbox_read(take_record)) {
    case INBOX_MORE:
        return;
    case INBOX_GONE:
        end(0);
        return;
    default:
        end(ENTRY_FAILED);
        return;
    }
}

static void reap(void)
{
    struct rusage used;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        for (size_t i = 0; i < COMMANDS_MAX; i++) {
            struct command *c = &commands[i];

            if (c->state != COMMAND_RUNS || c->pid != pid)
                continue;
            c->report.cpu_us = rusage_us(&used);
            c->report.peak_memory_bytes = (uint64_t)used.ru_maxrss * 1024;
            command_end(c, status);
        }
    }
}

/* As PID 1 only those who are outside have no pid here: a program cannot stop the container. */
static void hear_signals(void)
{
    struct signalfd_siginfo info;

    while (read(stay.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD && (info.ssi_pid == 0 || getpid() != 1))
            end(128 + (int)info.ssi_signo);
    }
    reap();
}

static void sooner(int64_t *at_ms, int64_t other_ms)
{
    if (other_ms && (*at_ms == 0 || other_ms < *at_ms))
        *at_ms = other_ms;
}

/* Everything is said but the last word. */
static bool can_end(const struct command *c)
{
    return c->state == COMMAND_FAILED || (c->state == COMMAND_OVER && command_drained(c));
}

/* The next moment at which something has to happen without an event; -1 = none. */
static int wait_ms(void)
{
    int64_t at = 0, left;

    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];

        if (can_end(c) && !frame_pending())
            return 0;
        if (c->state == COMMAND_RUNS)
            sooner(&at, c->dead_at_ms ? c->dead_at_ms : c->hard_at_ms);
        if (c->state == COMMAND_OVER && !c->last)
            sooner(&at, c->over_at_ms);
    }
    if (at == 0)
        return -1;
    left = at - clock_ms();
    if (left < 0)
        return 0;
    return left < 3600000 ? (int)left + 1 : 3600000;
}

static void check_clock(struct command *c, int64_t now)
{
    if (c->state == COMMAND_RUNS && c->hard_at_ms && now >= c->hard_at_ms && !c->dead_at_ms) {
        c->report.timed_out = true;
        command_kill(c);
    }
    if (c->state == COMMAND_RUNS && c->dead_at_ms && now >= c->dead_at_ms)
        command_end(c, SIGKILL); /* it is stuck in the kernel */
    if (c->state == COMMAND_OVER && !c->last && now >= c->over_at_ms)
        output_last(c);
}

static struct pollfd *polls_of(struct pollfd *p, size_t command)
{
    return p + ON_STREAMS + command * STREAM_N;
}

/* Fills the table; how many of it are used. */
static nfds_t look_where(struct pollfd *p)
{
    bool busy = frame_pending();
    int n_left = left_count();

    p[ON_SERVER] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    p[ON_SIGNAL] = (struct pollfd){.fd = stay.signal_fd, .events = POLLIN};
    p[ON_WRITE] = (struct pollfd){.fd = STDOUT_FILENO, .events = busy ? POLLOUT : 0};
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];

        for (int of = 0; of < STREAM_N; of++) {
            bool lives = c->state == COMMAND_RUNS || c->state == COMMAND_OVER;
            short events = lives ? output_events(c, (enum stream_of)of, busy) : 0;

            polls_of(p, i)[of] = (struct pollfd){.fd = events ? c->streams[of].fd : -1,
                                                 .events = events};
        }
    }
    for (int i = 0; i < n_left; i++)
        p[ON_LEFT + i] = (struct pollfd){.fd = left_fd(i), .events = POLLIN};
    return (nfds_t)(ON_LEFT + n_left);
}

/* One frame of the command's, if there is something to say and room for it. */
static void serve(struct command *c, const struct pollfd *p)
{
    short seen[STREAM_N];

    if (c->state != COMMAND_RUNS && c->state != COMMAND_OVER && c->state != COMMAND_FAILED)
        return;
    if (p[STREAM_CONTROL].revents & POLLOUT)
        command_feed(c);
    for (int of = 0; of < STREAM_N; of++)
        seen[of] = p[of].revents & (POLLIN | POLLHUP | POLLERR);
    if (!frame_pending() && c->state != COMMAND_FAILED)
        output_take(c, seen);
    if (!frame_pending() && can_end(c))
        output_end(c);
    if (!frame_push())
        end(ENTRY_FAILED);
}

static void turn(void)
{
    static struct pollfd p[ON_ALL];
    nfds_t n = look_where(p);
    int64_t now;

    if (poll(p, n, wait_ms()) < 0)
        return;
    if (p[ON_WRITE].revents & (POLLERR | POLLHUP | POLLNVAL) || !frame_push())
        end(ENTRY_FAILED);
    if (p[ON_SIGNAL].revents)
        hear_signals();
    if (p[ON_SERVER].revents)
        hear_server();
    if (n > ON_LEFT)
        left_drain();
    now = clock_ms();
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        size_t at = (stay.turn + i) % COMMANDS_MAX;

        check_clock(&commands[at], now);
        serve(&commands[at], polls_of(p, at));
    }
    stay.turn++;
}

int psandbox_serve(int signal_fd)
{
    static const char no_id[ID_LEN];

    stay.signal_fd = signal_fd;
    if (!frame_send('W', no_id, sizeof(no_id)))
        return ENTRY_FAILED;
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    while (!stay.over)
        turn();
    child_reap_all(clock_ms() + DEATH_MS);
    return stay.status;
}
