#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORD_MAX 32 /* of a frame W */

static void drop_hook(struct ahead *a)
{
    if (a->hook_fd >= 0)
        close(a->hook_fd);
    a->hook_fd = -1;
}

/* "NAME=FILE", or with what the image preloads behind it; NULL without memory. */
static char *preload_variable(const char *object)
{
    const char *old = getenv("LD_PRELOAD");
    char *text;
    int n = old ? asprintf(&text, "LD_PRELOAD=%s:%s", object, old)
                : asprintf(&text, "LD_PRELOAD=%s", object);

    return n < 0 ? NULL : text;
}

bool ahead_spoilt(const struct options *o)
{
    const struct dirent *d;
    bool found = false;
    DIR *dir = o->files ? opendir(o->cwd) : NULL;

    if (!dir)
        return false;
    while (!found && (d = readdir(dir)))
        found = options_list_has(o->files, d->d_name, strlen(d->d_name));
    closedir(dir);
    return found;
}

/* PROGRAM, the option that is for the waiting one, and the fixed arguments; NULL without memory. */
static char **waiting_argv(const struct options *o)
{
    size_t n = 0;
    char **argv;

    while (o->command[n])
        n++;
    argv = calloc(n + 2, sizeof(*argv));
    if (!argv)
        return NULL;
    argv[0] = o->command[0];
    if (o->option)
        argv[1] = o->option;
    memcpy(argv + (o->option ? 2 : 1), o->command + 1, (n - 1) * sizeof(*argv));
    return argv;
}

void ahead_start(struct ahead *a)
{
    const struct options *o = a->options;
    char **argv = waiting_argv(o);
    char *env[2];
    struct child_plan plan = {.argv = argv, .env = env, .cwd = o->cwd, .input_fd = a->input->fd};
    char *preload = o->object ? preload_variable(o->object) : NULL;
    char why[CHILD_WHY_MAX];
    int pair[2];

    a->hook_fd = -1;
    if (preload)
        env[plan.n_env++] = preload;
    if (o->extra)
        env[plan.n_env++] = o->extra;
    if (o->ahead && argv && !ahead_spoilt(o) &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        plan.hook_fd = pair[1];
        if (child_start(&a->child, &plan, why) == 0) {
            a->hook_fd = pair[0];
        } else {
            entry_say(0, "%s", why);
            close(pair[0]);
        }
        close(pair[1]);
    }
    free(argv);
    free(preload);
}

/* Those who died while we waited; nothing of a program runs yet. */
static void reap(struct ahead *a)
{
    struct signalfd_siginfo info;
    pid_t pid;

    while (read(a->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        child_reap_all(clock_ms() + DEATH_MS);
        _exit(128 + (int)info.ssi_signo);
    }
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == a->holder)
            a->holder = 0;
        if (pid == a->child.pid) {
            a->child.pid = 0;
            drop_hook(a);
        }
    }
}

static void say_waiting(struct ahead *a, const char *tier)
{
    int len = snprintf(frame_room(), WORD_MAX, "%s %" PRIu64, tier, report_memory());

    a->full = a->ready;
    a->ready = true;
    frame_begin('W', (size_t)len);
    frame_push();
}

/* Takes one packet if there is one; its letter, 0 = none, -1 = the interpreter's end is closed. */
static int take_packet(struct ahead *a, char *text, size_t size)
{
    ssize_t n;

    do {
        n = recv(a->hook_fd, text, size - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return text[0];
}

int ahead_listen(struct ahead *a, bool quiet)
{
    char text[sizeof(a->step) + 1];
    int letter;

    while ((letter = take_packet(a, text, sizeof(text))) > 0) {
        if (letter == 'Y' || letter == 'N')
            return letter;
        if (letter == 'H')
            a->holder = (pid_t)digits(text + 1);
        snprintf(a->step, sizeof(a->step), "%s", letter == 'S' ? text + 1 : "");
        if (!quiet && (letter == 'U' || letter == 'D'))
            say_waiting(a, letter == 'U' ? "light" : "full");
    }
    return letter;
}

/* Without an interpreter there is nothing to wait for but the program, and the server is told so.
 */
static bool owes_word(const struct ahead *a)
{
    return a->hook_fd < 0 && (!a->ready || (a->named && !a->full));
}

void ahead_await(struct ahead *a, const struct envelope *v)
{
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = a->signal_fd, .events = POLLIN},
                             {.fd = a->hook_fd, .events = POLLIN}};
        bool owing = !v->begun && owes_word(a);

        if (poll(p, 3, owing ? 0 : -1) < 0)
            continue;
        if (p[1].revents)
            reap(a);
        if (p[2].revents && a->hook_fd >= 0 && ahead_listen(a, v->begun) < 0)
            drop_hook(a);
        if (p[0].revents)
            return;
        if (owing)
            say_waiting(a, a->ready ? "full" : "light");
    }
}

void ahead_preload(struct ahead *a, const char *names)
{
    char packet[NAMES_MAX + 2];
    int len = snprintf(packet, sizeof(packet), "P%s", names);

    a->named = true;
    if (a->hook_fd >= 0 && len < (int)sizeof(packet))
        send(a->hook_fd, packet, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
}
