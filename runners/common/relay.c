#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long children of the program may still print after it has ended. */
#define GRACE_MS 250

enum { ON_SERVER, ON_SIGNAL, ON_OUT, ON_ERR, ON_WRITE, ON_N };

struct relay {
    struct child *c;
    struct ending *end;
    int signal_fd;
    int64_t hard_at_ms;  /* 0 = none */
    int64_t grace_until; /* 0 = the program has not ended */
    int64_t dead_until;  /* 0 = nothing was killed */
    bool ended;          /* the program itself was reaped */
    bool alone;          /* no children are left */
    bool gone;           /* the server hung up, or closed its end of stdout */
    bool quiet;          /* the last poll found the pipes empty */
};

/* Makes a frame of what the pipe holds; closes the pipe at its end. */
static void take_output(int *fd, char tag)
{
    ssize_t n = read(*fd, frame_room(), FRAME_MAX);

    if (n > 0) {
        frame_begin(tag, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(*fd);
        *fd = -1;
    }
}

static void relay_reap(struct relay *r)
{
    struct rusage used;
    int status;
    pid_t pid;

    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        if (pid == r->end->discarded)
            r->end->used_us += rusage_us(&used);
        if (pid == r->end->holder)
            r->end->holder = 0;
        if (pid != r->c->pid)
            continue;
        r->ended = true;
        r->end->status = status;
        r->grace_until = clock_ms() + GRACE_MS;
    }
    /* The holder is stopped: the program could have written to the memory that they share. */
    r->alone = pid < 0 || (r->ended && r->end->holder && kill(r->end->holder, SIGSTOP) == 0 &&
                           !others_left(r->end->holder));
    if (r->dead_until && !r->alone)
        kill_all(); /* orphans that became ours by these deaths */
}

static void kill_rest(struct relay *r)
{
    kill_all();
    if (!r->dead_until)
        r->dead_until = clock_ms() + DEATH_MS;
}

/* The next moment at which something has to happen without an event; -1 = none. */
static int wait_ms(const struct relay *r)
{
    if (r->dead_until)
        return frame_pending() ? -1 : poll_timeout(r->dead_until);
    return poll_timeout(r->grace_until ? r->grace_until : r->hard_at_ms);
}

static void check_clock(struct relay *r)
{
    int64_t now = clock_ms();

    if (r->dead_until)
        return;
    if (r->ended) {
        /* After the grace no process may hold the output open, nor may a stopped holder. */
        if (now >= r->grace_until || (!r->alone && r->c->out_fd < 0 && r->c->err_fd < 0))
            kill_rest(r);
        return;
    }
    if (r->hard_at_ms && now >= r->hard_at_ms) {
        r->end->timed_out = true;
        kill_rest(r);
    }
}

/* All output has been sent; or the processes that hold the pipes are stuck in the kernel and had
 * their time. */
static bool finished(const struct relay *r)
{
    if (frame_pending())
        return false;
    if (r->dead_until && r->quiet && clock_ms() >= r->dead_until)
        return true;
    return r->ended && r->alone && r->c->out_fd < 0 && r->c->err_fd < 0;
}

static void relay_tick(struct relay *r)
{
    bool busy = frame_pending();
    struct pollfd p[ON_N] = {
        [ON_SERVER] = {.fd = STDIN_FILENO, .events = POLLIN},
        [ON_SIGNAL] = {.fd = r->signal_fd, .events = POLLIN},
        [ON_OUT] = {.fd = busy ? -1 : r->c->out_fd, .events = POLLIN},
        [ON_ERR] = {.fd = busy ? -1 : r->c->err_fd, .events = POLLIN},
        [ON_WRITE] = {.fd = STDOUT_FILENO, .events = busy ? POLLOUT : 0},
    };

    if (poll(p, ON_N, wait_ms(r)) < 0)
        return;
    r->quiet = !busy && !p[ON_OUT].revents && !p[ON_ERR].revents;
    if (p[ON_SERVER].revents && !server_is_there(p[ON_SERVER].revents))
        r->gone = true;
    if (p[ON_WRITE].revents & (POLLERR | POLLHUP | POLLNVAL))
        r->gone = true;
    if (p[ON_SIGNAL].revents) {
        if (signals_read(r->signal_fd, false))
            kill_rest(r); /* the container is stopped: end the program, and report how it ended */
        relay_reap(r);
    }
    if (p[ON_OUT].revents)
        take_output(&r->c->out_fd, 'O');
    if (!frame_push())
        r->gone = true;
    if (p[ON_ERR].revents && !frame_pending())
        take_output(&r->c->err_fd, 'E');
    if (!frame_push())
        r->gone = true;
}

enum relay_end relay_run(struct child *c, int signal_fd, int64_t hard_at_ms, struct ending *out)
{
    struct relay r = {.c = c, .end = out, .signal_fd = signal_fd, .hard_at_ms = hard_at_ms};

    relay_reap(&r); /* children that died before signal_fd was polled */
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    do {
        relay_tick(&r);
        check_clock(&r);
        if (r.gone) {
            kill_and_reap_all(clock_ms() + DEATH_MS);
            return RELAY_GONE;
        }
    } while (!finished(&r));
    return RELAY_ENDED;
}
