/* Whether a container is as it was before a run: what is left of the processes, and what the kernel
 * keeps for them. Programs have our user, so they can change much of other processes from outside.
 */
#include "runners/common/entry.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Memory may be charged that no process has: the kernel's counters lag by some pages for each
 * processor. */
#define UNEXPLAINED_MAX (16u << 20)
/* How long sockets and memory of processes that have ended may still be there. */
#define SETTLE_MS 500
#define PAUSE_NS  1000000
/* Our descriptors have low numbers. */
#define FDS_MAX 64
/* Two numbers. */
#define QUOTA_MAX 64

#define IOPRIO_OF_PROCESS 1

/* What other processes of the same user can change of one. Zeroed before, so that it can be
 * compared as bytes. */
struct traits {
    struct rlimit limits[RLIM_NLIMITS];
    cpu_set_t processors;
    struct {
        char attributes[128]; /* struct sched_attr, of whatever length the kernel has */
        int policy, nice;
        long io;
    } scheduling;
    char oom_score_adj[16];
    uint64_t started;
};

static struct {
    struct traits entry;
    struct {
        pid_t pid; /* 0 = none */
        struct traits traits;
    } templates[TEMPLATE_N];
    uint64_t oom_kills;
    char quota[QUOTA_MAX];   /* "": the kernel does not tell */
    long sockets, time_wait; /* -1: the kernel does not tell */
} start;

static void traits_read(struct traits *t, pid_t pid)
{
    char path[48], text[1024];
    const char *at;

    memset(t, 0, sizeof(*t));
    for (int i = 0; i < RLIM_NLIMITS; i++)
        prlimit(pid, (__rlimit_resource_t)i, NULL, &t->limits[i]);
    sched_getaffinity(pid, sizeof(t->processors), &t->processors);
    syscall(SYS_sched_getattr, pid, t->scheduling.attributes, sizeof(t->scheduling.attributes), 0);
    t->scheduling.policy = sched_getscheduler(pid);
    t->scheduling.nice = getpriority(PRIO_PROCESS, (id_t)pid);
    t->scheduling.io = syscall(SYS_ioprio_get, IOPRIO_OF_PROCESS, pid);
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
    if (!read_text(path, t->oom_score_adj, sizeof(t->oom_score_adj)))
        t->oom_score_adj[0] = '\0';
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    at = read_text(path, text, sizeof(text)) ? strrchr(text, ')') : NULL;
    for (int blanks = 0; at && *at && blanks < 20; at++)
        blanks += *at == ' ';
    t->started = at ? digits(at) : 0;
}

/* What of them has changed; NULL = nothing. */
static const char *traits_differ(const struct traits *a, const struct traits *b)
{
    if (memcmp(a->limits, b->limits, sizeof(a->limits)) != 0)
        return "limits";
    if (memcmp(&a->processors, &b->processors, sizeof(a->processors)) != 0)
        return "processors";
    if (memcmp(&a->scheduling, &b->scheduling, sizeof(a->scheduling)) != 0)
        return "scheduling";
    if (memcmp(a->oom_score_adj, b->oom_score_adj, sizeof(a->oom_score_adj)) != 0)
        return "oom_score_adj";
    return a->started == b->started ? NULL : "start";
}

/* The text behind the name in one of the lines, and behind blanks; NULL: there is none. */
static const char *line_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    if (at)
        at += strlen(name);
    return at ? at + strspn(at, " \t") : NULL;
}

/* ---- what the kernel keeps ---- */

/* The sockets of the container, without ours and their other ends. */
static void sockets_read(long *sockets, long *time_wait)
{
    char text[1024];
    const char *used = NULL, *waiting = NULL;
    struct stat st;

    if (read_text("/proc/net/sockstat", text, sizeof(text))) {
        used = line_of(text, "sockets: used");
        waiting = line_of(text, " tw");
    }
    *time_wait = waiting ? (long)digits(waiting) : -1;
    *sockets = used ? (long)digits(used) : -1;
    for (int fd = STDERR_FILENO + 1; used && fd < FDS_MAX; fd++)
        *sockets -= fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? 2 : 0;
}

/* Whether there are more than at the start, or the kernel does not tell any more. Sockets of the
 * engine, which has just made the network, may have counted then. */
