#include "runners/common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long children of a command may still print after it has ended. */
#define GRACE_MS 250

/* A command's items; pointers into them. */
struct command_items {
    char **argv, **env;
    size_t n_argv, n_env;
    const char *cwd;
    uint64_t timeout_ms;
    bool control;
};

static void command_fail(struct command *c, const char *what)
{
    if (!c->why[0])
        snprintf(c->why, sizeof(c->why), "%s: %s", what, strerror(errno));
}

void command_fill(struct command *c, const char *data, size_t len)
{
    if (c->why[0])
        return;
    if (c->input.fd == 0 && !input_open(&c->input))
        command_fail(c, "memory for the input");
    else if (!write_all(c->input.fill_fd, data, len))
        command_fail(c, "keeping the input");
}

static bool items_take(struct command_items *w, char *item)
{
    char *text = item + 1;

    switch (item[0]) {
    case 'A':
        w->argv[w->n_argv++] = text;
        return true;
    case 'E':
        w->env[w->n_env++] = text;
        return strchr(text, '=') != NULL;
    case 'D':
        w->cwd = text;
        return true;
    case 'T':
        w->timeout_ms = digits(text);
        return true;
    case 'K':
        w->control = true;
        return true;
    default:
        return false;
    }
}

/* Takes the items apart; the lists are to be freed. */
static bool items_parse(struct command_items *w, char *items, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += items[i] == '\0';
    *w = (struct command_items){.cwd = "/data"};
    if (len == 0 || items[len - 1] != '\0')
        return false;
    w->argv = calloc(n + 1, sizeof(*w->argv));
    w->env = calloc(n + 1, sizeof(*w->env));
    if (!w->argv || !w->env)
        return false;
    for (size_t at = 0; at < len; at += strlen(items + at) + 1) {
        if (!items_take(w, items + at))
            return false;
    }
    return w->n_argv > 0;
}

