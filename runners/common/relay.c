#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* What children of the program may still say after it has ended. */
#define GRACE_MS 250

enum { ON_SERVER, ON_SIGNAL, ON_OUT, ON_ERR, ON_WRITE, ON_N };

struct relay {
    struct child *c;
    struct ending *end;
    int signal_fd;
    int64_t hard_at_ms;  /* 0 = none */
    int64_t grace_until; /* 0 = the program has not ended */
    int64_t dead_until;  /* 0 = nobody was killed */
    bool ended;          /* the program itself was reaped */
    bool alone;          /* no children are left */
    bool gone;           /* the server, or its interest */
    bool quiet;          /* the last turn found the pipes empty */
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

/* The program can write to the memory that it shared with its holder: stopped, that runs no more.
 */
static bool only_holder_left(pid_t holder)
{
    if (holder == 0 || kill(holder, SIGSTOP) != 0)
        return false;
    return !child_others_left(holder);
}

static void reap(struct relay *r)
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
    r->alone = pid < 0 || (r->ended && only_holder_left(r->end->holder));
    if (r->dead_until && !r->alone)
        child_kill_all(); /* orphans that became ours by these deaths */
}

static void kill_rest(struct relay *r)
{
    child_kill_all();
    if (!r->dead_until)
        r->dead_until = clock_ms() + DEATH_MS;
}

static void take_signals(struct relay *r)
{
    struct signalfd_siginfo info;

    while (read(r->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD)
            kill_rest(r); /* somebody stops the container: end it, and tell how it ended */
    }
    reap(r);
}

/* The next moment at which something has to happen without an event; -1 = none. */
static int wait_ms(const struct relay *r)
{
    int64_t at = 0, left;

    if (r->dead_until && frame_pending())
        return -1; /* nobody is left to wait for, only the reader */
    if (r->dead_until)
        at = r->dead_until;
    else if (r->grace_until)
        at = r->grace_until;
    else
        at = r->hard_at_ms;
    if (at == 0)
        return -1;
    left = at - clock_ms();
    if (left < 0)
        return 0;
    return left < 3600000 ? (int)left + 1 : 3600000;
}

static void check_clock(struct relay *r)
{
    int64_t now = clock_ms();

    if (r->dead_until)
        return;
    if (r->ended) {
        /* After the grace nobody may hold the output open any more, a stopped holder neither. */
        if (now >= r->grace_until || (!r->alone && r->c->out_fd < 0 && r->c->err_fd < 0))
            kill_rest(r);
        return;
    }
    if (r->hard_at_ms && now >= r->hard_at_ms) {
        r->end->timed_out = true;
        kill_rest(r);
    }
}

/* Everything that can still be said has been said; or those who could are stuck and had their time.
 */
static bool finished(const struct relay *r)
{
    if (frame_pending())
        return false;
    if (r->dead_until && r->quiet && clock_ms() >= r->dead_until)
        return true;
    return r->ended && r->alone && r->c->out_fd < 0 && r->c->err_fd < 0;
}

static void turn(struct relay *r)
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
    if (p[ON_SIGNAL].revents)
        take_signals(r);
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

    reap(&r); /* who died before, while nobody looked at signal_fd */
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    do {
        turn(&r);
        check_clock(&r);
        if (r.gone) {
            child_reap_all(clock_ms() + DEATH_MS);
            return RELAY_GONE;
        }
    } while (!finished(&r));
    return RELAY_ENDED;
}