static bool is_more(long now, long *least)
{
    if (now >= 0 && now < *least)
        *least = now;
    return now < 0 ? *least >= 0 : now > *least;
}

/* Memory that the process has for itself. */
static uint64_t own_memory(pid_t pid)
{
    char path[32], text[4096];
    const char *anon, *shared;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (pid == 0 || !read_text(path, text, sizeof(text)))
        return 0;
    anon = line_of(text, "\nRssAnon:");
    shared = line_of(text, "\nRssShmem:");
    return ((anon ? digits(anon) : 0) + (shared ? digits(shared) : 0)) * 1024;
}

/* The first language's two have pages in common, which count twice: some megabytes, by which the
 * proof is weaker. */
static uint64_t templates_memory(void)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < TEMPLATE_N; i++)
        bytes += own_memory(start.templates[i].pid);
    return bytes;
}

/* What of that is not as it was; NULL = nothing. */
static const char *kernel_differs(void)
{
    char quota[sizeof(start.quota)];
    long sockets, time_wait;

    report_quota(quota, sizeof(quota));
    if (strcmp(quota, start.quota) != 0)
        return "its limit of processor time has changed";
    if (report_oom_kills() != start.oom_kills)
        return "it ran out of memory";
    sockets_read(&sockets, &time_wait);
    if (is_more(sockets, &start.sockets))
        return "sockets are left";
    if (is_more(time_wait, &start.time_wait))
        return "connections wait for their end";
    if (report_charged() > own_memory(getpid()) + templates_memory() + UNEXPLAINED_MAX)
        return "memory is left";
    return NULL;
}

/* ---- the templates ---- */

/* Whether the line is there and tells anything but zeros. */
static bool is_set(const char *status, const char *name)
{
    const char *at = line_of(status, name);

    return at && at[strspn(at, "0")] != '\n';
}

/* What is wrong with one; NULL = nothing. */
static const char *template_differs(size_t which)
{
    const pid_t pid = start.templates[which].pid;
    char path[32], status[4096];
    struct traits now;
    const char *state;

    if (pid == 0)
        return NULL;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (!read_text(path, status, sizeof(status)))
        return "state";
    state = line_of(status, "\nState:");
    if (!state || strchr("TtZXx", *state))
        return "state";
    if (is_set(status, "\nTracerPid:"))
        return "tracer";
    if (is_set(status, "\nSigPnd:") || is_set(status, "\nShdPnd:"))
        return "signals";
    traits_read(&now, pid);
    return traits_differ(&start.templates[which].traits, &now);
}

/* ---- the proof ---- */

void proof_note(void)
{
    traits_read(&start.entry, getpid());
    start.oom_kills = report_oom_kills();
    report_quota(start.quota, sizeof(start.quota));
    sockets_read(&start.sockets, &start.time_wait);
}

void proof_note_sockets(void)
{
    long sockets, time_wait;

    sockets_read(&sockets, &time_wait);
    is_more(sockets, &start.sockets);
    is_more(time_wait, &start.time_wait);
}

void proof_note_templates(const pid_t templates[TEMPLATE_N])
{
    for (size_t i = 0; i < TEMPLATE_N; i++) {
        if (templates[i] != 0 && templates[i] != start.templates[i].pid)
            traits_read(&start.templates[i].traits, templates[i]);
        start.templates[i].pid = templates[i];
    }
}

bool proof(char *why)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t until = clock_ms() + SETTLE_MS;
    struct traits now;
    const char *what;

    traits_read(&now, getpid());
    what = traits_differ(&start.entry, &now);
    if (what) {
        snprintf(why, CHILD_WHY_MAX, "of the entry program, the %s changed", what);
        return false;
    }
    for (size_t i = 0; !what && i < TEMPLATE_N; i++)
        what = template_differs(i);
    if (what) {
        snprintf(why, CHILD_WHY_MAX, "of the waiting interpreter, the %s changed", what);
        return false;
    }
    while ((what = kernel_differs()) && clock_ms() < until)
        nanosleep(&pause, NULL);
    snprintf(why, CHILD_WHY_MAX, "%s", what ? what : "");
    return !what;
}
