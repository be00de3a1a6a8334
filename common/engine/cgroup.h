/*
 * What the kernel counts for a container, read from its cgroup: without the engine, in
 * microseconds, as long as the container lives. The cgroup is looked for where Docker and Podman
 * make it; that of an engine on another host, or in another place (--cgroup-parent), is not found.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

enum cgroup_count {
    CGROUP_CPU_US, /* processor time of all that ran in it */
    CGROUP_MEMORY, /* bytes that are charged to it, page cache included */
};

/* root: CGROUP_ROOT but in tests; id: the engine's, whole. A descriptor for cgroup_read, to be
 * closed; -1: there is none. */
int cgroup_open(const char *root, enum cgroup_count count, const char *id);
/* The number now; false: it cannot be read, the container has ended. */
bool cgroup_read(int fd, enum cgroup_count count, uint64_t *out);
