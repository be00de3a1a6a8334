#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* What children of the program may still say after it has ended. */
#define GRACE_MS 250
/* After SIGKILL the rest must be gone; a process stuck in the kernel does not keep the answer
 * waiting. */
#define DEATH_MS 2000

/* The frame that is on its way out. While it is not empty nothing is read: that is the
 * back-pressure. */
struct frame {
    unsigned char data[5 + FRAME_MAX];
    size_t len;
    size_t sent;
};

static struct frame frame;

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

static void frame_head(char tag, size_t len)
{
    frame.data[0] = (unsigned char)tag;
    frame.data[1] = (unsigned char)(len >> 24);
    frame.data[2] = (unsigned char)(len >> 16);
    frame.data[3] = (unsigned char)(len >> 8);
    frame.data[4] = (unsigned char)len;
    frame.len = 5 + len;
    frame.sent = 0;
}

static bool frame_pending(void)
{
    return frame.sent < frame.len;
}

/* Writes what the reader takes now; false when there is no reader. */
static bool frame_push(void)
{
    while (frame_pending()) {
        ssize_t n = write(STDOUT_FILENO, frame.data + frame.sent, frame.len - frame.sent);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        frame.sent += (size_t)n;
    }
    return true;
}

/* Nothing is expected on stdin after the envelope: bytes are dropped, the end means that the server
 * is gone. */
static bool server_is_there(short revents)
{
    char drop[4096];

    if (revents & POLLIN)
        return read(STDIN_FILENO, drop, sizeof(drop)) > 0 || errno == EINTR || errno == EAGAIN;
    return !(revents & (POLLHUP | POLLERR | POLLNVAL));
}

bool frame_send(char tag, const void *data, size_t len)
{
    struct pollfd p[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                          {.fd = STDIN_FILENO, .events = POLLIN}};

    frame_head(tag, len);
    memcpy(frame.data + 5, data, len);
    for (;;) {
        if (!frame_push())
            return false;
        if (!frame_pending())
            return true;
        if (poll(p, 2, -1) > 0 && p[1].revents && !server_is_there(p[1].revents))
            return false;
    }
}

/* Makes a frame of what the pipe holds; closes the pipe at its end. */
static void take_output(int *fd, char tag)
{
    ssize_t n = read(*fd, frame.data + 5, FRAME_MAX);

    if (n > 0) {
        frame_head(tag, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(*fd);
        *fd = -1;
    }
}

static void reap(struct relay *r)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != r->c->pid)
            continue;
        r->ended = true;
        r->end->status = status;
        r->grace_until = clock_ms() + GRACE_MS;
    }
    r->alone = pid < 0;
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
        if (now >= r->grace_until || (r->c->out_fd < 0 && r->c->err_fd < 0))
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

    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    do {
        turn(&r);
        check_clock(&r);
        if (r.gone) {
            child_bury_all(clock_ms() + DEATH_MS);
            return RELAY_GONE;
        }
    } while (!finished(&r));
    return RELAY_ENDED;
}
