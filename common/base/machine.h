/* The memory of the machine, as the kernel tells it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct machine_memory {
    uint64_t total;     /* bytes */
    uint64_t available; /* without swapping: free, or given back at once */
};

/*
 * In a container that has a limit (its cgroup is the root of what it sees), both are at most what
 * that leaves. root: "" but in tests. false: the kernel does not tell.
 */
bool machine_memory_look(const char *root, struct machine_memory *out);
