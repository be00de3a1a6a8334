#include "config.h"

#include "common/base/purpose.h"

#include "common/base/auto.h"
#include "common/base/metrics.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM  "sandcgi"
#define COMM_MAX 15 /* bytes that the kernel keeps of a name */

static const char *const names[PURPOSE_COUNT] = {
    [PURPOSE_RUN] = "run",         [PURPOSE_START] = "start",
    [PURPOSE_LOAD] = "load",       [PURPOSE_WIPE] = "wipe",
    [PURPOSE_SANDBOX] = "sandbox", [PURPOSE_WAITING] = "waiting",
    [PURPOSE_OTHER] = "other",     [PURPOSE_MASTER] = "master",
    [PURPOSE_WORKER] = "worker",   [PURPOSE_HUB] = "hub",
    [PURPOSE_OAUTH] = "oauth",     [PURPOSE_METRICS] = "metrics",
    [PURPOSE_BROKER] = "broker",   [PURPOSE_HELPER] = "helper",
    [PURPOSE_JOB] = "job",         [PURPOSE_SUPERVISOR] = "supervisor",
};

static struct {
    enum purpose purpose;
    pid_t pid; /* 0: it has not said */
    uint64_t counted_us;
} self;

const char *purpose_name(enum purpose purpose)
{
    return names[purpose];
}

static void process_name(enum purpose purpose, char out[COMM_MAX + 1])
{
    snprintf(out, COMM_MAX + 1, PROGRAM "-%.*s", (int)(COMM_MAX - sizeof PROGRAM), names[purpose]);
}

enum purpose purpose_of_process(const char *comm)
{
    char name[COMM_MAX + 1];

    for (enum purpose p = PURPOSE_MASTER; p < PURPOSE_COUNT; p++) {
        process_name(p, name);
        if (strcmp(comm, name) == 0)
            return p;
    }
    return strcmp(comm, PROGRAM) == 0 ? PURPOSE_MASTER : PURPOSE_COUNT; /* the guard */
}

void purpose_set(enum purpose purpose)
{
    char name[COMM_MAX + 1];

    process_name(purpose, name);
    prctl(PR_SET_NAME, name);
    if (self.pid != getpid())
        self.counted_us = 0;
    self.purpose = purpose;
    self.pid = getpid();
}

void purpose_add_cpu(enum purpose purpose, uint64_t us)
{
    char labels[32];

    snprintf(labels, sizeof labels, "purpose=\"%s\"", names[purpose]);
    metrics_add(METRIC_CPU, labels, us);
}

void purpose_count(void)
{
    struct timespec t;

    if (!metrics_are_counted() || self.pid != getpid() ||
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
        return;
    uint64_t us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    if (us > self.counted_us)
        purpose_add_cpu(self.purpose, us - self.counted_us);
    self.counted_us = us;
}

void purpose_count_end(void)
{
    struct rusage u;

    purpose_count();
    if (!metrics_are_counted() || self.pid != getpid() || getrusage(RUSAGE_CHILDREN, &u) < 0)
        return;
    purpose_add_cpu(self.purpose,
                    ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * 1000000 +
                        (uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec);
}
