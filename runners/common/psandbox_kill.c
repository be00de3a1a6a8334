#include "runners/common/psandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 8192
/* Each finds only what was forked while the last one looked. */
#define PASSES_MAX 100
/* How often, and how long at once, forks that are under way are waited for. */
#define NAPS_MAX 20
#define NAP_NS   1000000

struct process {
    pid_t pid, parent, session;
    bool rests; /* it forks no more: stopped, or dead */
    bool ours;
};

static struct process table[PROCESSES_MAX];
/* What has been signalled: whoever has the session of one of these is theirs, also when its parent
 * is gone. */
static struct process seen[PROCESSES_MAX];
static size_t n_seen;

/* The number that begins behind n blanks. */
static pid_t number_behind(const char *at, int blanks)
{
    for (; *at && blanks > 0; at++)
        blanks -= *at == ' ';
    return (pid_t)digits(at);
}

/* Reads /proc/<pid>/stat: "pid (name) state parent group session …", the name of any bytes. */
static bool read_process(const char *pid, struct process *out)
{
    char path[32], text[512];
    const char *at;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%.12s/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    at = strrchr(text, ')');
    if (!at)
        return false;
    *out = (struct process){.pid = (pid_t)digits(pid),
                            .parent = number_behind(at, 2),
                            .session = number_behind(at, 4),
                            .rests = at[1] == ' ' && at[2] != '\0' && strchr("TtZXx", at[2])};
    return true;
}

static size_t read_processes(void)
{
    const struct dirent *d;
    DIR *dir = opendir("/proc");
    size_t n = 0;

    while (dir && n < PROCESSES_MAX && (d = readdir(dir))) {
        if (digits(d->d_name) > 0 && read_process(d->d_name, &table[n]))
            n++;
    }
    if (dir)
        closedir(dir);
    return n;
}

static bool ours(size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++) {
        if (table[i].pid == pid)
            return table[i].ours;
    }
    return false;
}

static bool seen_before(pid_t pid)
{
    for (size_t i = n_seen; i > 0; i--) {
        if (seen[i - 1].pid == pid)
            return true;
    }
    return false;
}

/* A child that has not its own session yet is in that of this program: it tells nothing. */
static bool session_seen(pid_t session)
{
    if (session == getsid(0))
        return false;
    for (size_t i = 0; i < n_seen; i++) {
        if (seen[i].session == session)
            return true;
    }
    return false;
}

/* Marks what belongs to root until there is no more. */
static void mark(size_t n, pid_t root)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            struct process *p = &table[i];

            if (p->ours || p->pid == getpid())
                continue;
            p->ours = p->pid == root || p->session == root || ours(n, p->parent) ||
                      session_seen(p->session);
            more |= p->ours;
        }
    }
}

/* Looks once; those who were not seen before get the signal. How many those are; busy: how many of
 * the others can still fork. */
static size_t signal_new(pid_t root, int number, size_t *busy)
{
    size_t n = read_processes(), before = n_seen;

    *busy = 0;
    mark(n, root);
    for (size_t i = 0; i < n; i++) {
        if (!table[i].ours)
            continue;
        if (seen_before(table[i].pid)) {
            *busy += !table[i].rests;
        } else if (n_seen < PROCESSES_MAX) {
            kill(table[i].pid, number);
            seen[n_seen++] = table[i];
        }
    }
    return n_seen - before;
}

/*
 * A fork that had begun when the signal came still makes its child, and no look at /proc shows it
 * before: so those who are not at rest are waited for, a while. What one of them makes after that
 * is found by its session: the dead fork no more.
 */
void tree_kill(pid_t root)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    size_t busy, passes, naps = 0, stopped;

    n_seen = 0;
    for (passes = 0; passes < PASSES_MAX; passes++) {
        if (signal_new(root, SIGSTOP, &busy) > 0)
            continue;
        if (busy == 0 || ++naps > NAPS_MAX)
            break;
        nanosleep(&nap, NULL);
    }
    stopped = n_seen;
    for (size_t i = 0; i < stopped; i++)
        kill(seen[i].pid, SIGKILL);
    for (passes = 0; passes < PASSES_MAX && signal_new(root, SIGKILL, &busy) > 0; passes++)
        ;
}
