#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIER_MAX 32 /* of a frame W */

/* Between the words of a list on the command line. */
#define LIST_BREAKS ", "

/* Whether the word is in a list like "A,B_* C", in which "B_*" stands for all that start so. */
static bool list_has(const char *list, const char *word, size_t len)
{
    const char *at = list ? list + strspn(list, LIST_BREAKS) : "";

    while (*at) {
        size_t n = strcspn(at, LIST_BREAKS);
        bool prefix = at[n - 1] == '*';
        size_t same = prefix ? n - 1 : n;

        if ((prefix ? len >= same : len == same) && memcmp(at, word, same) == 0)
            return true;
        at += n;
        at += strspn(at, LIST_BREAKS);
    }
    return false;
}

static void hook_close(struct warm *w)
{
    if (w->hook_fd >= 0)
        close(w->hook_fd);
    w->hook_fd = -1;
}

/* Whether the working directory has a file that the interpreter reads when it starts. */
static bool files_forbid(const struct options *o)
{
    const struct dirent *d;
    bool found = false;
    DIR *dir = o->files ? opendir(o->cwd) : NULL;

    if (!dir)
        return false;
    while (!found && (d = readdir(dir)))
        found = list_has(o->files, d->d_name, strlen(d->d_name));
    closedir(dir);
    return found;
}

/* ---- start ---- */

void warm_start(struct warm *w)
{
    const struct options *o = w->options;
    char **argv = argv_new(o->command, o->option, NULL, 0);
    char *env[2];
    struct child_plan plan = {.argv = argv, .env = env, .cwd = o->cwd, .input_fd = w->input->fd};
    const char *old = getenv("LD_PRELOAD"); /* what the image preloads stays, behind ours */
    char *preload = NULL;
    char why[CHILD_WHY_MAX];
    int pair[2];

    w->hook_fd = -1;
    if (o->object &&
        asprintf(&preload, "LD_PRELOAD=%s%s%s", o->object, old ? ":" : "", old ? old : "") < 0)
        preload = NULL;
    if (preload)
        env[plan.n_env++] = preload;
    if (o->extra)
        env[plan.n_env++] = o->extra;
    if (o->warm && argv && !files_forbid(o) &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        plan.hook_fd = pair[1];
        if (child_start(&w->child, &plan, why) == 0) {
            w->hook_fd = pair[0];
        } else {
            entry_error(0, "%s", why);
            close(pair[0]);
        }
        close(pair[1]);
    }
    free(argv);
    free(preload);
}

/* ---- waiting for the program ---- */

/* No program runs yet: a signal from anywhere stops the container. */
static void warm_reap(struct warm *w)
{
    int stop = signals_read(w->signal_fd, false);
    pid_t pid;

    if (stop) {
        kill_and_reap_all(clock_ms() + DEATH_MS);
        _exit(128 + stop);
    }
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == w->holder)
            w->holder = 0;
        if (pid == w->child.pid) {
            w->child.pid = 0;
            hook_close(w);
        }
    }
}

static void send_tier(struct warm *w)
{
    int len = snprintf(frame_room(), TIER_MAX, "%s %" PRIu64, w->started ? "preloaded" : "started",
                       report_memory());

    w->preloaded = w->started;
    w->started = true;
    frame_begin('W', (size_t)len);
    frame_push();
}

/* Takes one packet if there is one; its letter, 0 = none, -1 = the interpreter's end is closed. */
static int take_packet(struct warm *w, char *text, size_t size)
{
    ssize_t n;

    do {
        n = recv(w->hook_fd, text, size - 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    text[n] = '\0';
    return text[0];
}

/* Handles the packets that have come. 'Y' or 'N' when one of these is next, 0 = no more, -1 = the
 * interpreter's end is closed. quiet: send no frames. */
static int take_packets(struct warm *w, bool quiet)
{
    char text[sizeof(w->step) + 1];
    int letter;

    while ((letter = take_packet(w, text, sizeof(text))) > 0) {
        if (letter == 'Y' || letter == 'N')
            return letter;
        if (letter == 'H')
            w->holder = (pid_t)digits(text + 1);
        snprintf(w->step, sizeof(w->step), "%s", letter == 'S' ? text + 1 : "");
        if (!quiet && letter == (w->started ? 'D' : 'U'))
            send_tier(w);
    }
    return letter;
}

void warm_await_input(struct warm *w, const struct envelope *v)
{
    for (;;) {
        struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = w->signal_fd, .events = POLLIN},
                             {.fd = w->hook_fd, .events = POLLIN}};
        /* Without an interpreter there is nothing to wait for, and the server is told so. */
        bool due = !v->begun && w->hook_fd < 0 && (!w->started || (w->named && !w->preloaded));

        if (poll(p, 3, due ? 0 : -1) < 0)
            continue;
        if (p[1].revents)
            warm_reap(w);
        if (p[2].revents && w->hook_fd >= 0 && take_packets(w, v->begun) < 0)
            hook_close(w);
        if (p[0].revents)
            return;
        if (due)
            send_tier(w);
    }
}

