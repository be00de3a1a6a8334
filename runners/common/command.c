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

static void command_fail(struct command *c, const char *what)
{
    if (!c->why[0])
        snprintf(c->why, sizeof(c->why), "%s: %s", what, strerror(errno));
}

void command_add_code(struct command *c, const char *data, size_t len)
{
    if (!script_is_open() && !script_open(c->options))
        command_fail(c, "creating the script");
    else if (!script_add(c->options, data, len))
        command_fail(c, "keeping the code");
}

void command_fill(struct command *c, const char *data, size_t len)
{
    if (c->why[0])
        return;
    if (c->input.fd == 0 && !(c->run && warm_take_input(&c->input)) && !input_open(&c->input))
        command_fail(c, "memory for the input");
    else if (!write_all(c->input.fill_fd, data, len))
        command_fail(c, "keeping the input");
}

static bool items_take(struct items *w, char *item)
{
    char *text = item + 1;

    switch (item[0]) {
    case 'A':
        w->args[w->n_args++] = text;
        return true;
    case 'E':
        w->env[w->n_env++] = text;
        return strchr(text, '=') != NULL && text[0] != '=';
    case 'D':
        w->cwd = text;
        return true;
    case 'T':
        w->timeout_ms = digits(text);
        return true;
    case 'K':
        w->control = true;
        return true;
    case 'L':
        w->load = text;
        return true;
    default:
        return false;
    }
}

/* Takes the command's text apart. */
static bool items_parse(struct command *c, size_t len)
{
    struct items *w = &c->items;
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += c->text[i] == '\0';
    *w = (struct items){.args = calloc(n + 1, sizeof(*w->args)),
                        .env = calloc(n + 1, sizeof(*w->env))};
    if (!w->args || !w->env || (len > 0 && c->text[len - 1] != '\0'))
        return false;
    for (size_t at = 0; at < len; at += strlen(c->text + at) + 1) {
        if (!items_take(w, c->text + at))
            return false;
    }
    return c->run ? script_is_open() || c->why[0] : w->n_args > 0;
}

/* ---- its start ---- */

static void command_tell(struct command *c, char tag, const char *word)
{
    c->news_tag = tag;
    c->news = word;
}

/* Its process is there, or cannot be. */
static void command_begin(struct command *c, const struct child *child)
{
    c->state = child ? COMMAND_RUNS : COMMAND_FAILED;
    if (!child) {
        c->news = NULL;
    } else {
        c->pid = child->pid;
        c->streams[STREAM_OUT].fd = child->out_fd;
        c->streams[STREAM_ERR].fd = child->err_fd;
    }
    if (c->input.fd > 0)
        close(c->input.fd);
    if (c->input.fill_fd > 0)
        close(c->input.fill_fd);
    free(c->text);
    free(c->items.args);
    free(c->items.env);
    c->input = (struct input){0};
    c->text = NULL;
    c->items = (struct items){0};
}

/* PROGRAM and its arguments, of which SCRIPT is where the code lies; behind the chooser and that,
 * if the code is for it. */
static char **run_argv(const struct options *o, const struct items *w)
{
    char **argv = argv_new(o->command, o->new_option, w->args, w->n_args), **chosen;
    size_t n = 0;

    if (!argv)
        return NULL;
    while (argv[n])
        n++;
    for (size_t i = 0; i < n - w->n_args; i++) {
        if (strcmp(argv[i], o->script) == 0)
            argv[i] = (char *)(uintptr_t)script_path();
    }
    if (!script_is_chosen(o))
        return argv;
    chosen = argv_new((char *[]){o->chooser, (char *)(uintptr_t)script_path(), NULL}, NULL, argv,
                      n);
    free(argv);
    return chosen;
}

/* Starts it in a process of its own. */
static void command_spawn(struct command *c)
{
    const struct options *o = c->options;
    const struct items *w = &c->items;
    char **argv = c->run ? run_argv(o, w) : w->args;
    struct child_plan plan = {.argv = argv,
                              .env = w->env,
                              .n_env = w->n_env,
                              .cwd = w->cwd ? w->cwd : o->cwd,
                              .input_fd = c->input.fd};
    struct child child = {.pid = -1};
    int pair[2] = {-1, -1};

    if (c->run)
        command_tell(c, 'S', "new");
    if (!argv || (w->control && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)) {
        command_fail(c, "starting it");
    } else {
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        plan.hook_fd = pair[1];
        if (c->run)
            script_hide(o);
        c->streams[STREAM_CONTROL].fd = pair[0]; /* output_end closes it after a failure, too */
        if (child_start(&child, &plan, c->why) != 0)
            child.pid = -1;
    }
    if (pair[1] >= 0)
        close(pair[1]);
    if (c->run)
        free(argv);
    command_begin(c, child.pid < 0 ? NULL : &child);
}

