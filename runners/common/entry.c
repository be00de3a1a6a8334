#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

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

static void stop_waiting(int sig)
{
    _exit(128 + sig);
}

/* PID 1 ignores what it has no handler for: while we wait for work, whoever stops the container is
 * obeyed at once. */
static void obey_while_waiting(void)
{
    struct sigaction stop = {.sa_handler = stop_waiting};

    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

/* With a program to look after, these are events of the poll loop. */
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

static int run(const char *cwd, const char *script, char *const *command)
{
    struct envelope v = {.input_fd = -1};
    struct child c;
    struct ending end = {.status = SIGKILL}; /* of a program that we killed and that does not die */
    int signal_fd;
    char **argv;

    obey_while_waiting();
    switch (envelope_read(&v, STDIN_FILENO, script)) {
    case ENVELOPE_GO:
        break;
    case ENVELOPE_GONE:
        return 0;
    case ENVELOPE_BAD:
        return ENTRY_FAILED;
    }
    signal_fd = open_signals();
    if (signal_fd < 0) {
        entry_say(errno, "signals");
        return ENTRY_FAILED;
    }
    argv = join_argv(command, &v);
    if (!argv || child_start(&c, argv, v.env, v.n_env, v.input_fd, cwd) != 0)
        return ENTRY_FAILED;
    if (v.input_fd >= 0)
        close(v.input_fd);
    int64_t hard_at_ms = v.hard_ms ? v.read_at_ms + (int64_t)v.hard_ms : 0;
    if (relay_run(&c, signal_fd, hard_at_ms, &end) == RELAY_GONE)
        return ENTRY_FAILED;
    return report_send(&end);
}

int main(int argc, char **argv)
{
    const char *cwd = "/data";
    int at = 1;

    /* The program has our uid: this keeps it out of our memory and of /proc/1/fd, where the
     * server's stream is. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    child_adopt_orphans();
    if (argc > 2 && strcmp(argv[1], "-C") == 0) {
        cwd = argv[2];
        at = 3;
    }
    if (argc - at < 2) {
        entry_say(0, "usage: entry [-C DIRECTORY] SCRIPT PROGRAM [ARGUMENT…]");
        return ENTRY_FAILED;
    }
    return run(cwd, argv[at], argv + at + 1);
}
