#include "runners/common/entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* The container's memory as the kernel shows it inside; the first file that exists counts. */
static const char *const peak_files[] = {
    "/sys/fs/cgroup/memory.peak",                      /* v2, since Linux 5.19 */
    "/sys/fs/cgroup/memory/memory.max_usage_in_bytes", /* v1 */
};
static const char *const event_files[] = {
    "/sys/fs/cgroup/memory.events",             /* v2 */
    "/sys/fs/cgroup/memory/memory.oom_control", /* v1 */
};

/* What its processes have for themselves: the page cache can be dropped. */
static const struct {
    const char *path, *key;
} used_files[] = {
    {"/sys/fs/cgroup/memory.stat", "anon"},       /* v2 */
    {"/sys/fs/cgroup/memory/memory.stat", "rss"}, /* v1 */
};

static const char *const quota_files[] = {
    "/sys/fs/cgroup/cpu.max",              /* v2 */
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", /* v1 */
};

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

    for (size_t i = 0; i < sizeof(peak_files) / sizeof(peak_files[0]); i++) {
        if (read_text(peak_files[i], text, sizeof(text)) && digits(text) > 0)
            return digits(text);
    }
    return 0;
}

void report_quota(char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(quota_files) / sizeof(quota_files[0]); i++) {
        if (read_text(quota_files[i], text, size))
            return;
    }
}

uint64_t report_oom_kills(void)
{
    char text[1024];

    for (size_t i = 0; i < sizeof(event_files) / sizeof(event_files[0]); i++) {
        if (read_text(event_files[i], text, sizeof(text)))
            return field(text, "oom_kill");
    }
    return 0;
}

/* With files in memory if those are asked for. */
static uint64_t memory_used(bool files)
{
    char text[1024];

    for (size_t i = 0; i < sizeof(used_files) / sizeof(used_files[0]); i++) {
        if (read_text(used_files[i].path, text, sizeof(text)))
            return field(text, used_files[i].key) + (files ? field(text, "shmem") : 0);
    }
    return 0;
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

size_t report_write(char *text, const struct report *r)
{
    int signal = WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;

    return (size_t)snprintf(text, REPORT_MAX,
                            "{\"exitCode\":%d,\"signal\":%d,\"cpuUs\":%" PRIu64
                            ",\"peakMemoryBytes\":%" PRIu64 ",\"oomKills\":%" PRIu64
                            ",\"timedOut\":%s}",
                            signal ? -1 : WEXITSTATUS(r->status), signal, r->cpu_us,
                            r->peak_memory_bytes, r->oom_kills, r->timed_out ? "true" : "false");
}
