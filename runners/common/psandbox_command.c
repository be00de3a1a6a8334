#include "runners/common/psandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What children of a command may still say after it has ended. */
#define GRACE_MS 250

/* What a command's items say; pointers into them. */
struct wanted {
    char **argv, **env;
    size_t n_argv, n_env;
    const char *cwd;
    uint64_t timeout_ms;
    bool control;
};

static void fail(struct command *c, const char *what)
{
    if (!c->why[0])
        snprintf(c->why, sizeof(c->why), "%s: %s", what, strerror(errno));
}

void command_fill(struct command *c, const char *data, size_t len)
{
    if (c->why[0])
        return;
    if (c->input.fd == 0 && !input_open(&c->input))
        fail(c, "memory for the input");
    else if (!write_all(c->input.fill_fd, data, len))
        fail(c, "keeping the input");
}

static size_t count_items(const char *items, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += items[i] == '\0';
    return n;
}

static bool take_item(struct wanted *w, char *item)
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
static bool parse(struct wanted *w, char *items, size_t len)
{
    size_t n = count_items(items, len);

    *w = (struct wanted){.cwd = "/data"};
    if (len == 0 || items[len - 1] != '\0')
        return false;
    w->argv = calloc(n + 1, sizeof(*w->argv));
    w->env = calloc(n + 1, sizeof(*w->env));
    if (!w->argv || !w->env)
        return false;
    for (size_t at = 0; at < len; at += strlen(items + at) + 1) {
        if (!take_item(w, items + at))
            return false;
    }
    return w->n_argv > 0;
}

static bool start(struct command *c, const struct wanted *w)
{
    struct child child;
    struct child_plan plan = {.argv = w->argv,
                              .env = w->env,
                              .n_env = w->n_env,
                              .cwd = w->cwd,
                              .input_fd = c->input.fd,
                              .hook_fd = -1};
    int pair[2] = {-1, -1};
    bool started;

    if (w->control && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        fail(c, "the control channel");
        return false;
    }
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    plan.hook_fd = pair[1];
    c->ooms = report_oom_kills();
    started = child_start(&child, &plan, c->why) == 0;
    if (pair[1] >= 0)
        close(pair[1]);
    if (!started) {
        if (pair[0] >= 0)
            close(pair[0]);
        return false;
    }
    c->pid = child.pid;
    c->streams[STREAM_CONTROL].fd = pair[0];
    c->streams[STREAM_OUT].fd = child.out_fd;
    c->streams[STREAM_ERR].fd = child.err_fd;
    return true;
}

bool command_start(struct command *c, char *items, size_t len)
{
    struct wanted w;
    bool good = parse(&w, items, len);

    for (int of = 0; of < STREAM_N; of++)
        c->streams[of].fd = -1;
    command_fill(c, "", 0);
    if (good && !c->why[0] && start(c, &w)) {
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

/* Nobody reads it any more. */
static void drop_queue(struct command *c)
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
    drop_queue(c);
}

void command_control(struct command *c, const char *data, size_t len)
{
    size_t left = c->queue_len - c->queue_sent;
    char *queue;

    if (c->state != COMMAND_RUNS || c->streams[STREAM_CONTROL].fd < 0)
        return;
    queue = left + len > CONTROL_MAX ? NULL : malloc(left + len);
    if (!queue) {
        drop_queue(c);
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
    drop_queue(c);
}

bool command_drained(const struct command *c)
{
    for (int of = 0; of < STREAM_N; of++) {
        if (c->streams[of].fd >= 0 && (!c->last || c->streams[of].due > 0))
            return false;
    }
    return true;
}