/* Gives it to the warm interpreter, or to a new one. */
static void command_hand_over(struct command *c)
{
    if (c->run && warm_offer(&c->items, c->input.fd))
        c->state = COMMAND_OFFERED;
    else
        command_spawn(c);
}

bool command_start(struct command *c, const char *items, size_t len)
{
    bool good;

    for (int of = 0; of < STREAM_N; of++)
        c->streams[of].fd = -1;
    command_fill(c, "", 0);
    c->text = malloc(len + 1);
    if (!c->text)
        return false;
    memcpy(c->text, items, len);
    good = items_parse(c, len);
    c->hard_at_ms = c->items.timeout_ms ? clock_ms() + (int64_t)c->items.timeout_ms : 0;
    c->ooms = report_oom_kills();
    c->peak = report_peak_memory();
    c->used_us = report_children_us();
    if (c->why[0]) {
        command_begin(c, NULL);
    } else if (good && c->run && warm_demand(&c->items, c->input.fd)) {
        c->state = COMMAND_LOADS;
        command_tell(c, 'L', "begun");
    } else if (good) {
        command_hand_over(c);
    }
    return good;
}

void command_hold(struct command *c)
{
    c->state = COMMAND_HELD;
    command_tell(c, 'L', "done");
}

void command_go(struct command *c)
{
    if (c->state == COMMAND_HELD)
        command_hand_over(c);
}

void command_taken(struct command *c)
{
    struct child child = warm_taken();

    command_tell(c, 'S', "warm");
    c->used_us += warm_used_us();
    command_begin(c, &child);
    if (child.pid == 0)
        command_end(c, SIGKILL); /* it was killed before the template had forked */
}

void command_refused(struct command *c)
{
    warm_discard();
    command_spawn(c);
}

/* It is killed before anything has got it. */
static void command_drop(struct command *c)
{
    const struct child none = {.out_fd = -1, .err_fd = -1};

    warm_discard();
    command_begin(c, &none);
    c->news = NULL;
    command_end(c, SIGKILL);
}

/* ---- control channel and end ---- */

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
    /* We cannot tell whether it has started the program already, which must not run twice. */
    if (c->state == COMMAND_OFFERED)
        command_taken(c);
    if (c->state == COMMAND_LOADS || c->state == COMMAND_HELD)
        command_drop(c);
    if (c->state == COMMAND_OVER)
        c->over_at_ms = clock_ms();
    if (c->state != COMMAND_RUNS)
        return;
    if (c->run)
        kill_all();
    else
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
    ssize_t n = read(s->fd, frame_room(), most);

    if (n > 0) {
        s->due -= (size_t)n < s->due ? (size_t)n : s->due;
        frame_begin("KOE"[of], c -> id, (size_t)n); /* enum stream_of */
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
    static char waste[DATA_MAX];

    for (int i = n_orphans - 1; i >= 0; i--) {
        ssize_t n = read(orphans[i], waste, sizeof(waste));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            orphan_close(i);
    }
}

void output_end(struct command *c)
{
    char *text = frame_room();

    if (c->run)
        script_remove();
    if (c->state == COMMAND_FAILED) {
        size_t len = strlen(c->why);

        memcpy(text, c->why, len);
        frame_begin('F', c->id, len);
    } else {
        c->report.oom_kills = report_oom_kills() - c->ooms;
        if (c->run) {
            uint64_t used_us = report_children_us(), peak = report_peak_memory();

            c->report.cpu_us = used_us > c->used_us ? used_us - c->used_us : 0;
            if (peak > c->peak) /* else an earlier run, or what was loaded, needed more */
                c->report.peak_memory_bytes = peak;
            wipe_look(c->report.left);
        }
        frame_begin('R', c->id, report_write(text, &c->report));
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
