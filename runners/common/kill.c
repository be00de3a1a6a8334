#include "runners/common/entry.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 8192
/* Each finds only what was forked while the last one looked. */
#define PASSES_MAX 100
/* How often, and how long at once, forks that are under way are waited for. */
#define PAUSES_MAX 20
#define PAUSE_NS   1000000

static pid_t spared[TEMPLATE_N];

void kill_spare(size_t place, pid_t pid)
{
    spared[place] = pid;
}

static bool is_spared(pid_t pid)
{
    size_t place = 0;

    while (place < TEMPLATE_N && spared[place] != pid)
        place++;
    return place < TEMPLATE_N;
}

/* Our children, each sent the signal (0 = none). True if there was one, or if they cannot be
 * listed. */
static bool children_signal(int number)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    bool found = !f;
    pid_t pid;

    while (f && fscanf(f, "%d", &pid) == 1) {
        if (!is_spared(pid)) {
            found = true;
            kill(pid, number);
        }
    }
    if (f)
        fclose(f);
    return found;
}

/* The same with all processes of the container. They are listed by rising pid, so that what is
 * forked meanwhile is met, too, unless the pids begin anew. */
static bool processes_signal(int number)
{
    const struct dirent *d;
    DIR *dir = opendir("/proc");
    bool found = !dir;

    while (dir && (d = readdir(dir))) {
        uint64_t pid = digits(d->d_name);

        if (pid > 1 && !is_spared((pid_t)pid)) {
            found = true;
            kill((pid_t)pid, number);
        }
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Where we are not PID 1 (an engine's own init in front of us, tests), -1 would reach strangers.
 * The children of our children become ours when those die, and are met in the caller's next round.
 */
void kill_all(void)
{
    static const pid_t none[TEMPLATE_N];

    if (getpid() != 1)
        children_signal(SIGKILL);
    else if (memcmp(spared, none, sizeof(spared)) != 0)
        processes_signal(SIGKILL);
    else
        kill(-1, SIGKILL);
}

bool others_left(void)
{
    return getpid() == 1 ? processes_signal(0) : children_signal(0);
}

void kill_and_reap_all(int64_t until_ms)
{
    struct timespec pause = {.tv_nsec = PAUSE_NS};

    memset(spared, 0, sizeof(spared));
    kill_all();
    if (getpid() == 1)
        return; /* the rest dies with us */
    do {
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0)
            return;
        nanosleep(&pause, NULL);
        kill_all();
    } while (clock_ms() < until_ms);
}

/* ---- a process and what belongs to it ---- */

struct process {
    pid_t pid, parent, session;
    bool rests; /* stopped or dead: it forks no more */
    bool ours;
};

static struct process table[PROCESSES_MAX];
/* What has been signalled: its session belongs to the tree, also when its parent is gone. */
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

    snprintf(path, sizeof(path), "/proc/%.12s/stat", pid);
    at = read_text(path, text, sizeof(text)) ? strrchr(text, ')') : NULL;
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

static const struct process *find_pid(const struct process *list, size_t n, pid_t pid)
{
    for (size_t i = n; i > 0; i--) {
        if (list[i - 1].pid == pid)
            return &list[i - 1];
    }
    return NULL;
}

/* Our own session tells nothing: a child is in it until it has made its own. */
static bool session_seen(pid_t session)
{
    for (size_t i = 0; session != getsid(0) && i < n_seen; i++) {
        if (seen[i].session == session)
            return true;
    }
    return false;
}

/* Marks what belongs to root until there is no more. */
static void mark_tree(size_t n, pid_t root)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            struct process *p = &table[i];
            const struct process *parent;

            if (p->ours || p->pid == getpid())
                continue;
            parent = find_pid(table, n, p->parent);
            p->ours = p->pid == root || p->session == root || (parent && parent->ours) ||
                      session_seen(p->session);
            more |= p->ours;
        }
    }
}

/* Looks once, and signals the processes that were not seen before. Returns how many those are; busy
 * is how many of the others can still fork. */
static size_t signal_new(pid_t root, int number, size_t *busy)
{
    size_t n = read_processes(), before = n_seen;

    *busy = 0;
    mark_tree(n, root);
    for (size_t i = 0; i < n; i++) {
        if (!table[i].ours)
            continue;
        if (find_pid(seen, n_seen, table[i].pid)) {
            *busy += !table[i].rests;
        } else if (n_seen < PROCESSES_MAX) {
            kill(table[i].pid, number);
            seen[n_seen++] = table[i];
        }
    }
    return n_seen - before;
}

/*
 * A fork that had begun when the signal came still makes its child, and /proc does not show it
 * before. So processes that are not at rest yet are waited for, a while; a child that is made later
 * is found by its session.
 */
void tree_kill(pid_t root)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    size_t busy, passes, pauses = 0, stopped;

    n_seen = 0;
    for (passes = 0; passes < PASSES_MAX; passes++) {
        if (signal_new(root, SIGSTOP, &busy) > 0)
            continue;
        if (busy == 0 || ++pauses > PAUSES_MAX)
            break;
        nanosleep(&pause, NULL);
    }
    stopped = n_seen;
    for (size_t i = 0; i < stopped; i++)
        kill(seen[i].pid, SIGKILL);
    for (passes = 0; passes < PASSES_MAX && signal_new(root, SIGKILL, &busy) > 0; passes++)
        ;
}