static bool command_spawn(struct command *c, const struct command_items *w)
{
    struct child child;
    struct child_plan plan = {.argv = w->argv,
                              .env = w->env,
                              .n_env = w->n_env,
                              .cwd = w->cwd,
                              .input_fd = c->input.fd,
                              .hook_fd = -1};
    int pair[2] = {-1, -1};

    if (w->control && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        command_fail(c, "the control channel");
        return false;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    plan.hook_fd = pair[1];
    c->ooms = report_oom_kills();
    c->streams[STREAM_CONTROL].fd = pair[0]; /* output_end closes it after a failure, too */
    int started = child_start(&child, &plan, c->why);
    if (pair[1] >= 0)
        close(pair[1]);
    if (started < 0)
        return false;
    c->pid = child.pid;
    c->streams[STREAM_OUT].fd = child.out_fd;
    c->streams[STREAM_ERR].fd = child.err_fd;
    return true;
}

bool command_start(struct command *c, char *items, size_t len)
{
    struct command_items w;
    bool good = items_parse(&w, items, len);

    for (int of = 0; of < STREAM_N; of++)
        c->streams[of].fd = -1;
    command_fill(c, "", 0);
    if (good && !c->why[0] && command_spawn(c, &w)) {
        c->state = COMMAND_RUNS;
        c->hard_at_ms = w.timeout_ms ? clock_ms() + (int64_t)w.timeout_ms : 0;
    } else {
        c->state = COMMAND_FAILED;
    }
    if (c->input.fd > 0)
        close(c->input.fd);
    if (c->input.fill_fd > 0)
        close(c->input.fill_fd);
    c->input = (struct input){0};
    free(w.argv);
    free(w.env);
    return good;
}

static void queue_drop(struct command *c)
{
    free(c->queue);
    c->queue = NULL;
    c->queue_len = c->queue_sent = 0;
}

void command_feed(struct command *c)
{
    while (c->queue_sent < c->queue_len) {
        ssize_t n = send(c->streams[STREAM_CONTROL].fd, c->queue + c->queue_sent,
                         c->queue_len - c->queue_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break;
        c->queue_sent += (size_t)n;
    }
    queue_drop(c);
}

void command_control(struct command *c, const char *data, size_t len)
{
    size_t left = c->queue_len - c->queue_sent;
    char *queue;

    if (c->state != COMMAND_RUNS || c->streams[STREAM_CONTROL].fd < 0)
        return;
    queue = left + len > CONTROL_MAX ? NULL : malloc(left + len);
    if (!queue) {
        queue_drop(c);
        close(c->streams[STREAM_CONTROL].fd);
        c->streams[STREAM_CONTROL] = (struct stream){.fd = -1};
        c->control_waits = false;
        return;
    }
    if (left > 0)
        memcpy(queue, c->queue + c->queue_sent, left);
    memcpy(queue + left, data, len);
    free(c->queue);
    c->queue = queue;
    c->queue_len = left + len;
    c->queue_sent = 0;
    command_feed(c);
}

void command_kill(struct command *c)
{
    if (c->state == COMMAND_OVER)
        c->over_at_ms = clock_ms();
    if (c->state != COMMAND_RUNS)
        return;
    tree_kill(c->pid);
    if (!c->dead_at_ms)
        c->dead_at_ms = clock_ms() + DEATH_MS;
}

void command_end(struct command *c, int status)
{
    c->state = COMMAND_OVER;
    c->report.status = status;
    c->over_at_ms = clock_ms() + GRACE_MS;
    queue_drop(c);
}

bool command_drained(const struct command *c)
{
    for (int of = 0; of < STREAM_N; of++) {
        if (c->streams[of].fd >= 0 && (!c->last || c->streams[of].due > 0))
            return false;
    }
    return true;
}

/* ---- output ---- */

static size_t readable_bytes(int fd)
{
    int n = 0;

    return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* A frame of this command whose data is in the room behind the id. */
static void command_frame(const struct command *c, char tag, size_t len)
{
    u32_put(frame_room(), c->id);
    frame_begin(tag, ID_LEN + len);
}

short output_events(const struct command *c, enum stream_of of, bool busy)
{
    const struct stream *s = &c->streams[of];
    short events = 0;

    if (s->fd < 0)
        return 0;
    if (!busy && (!c->last || s->due > 0))
        events |= POLLIN;
    if (of == STREAM_CONTROL && c->queue_sent < c->queue_len)
        events |= POLLOUT;
    return events;
}

/* Makes a frame of what the stream holds; false when there is none. Closes it at its end. */
static bool stream_take(struct command *c, enum stream_of of)
{
    struct stream *s = &c->streams[of];
    bool bounded = c->last || (of == STREAM_CONTROL && s->due > 0);
    size_t most = bounded && s->due < DATA_MAX ? s->due : DATA_MAX;
    ssize_t n = read(s->fd, (char *)frame_room() + ID_LEN, most);

    if (n > 0) {
        s->due -= (size_t)n < s->due ? (size_t)n : s->due;
        command_frame(c, "KOE"[of], (size_t)n); /* enum stream_of */
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(s->fd);
        *s = (struct stream){.fd = -1};
    }
    return false;
}

/* What was printed before the program wrote to its control channel is sent first, and no more than
 * that: other processes of the command may never stop printing. The channel is measured before the
 * output, because what comes there later may refer to output that comes later. */
static bool control_first(struct command *c)
{
    if (!c->control_waits && !c->last) {
        c->control_waits = true;
        c->streams[STREAM_CONTROL].due = readable_bytes(c->streams[STREAM_CONTROL].fd);
        c->streams[STREAM_OUT].due = readable_bytes(c->streams[STREAM_OUT].fd);
        c->streams[STREAM_ERR].due = readable_bytes(c->streams[STREAM_ERR].fd);
    }
    return c->streams[STREAM_OUT].due == 0 && c->streams[STREAM_ERR].due == 0;
}

void output_take(struct command *c, const short revents[STREAM_N])
{
    if (revents[STREAM_CONTROL] && c->streams[STREAM_CONTROL].fd >= 0 && control_first(c)) {
        c->control_waits = false;
        if (stream_take(c, STREAM_CONTROL))
            return;
    }
    for (int of = STREAM_OUT; of <= STREAM_ERR; of++) {
        /* While control waits, only what it waits for. */
        if (c->control_waits && c->streams[of].due == 0)
            continue;
        if (revents[of] && c->streams[of].fd >= 0 && stream_take(c, (enum stream_of)of))
            return;
    }
}

void output_last(struct command *c)
{
    c->last = true;
    for (int of = 0; of < STREAM_N; of++)
        c->streams[of].due = readable_bytes(c->streams[of].fd);
}

/* ---- output of processes that have outlived their command ---- */

static int orphans[ORPHANS_MAX];
static int n_orphans;

static void orphan_close(int i)
{
    close(orphans[i]);
    memmove(orphans + i, orphans + i + 1, (size_t)(--n_orphans - i) * sizeof(*orphans));
}

int orphan_polls(struct pollfd *p)
{
    for (int i = 0; i < n_orphans; i++)
        p[i] = (struct pollfd){.fd = orphans[i], .events = POLLIN};
    return n_orphans;
}

void orphan_drain(void)
{
    static char waste[FRAME_MAX];

    for (int i = n_orphans - 1; i >= 0; i--) {
        ssize_t n = read(orphans[i], waste, sizeof(waste));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            orphan_close(i);
    }
}

void output_end(struct command *c)
{
    char *text = (char *)frame_room() + ID_LEN;

    if (c->state == COMMAND_FAILED) {
        size_t len = strlen(c->why);

        memcpy(text, c->why, len);
        command_frame(c, 'F', len);
    } else {
        c->report.oom_kills = report_oom_kills() - c->ooms;
        command_frame(c, 'R', report_write(text, &c->report));
    }
    for (int of = 0; of < STREAM_N; of++) {
        if (c->streams[of].fd < 0)
            continue;
        if (n_orphans == ORPHANS_MAX && of != STREAM_CONTROL)
            orphan_close(0);
        if (of != STREAM_CONTROL)
            orphans[n_orphans++] = c->streams[of].fd;
        else
            close(c->streams[of].fd);
    }
    free(c->queue);
    *c = (struct command){.state = COMMAND_NONE};
}
