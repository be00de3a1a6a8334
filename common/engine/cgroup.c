#include "config.h"

#include "common/engine/cgroup.h"

#include "common/base/auto.h"
#include "common/base/parse.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 256 /* of a file; what counts stands at its beginning */

/* Below the hierarchy's root, around the container's id. */
static const struct place {
    bool own; /* of a rootless engine: in the slice of the account */
    const char *before, *behind;
} places[] = {
    {false, "docker/", ""},
    {false, "system.slice/docker-", ".scope"},
    {false, "machine.slice/libpod-", ".scope"},
    {false, "libpod_parent/libpod-", ""},
    {true, "libpod-", ".scope"},
    {true, "docker-", ".scope"},
};

/* Version 2 first. */
static const struct source {
    const char *hierarchy, *file;
} sources[][2] = {
    [CGROUP_CPU_US] = {{"", "cpu.stat"}, {"/cpuacct", "cpuacct.usage"}},
    [CGROUP_MEMORY] = {{"", "memory.current"}, {"/memory", "memory.usage_in_bytes"}},
};

int cgroup_open(const char *root, enum cgroup_count count, const char *id)
{
    const unsigned uid = geteuid();
    char own[96], path[PATH_MAX];
    int fd = -1;

    snprintf(own, sizeof own, "user.slice/user-%u.slice/user@%u.service/user.slice/", uid, uid);
    for (size_t i = 0; i < ARRAY_LEN(sources[count]) * ARRAY_LEN(places) && fd < 0; i++) {
        const struct source *source = &sources[count][i / ARRAY_LEN(places)];
        const struct place *place = &places[i % ARRAY_LEN(places)];
        int n = snprintf(path, sizeof path, "%s%s/%s%s%s%s/%s", root, source->hierarchy,
                         place->own ? own : "", place->before, id, place->behind, source->file);
        fd = n < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    }
    return fd;
}

bool cgroup_read(int fd, enum cgroup_count count, uint64_t *out)
{
    static const char v2_cpu[] = "usage_usec ";
    char text[TEXT_MAX];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    if (n <= 0)
        return false;
    text[n] = '\0';
    bool is_v2_cpu = strncmp(text, v2_cpu, sizeof v2_cpu - 1) == 0;
    if (parse_leading_u64(text + (is_v2_cpu ? sizeof v2_cpu - 1 : 0), out) < 0)
        return false;
    if (count == CGROUP_CPU_US && !is_v2_cpu)
        *out /= 1000; /* cpuacct.usage: nanoseconds */
    return true;
}
