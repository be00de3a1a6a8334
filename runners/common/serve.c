/* The mode "entry serve": any number of commands, several at the same time, until stdin ends. One
 * poll loop; memory holds one frame on its way out, the commands' standard input, and what programs
 * have not read from their control channels. */
#include "runners/common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMANDS_MAX 64
#define RECORD_MAX   (1u << 20) /* payload of one record */
#define READ_BYTES   65536
/* Memory that the inbox keeps while it is empty. */
#define KEPT_BYTES (2u * READ_BYTES)

enum { ON_SERVER, ON_SIGNAL, ON_WRITE, ON_STREAMS };
#define ON_ORPHANS (ON_STREAMS + COMMANDS_MAX * STREAM_N)
#define ON_ALL     (ON_ORPHANS + ORPHANS_MAX)

static struct command commands[COMMANDS_MAX];

static struct {
    int signal_fd;
    unsigned first; /* command whose output is looked at first */
    bool over;      /* the server is gone, or the container is stopped */
    int status;     /* then: ours */
} self;

/* What came from stdin and is not a whole record yet. */
static struct {
    char *data;
    size_t len, cap;
} inbox;

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
            *c = (struct command){.state = COMMAND_FILLING, .id = id};
        }
    }
    return c;
}

/* False when the record makes no sense. K and Z may meet a command that has just ended. */
static bool take_record(char tag, uint32_t id, char *data, size_t len)
{
    struct command *c = tag == 'I' || tag == 'X' ? find_or_make(id) : find_command(id);

    switch (tag) {
    case 'I':
        if (!c || c->state != COMMAND_FILLING)
            return false;
        command_fill(c, data, len);
        return true;
    case 'X':
        return c && c->state == COMMAND_FILLING && command_start(c, data, len);
    case 'K':
        if (c)
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

/* Takes the whole records of the inbox; false when one makes no sense. */
static bool inbox_take(void)
{
    size_t at = 0;

    while (inbox.len - at >= FRAME_HEAD) {
        char *p = inbox.data + at;
        size_t len = u32_get(p + 1);

        if (len < ID_LEN || len > RECORD_MAX)
            return false;
        if (inbox.len - at < FRAME_HEAD + len)
            break;
        if (!take_record(p[0], u32_get(p + FRAME_HEAD), p + FRAME_HEAD + ID_LEN, len - ID_LEN))
            return false;
        at += FRAME_HEAD + len;
    }
    if (at > 0)
        memmove(inbox.data, inbox.data + at, inbox.len - at);
    inbox.len -= at;
    if (inbox.len == 0 && inbox.cap > KEPT_BYTES) {
        free(inbox.data);
        inbox.data = NULL;
        inbox.cap = 0;
    }
    return true;
}

static void on_server(void)
{
    ssize_t n;

    if (inbox.cap - inbox.len < READ_BYTES) {
        char *grown = realloc(inbox.data, inbox.cap + inbox.cap / 2 + READ_BYTES);

        if (!grown) {
            entry_error(0, "no memory for records");
            serve_end(ENTRY_FAILED);
            return;
        }
        inbox.data = grown;
        inbox.cap += inbox.cap / 2 + READ_BYTES;
    }
    n = read(STDIN_FILENO, inbox.data + inbox.len, READ_BYTES);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        serve_end(0);
        return;
    }
    inbox.len += (size_t)n;
    if (!inbox_take()) {
        entry_error(0, "bad record");
        serve_end(ENTRY_FAILED);
    }
}

/* ---- signals and time ---- */

static void on_signals(void)
{
    int status, stop = signals_read(self.signal_fd, true);
    struct rusage used;
    pid_t pid;

    if (stop)
        serve_end(128 + stop);
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

/* Only its last frame is still to be sent. */
static bool can_end(const struct command *c)
{
    return c->state == COMMAND_FAILED || (c->state == COMMAND_OVER && command_drained(c));
}

/* Time until something has to happen without an event; -1 = none. */
static int serve_timeout(void)
{
    int64_t at = 0;

    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];
        int64_t own = 0;

        if (can_end(c) && !frame_pending())
            return 0;
        if (c->state == COMMAND_RUNS)
            own = c->dead_at_ms ? c->dead_at_ms : c->hard_at_ms;
        else if (c->state == COMMAND_OVER && !c->last)
            own = c->over_at_ms;
        if (own && (at == 0 || own < at))
            at = own;
    }
    return poll_timeout(at);
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

/* ---- the loop ---- */

static struct pollfd *polls_of(struct pollfd *p, size_t command)
{
    return p + ON_STREAMS + command * STREAM_N;
}

/* Fills the table; returns how many entries are used. */
static nfds_t fill_polls(struct pollfd *p)
{
    bool busy = frame_pending();

    p[ON_SERVER] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    p[ON_SIGNAL] = (struct pollfd){.fd = self.signal_fd, .events = POLLIN};
    p[ON_WRITE] = (struct pollfd){.fd = STDOUT_FILENO, .events = busy ? POLLOUT : 0};
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        const struct command *c = &commands[i];
        bool lives = c->state == COMMAND_RUNS || c->state == COMMAND_OVER;

        for (int of = 0; of < STREAM_N; of++) {
            short events = lives ? output_events(c, (enum stream_of)of, busy) : 0;

            polls_of(p, i)[of] = (struct pollfd){.fd = events ? c->streams[of].fd : -1,
                                                 .events = events};
        }
    }
    return (nfds_t)(ON_ORPHANS + orphan_polls(p + ON_ORPHANS));
}

/* Sends one frame of the command's, if it has one and there is room. */
static void command_tick(struct command *c, const struct pollfd *p)
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
        serve_end(ENTRY_FAILED);
}

static void serve_tick(void)
{
    static struct pollfd p[ON_ALL];
    nfds_t n = fill_polls(p);
    int64_t now;

    if (poll(p, n, serve_timeout()) < 0)
        return;
    if (p[ON_WRITE].revents & (POLLERR | POLLHUP | POLLNVAL) || !frame_push())
        serve_end(ENTRY_FAILED);
    if (p[ON_SIGNAL].revents)
        on_signals();
    if (p[ON_SERVER].revents)
        on_server();
    if (n > ON_ORPHANS)
        orphan_drain();
    now = clock_ms();
    for (size_t i = 0; i < COMMANDS_MAX; i++) {
        size_t at = (self.first + i) % COMMANDS_MAX;

        check_clock(&commands[at], now);
        command_tick(&commands[at], polls_of(p, at));
    }
    self.first++;
}

int serve_run(int signal_fd)
{
    static const char no_id[ID_LEN];

    self.signal_fd = signal_fd;
    if (!frame_send('W', no_id, sizeof(no_id)))
        return ENTRY_FAILED;
    fcntl(STDOUT_FILENO, F_SETFL, fcntl(STDOUT_FILENO, F_GETFL) | O_NONBLOCK);
    while (!self.over)
        serve_tick();
    kill_and_reap_all(clock_ms() + DEATH_MS);
    return self.status;
}
