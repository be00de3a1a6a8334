#include "runners/common/stay.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROCESSES_MAX 8192
/* Each finds only what was forked while the last one looked. */
#define PASSES_MAX 100

struct process {
    pid_t pid, parent, session;
    bool ours;
};

static struct process table[PROCESSES_MAX];

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
    *out = (struct process){
        .pid = (pid_t)digits(pid), .parent = number_behind(at, 2), .session = number_behind(at, 4)};
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
            p->ours = p->pid == root || p->session == root || ours(n, p->parent);
            more |= p->ours;
        }
    }
}

static bool seen_before(const pid_t *seen, size_t n, pid_t pid)
{
    while (n > 0) {
        if (seen[--n] == pid)
            return true;
    }
    return false;
}

void tree_kill(pid_t root)
{
    static pid_t seen[PROCESSES_MAX];
    size_t n_seen = 0, before, n;
    int passes = 0;

    do {
        before = n_seen;
        n = read_processes();
        mark(n, root);
        for (size_t i = 0; i < n; i++) {
            if (!table[i].ours || seen_before(seen, before, table[i].pid))
                continue;
            kill(table[i].pid, SIGSTOP);
            if (n_seen < PROCESSES_MAX)
                seen[n_seen++] = table[i].pid;
        }
    } while (n_seen > before && ++passes < PASSES_MAX);
    for (size_t i = 0; i < n_seen; i++)
        kill(seen[i], SIGKILL);
}
