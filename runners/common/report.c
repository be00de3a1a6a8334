#include "runners/common/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Where the kernel shows inside of the container what it counts: version 2 of control groups, and
 * version 1. */
#define VERSIONS 2

static const char *const peak_files[VERSIONS] = {
    "/sys/fs/cgroup/memory.peak", /* since Linux 5.19 */
    "/sys/fs/cgroup/memory/memory.max_usage_in_bytes",
};
static const char *const event_files[VERSIONS] = {
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
};
static const char *const used_files[VERSIONS] = {
    "/sys/fs/cgroup/memory.stat",
    "/sys/fs/cgroup/memory/memory.stat",
};
static const char *const quota_files[VERSIONS] = {
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
};

/* The first file that exists; text is "" when there is none. */
static void read_first(const char *const paths[VERSIONS], char *text, size_t size)
{
    if (!read_text(paths[0], text, size) && !read_text(paths[1], text, size))
        text[0] = '\0';
}

/* The number behind "key " at the start of a line. */
static uint64_t field(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return digits(line + len + 1);
    }
    return 0;
}

uint64_t report_peak_memory(void)
{
    char text[64];

    read_first(peak_files, text, sizeof(text));
    return digits(text);
}

void report_quota(char *text, size_t size)
{
    read_first(quota_files, text, size);
}

uint64_t report_oom_kills(void)
{
    char text[1024];

    read_first(event_files, text, sizeof(text));
    return field(text, "oom_kill");
}

/* What its processes have for themselves: the page cache can be dropped. With files in memory if
 * those are asked for. */
static uint64_t memory_used(bool files)
{
    char text[1024];

    read_first(used_files, text, sizeof(text));
    /* Each version has one of the first two. */
    return field(text, "anon") + field(text, "rss") + (files ? field(text, "shmem") : 0);
}

uint64_t report_memory(void)
{
    return memory_used(false);
}

uint64_t report_charged(void)
{
    return memory_used(true);
}

static uint64_t micros(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

uint64_t rusage_us(const struct rusage *used)
{
    return micros(used->ru_utime) + micros(used->ru_stime);
}

uint64_t report_children_us(void)
{
    struct rusage children = {0};

    getrusage(RUSAGE_CHILDREN, &children);
    return rusage_us(&children);
}

uint64_t report_process_us(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

size_t report_write(char *text, const struct report *r)
{
    int signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;

    return (size_t)snprintf(
        text, REPORT_MAX,
        "{\"exitCode\":%d,\"signal\":%d,\"cpuUs\":%" PRIu64 ",\"peakMemoryBytes\":%" PRIu64
        ",\"oomKills\":%" PRIu64 ",\"timedOut\":%s%s}",
        signal ? -1 : WEXITSTATUS(r->status), signal, r->cpu_us, r->peak_memory_bytes, r->oom_kills,
        r->timed_out ? "true" : "false", r->left);
}