void warm_preload(struct warm *w, const char *names)
{
    char packet[NAMES_MAX + 2];
    int len = snprintf(packet, sizeof(packet), "P%s", names);

    w->named = true;
    if (w->hook_fd >= 0 && len < (int)sizeof(packet))
        send(w->hook_fd, packet, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- handing over the program ---- */

/* Whether the interpreter was started with another value of a variable in the list. */
static bool variable_differs(const char *list, const char *entry)
{
    size_t len = strcspn(entry, "=");
    char *name;
    const char *now;
    bool same;

    if (!list_has(list, entry, len))
        return false;
    name = strndup(entry, len);
    now = name ? getenv(name) : NULL;
    same = now && strcmp(now, entry + len + 1) == 0;
    free(name);
    return !same;
}

/* Whether one of the words is in the code. */
static bool code_has(const char *script, const char *words)
{
    struct stat st;
    void *code = MAP_FAILED;
    bool found = false;
    int fd = open(script, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0)
        code = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (code != MAP_FAILED) {
        for (size_t len; !found && *(words += strspn(words, LIST_BREAKS)); words += len) {
            len = strcspn(words, LIST_BREAKS);
            found = memmem(code, (size_t)st.st_size, words, len) != NULL;
        }
        munmap(code, (size_t)st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* Whether the code may need the import under way: it has the first part of its name. */
static bool code_needs(const char *script, const char *name)
{
    char first[NAME_MAX + 1];
    size_t len = strcspn(name, ".");

    if (len > NAME_MAX)
        return true;
    memcpy(first, name, len);
    first[len] = '\0';
    return code_has(script, first);
}

/* Whether the warm interpreter can take the program, as far as can be told from outside. */
static bool program_fits(struct warm *w, const struct envelope *v)
{
    const struct options *o = w->options;
    const char *variables;

    if (w->child.pid == 0 || w->hook_fd < 0 || take_packets(w, true) != 0 || files_forbid(o))
        return false;
    variables = v->n_env > 0 && o->words && code_has(o->script, o->words) ? "*" : o->variables;
    for (size_t i = 0; i < v->n_env; i++) {
        if (variable_differs(variables, v->env[i]))
            return false;
    }
    /* Waiting for an import under way is worth it only if the code needs it. */
    return !w->step[0] || code_needs(o->script, w->step);
}

/* Puts a letter and a text with its NUL behind the packet; false when it has no room left. */
static bool packet_add(char *packet, size_t *len, char letter, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size + 1 > PACKET_MAX - *len)
        return false;
    packet[(*len)++] = letter;
    memcpy(packet + *len, text, size);
    *len += size;
    return true;
}

/* False when the packet would be too long, or cannot be sent. */
static bool send_program(const struct warm *w, const struct envelope *v)
{
    static char packet[PACKET_MAX] = "G";
    size_t len = 1;
    bool fits = true;

    for (size_t i = 0; fits && i < v->n_args; i++)
        fits = packet_add(packet, &len, 'A', v->args[i]);
    for (size_t i = 0; fits && i < v->n_env; i++)
        fits = packet_add(packet, &len, 'E', v->env[i]);
    return fits && send(w->hook_fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

static uint64_t processor_time_us(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

/*
 * False when the interpreter has said no, or died before it said yes. If it does not answer, we
 * cannot tell whether it has started the program already, which must not run twice; so it is left
 * to the deadline, like any program.
 */
static bool await_answer(struct warm *w, const struct envelope *v)
{
    int64_t hard_at_ms = v->hard_ms ? v->went_at_ms + (int64_t)v->hard_ms : 0;

    for (;;) {
        struct pollfd p[] = {{.fd = w->hook_fd, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};

        if (hard_at_ms && clock_ms() >= hard_at_ms)
            return true;
        if (poll(p, 2, poll_timeout(hard_at_ms)) < 0)
            continue;
        if (p[0].revents) {
            int answer = take_packets(w, true);

            if (answer != 0)
                return answer == 'Y';
        }
        if (p[1].revents && !server_is_there(p[1].revents))
            return true;
    }
}

/* The program is started cold: the warm interpreter and its memory go while it already runs. */
static void warm_discard(struct warm *w, struct ending *end)
{
    if (w->child.pid > 0) {
        kill(w->child.pid, SIGKILL);
        close(w->child.out_fd);
        close(w->child.err_fd);
    }
    if (w->holder > 0)
        kill(w->holder, SIGKILL);
    end->discarded = w->child.pid;
    w->holder = 0;
}

bool warm_hand_over(struct warm *w, const struct envelope *v, struct ending *end)
{
    struct rusage before = {0};
    bool taken = program_fits(w, v);
    uint64_t warm_us = taken ? processor_time_us(w->child.pid) : 0;

    getrusage(RUSAGE_CHILDREN, &before);
    end->used_us = rusage_us(&before);
    end->ooms = report_oom_kills();
    taken = taken && send_program(w, v) && await_answer(w, v);
    if (taken)
        end->used_us += warm_us;
    else
        warm_discard(w, end);
    end->holder = w->holder;
    hook_close(w);
    return taken;
}
