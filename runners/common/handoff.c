#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Whether the variable would make another interpreter of the one that started without it. */
static bool variable_counts(const char *list, const char *entry)
{
    size_t len = strcspn(entry, "=");
    char *name;
    const char *now;
    bool same;

    if (!options_list_has(list, entry, len))
        return false;
    name = strndup(entry, len);
    now = name ? getenv(name) : NULL;
    same = now && strcmp(now, entry + len + 1) == 0;
    free(name);
    return !same;
}

/* Whether the code has one of the words in it, a comma or blanks between them. */
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

/* What is being imported is needed when the code has the name's first part in it. */
static bool code_names(const char *script, const char *name)
{
    char first[NAME_MAX + 1];
    size_t len = strcspn(name, ".");

    if (len > NAME_MAX)
        return true;
    memcpy(first, name, len);
    first[len] = '\0';
    return code_has(script, first);
}

/* Whether the variables of the program can be given to the interpreter that waits. */
static bool variables_fit(const struct options *o, const struct envelope *v)
{
    for (size_t i = 0; i < v->n_env; i++) {
        if (variable_counts(o->counts, v->env[i]))
            return false;
    }
    if (!o->starters || !code_has(o->script, o->starters))
        return true;
    for (size_t i = 0; i < v->n_env; i++) {
        if (variable_counts("*", v->env[i]))
            return false;
    }
    return true;
}

/* Whether the program can do with the interpreter that waits, as far as we can see. */
static bool fits(struct ahead *a, const struct envelope *v)
{
    if (a->child.pid == 0 || a->hook_fd < 0 || ahead_listen(a, true) != 0)
        return false;
    if (!variables_fit(a->options, v) || ahead_spoilt(a->options))
        return false;
    return !a->step[0] || code_names(a->options->script, a->step);
}

/* Puts a letter and a text with its NUL behind the packet; false when it has no room left. */
static bool pack(char *packet, size_t *len, char letter, const char *text)
{
    size_t size = strlen(text) + 1;

    if (size + 1 > PACKET_MAX - *len)
        return false;
    packet[(*len)++] = letter;
    memcpy(packet + *len, text, size);
    *len += size;
    return true;
}

/* False when the packet would be too long, or nobody takes it. */
static bool send_program(const struct ahead *a, const struct envelope *v)
{
    static char packet[PACKET_MAX] = "G";
    size_t len = 1;

    for (size_t i = 0; i < v->n_args; i++) {
        if (!pack(packet, &len, 'A', v->args[i]))
            return false;
    }
    for (size_t i = 0; i < v->n_env; i++) {
        if (!pack(packet, &len, 'E', v->env[i]))
            return false;
    }
    return send(a->hook_fd, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
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
 * False when the interpreter has said no, or died before it said yes. An interpreter that has the
 * program and does not answer is left alone: killing it now could be too late to have been in time,
 * and the program must not run twice. The deadline ends it as it ends any program.
 */
static bool await_answer(struct ahead *a, const struct envelope *v)
{
    for (;;) {
        int64_t left = v->hard_ms ? v->went_at_ms + (int64_t)v->hard_ms - clock_ms() : -1;
        struct pollfd p[] = {{.fd = a->hook_fd, .events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};

        if (v->hard_ms && left <= 0)
            return true;
        if (poll(p, 2, left > INT32_MAX ? INT32_MAX : (int)left) < 0)
            continue;
        if (p[0].revents) {
            int answer = ahead_listen(a, true);

            if (answer != 0)
                return answer == 'Y';
        }
        if (p[1].revents && !server_is_there(p[1].revents))
            return true;
    }
}

/* The interpreter that waited in vain: it and its memory go while the program already runs. */
static void discard(struct ahead *a, struct ending *end)
{
    if (a->child.pid > 0) {
        kill(a->child.pid, SIGKILL);
        close(a->child.out_fd);
        close(a->child.err_fd);
    }
    if (a->holder > 0)
        kill(a->holder, SIGKILL);
    end->discarded = a->child.pid;
    a->holder = 0;
}

bool ahead_claim(struct ahead *a, const struct envelope *v, struct ending *end)
{
    struct rusage before = {0};
    bool taken = fits(a, v);
    uint64_t waiting_us = taken ? processor_time_us(a->child.pid) : 0;

    getrusage(RUSAGE_CHILDREN, &before);
    end->used_us = rusage_us(&before);
    end->ooms = report_oom_kills();
    taken = taken && send_program(a, v) && await_answer(a, v);
    if (taken)
        end->used_us += waiting_us;
    else
        discard(a, end);
    end->holder = a->holder;
    if (a->hook_fd >= 0)
        close(a->hook_fd);
    a->hook_fd = -1;
    return taken;
}
