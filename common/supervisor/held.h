/*
 * Files without a name that programs of a sandbox keep: they take room that no tree shows. A
 * process is the sandbox's if its /data is the sandbox directory, which holds for every engine and
 * control group, as long as the engine's processes are seen in /proc (not from another machine).
 */
#pragma once

#include "common/sandbox/sandbox.h"

/* Found through /proc: open, mapped, or the file that a process runs. */
struct held {
    struct usage files;
    size_t seen;      /* processes whose /data is the sandbox; 0: /proc does not show them */
    size_t in_flight; /* descriptors on their way in sockets: whose files these are is not seen */
};

struct held held_measure(const struct sandbox *sb);
/* The same; proc_path: where /proc is. */
struct held held_measure_at(const char *proc_path, const struct sandbox *sb);
