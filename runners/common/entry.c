#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* How long a server may take to hang up once it has the report. */
#define LINGER_MS 2000

int64_t clock_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void entry_say(int err, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (err)
        dprintf(STDERR_FILENO, "entry: %s: %s\n", text, strerror(err));
    else
        dprintf(STDERR_FILENO, "entry: %s\n", text);
}

uint64_t digits(const char *p)
{
    uint64_t value = 0;

    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return UINT64_MAX;
    }
    return value;
}

bool write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* PID 1 ignores what it has no handler for: signals are events of our poll loops. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* PROGRAM and its fixed arguments, then those of the envelope. */
static char **join_argv(char *const *fixed, const struct envelope *v)
{
    size_t n = 0;
    char **argv;

    while (fixed[n])
        n++;
    argv = calloc(n + v->n_args + 1, sizeof(*argv));
    if (!argv)
        return NULL;
    memcpy(argv, fixed, n * sizeof(*argv));
    if (v->n_args > 0)
        memcpy(argv + n, v->args, v->n_args * sizeof(*argv));
    return argv;
}

static void await_input(void *arg, const struct envelope *v)
{
    ahead_await(arg, v);
}

static void preload(void *arg, const char *names)
{
    ahead_preload(arg, names);
}

/* The script's place, for interpreters that look whether it is there before they look into it. */
static void place_script(const char *script)
{
    int fd = open(script, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        entry_say(errno, "creating %s", script);
    else
        close(fd);
}

/* Runs the program of the envelope, in the interpreter that waits or in a new one. */
static int run(struct ahead *a, const struct envelope *v)
{
    const struct options *o = a->options;
    struct ending end = {.status = SIGKILL}; /* of a program that we killed and that does not die */
    int64_t hard_at_ms = v->hard_ms ? v->went_at_ms + (int64_t)v->hard_ms : 0;
    bool ahead = ahead_claim(a, v, &end);
    const char *way = ahead ? "ahead" : "anew";

    if (!ahead) {
        struct child_plan plan = {.argv = join_argv(o->command, v),
                                  .env = v->env,
                                  .n_env = v->n_env,
                                  .cwd = o->cwd,
                                  .input_fd = a->input->fd,
                                  .hook_fd = -1};
        char why[CHILD_WHY_MAX] = "no memory for arguments";

        if (!plan.argv || child_start(&a->child, &plan, why) != 0) {
            entry_say(0, "%s", why);
            return ENTRY_FAILED;
        }
    }
    close(a->input->fd);
    close(a->input->fill_fd);
    if (!frame_send('S', way, strlen(way)) ||
        relay_run(&a->child, a->signal_fd, hard_at_ms, &end) == RELAY_GONE)
        return ENTRY_FAILED;
    return report_send(&end);
}

/* The server has its report: the rest of us is in nobody's way before it hangs up. */
static void linger(void)
{
    int64_t until_ms = clock_ms() + LINGER_MS;
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    for (;;) {
        int64_t left = until_ms - clock_ms();

        if (left <= 0 || (poll(&p, 1, (int)left) > 0 && !server_is_there(p.revents)))
            return;
    }
}

static int serve(struct ahead *a)
{
    struct envelope v = {0};
    struct envelope_way way = {.fd = STDIN_FILENO,
                               .script = a->options->script,
                               .input_fd = a->input->fill_fd,
                               .await = await_input,
                               .preload = preload,
                               .arg = a};
    int status;

    if (a->options->place)
        place_script(a->options->script);
    ahead_start(a);
    switch (envelope_read(&v, &way)) {
    case ENVELOPE_GO:
        status = run(a, &v);
        if (status != ENTRY_FAILED)
            linger();
        break;
    case ENVELOPE_GONE:
        status = 0;
        break;
    default:
        status = ENTRY_FAILED;
        break;
    }
    child_reap_all(clock_ms() + DEATH_MS);
    return status;
}

/* One program, or as "entry stay" any number of commands. */
static int live(int argc, char **argv)
{
    struct options o;
    struct input in;
    struct ahead a = {.options = &o, .input = &in};
    bool stays = argc == 2 && strcmp(argv[1], "stay") == 0;

    if (!stays && (!options_parse(&o, argc, argv) || !input_open(&in)))
        return ENTRY_FAILED;
    a.signal_fd = open_signals();
    if (a.signal_fd < 0) {
        entry_say(errno, "signals");
        return ENTRY_FAILED;
    }
    return stays ? psandbox_serve(a.signal_fd) : serve(&a);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "index") == 0)
        return index_main(argc - 2, argv + 2);
    /* The program has our uid: this keeps it out of our memory and of /proc/1/fd, where the
     * server's stream is. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    child_adopt_orphans();
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    return live(argc, argv);
}
