/*
 * Files without a name that programs of a sandbox keep open or mapped: they take room that no tree
 * shows. A process is the sandbox's if its /data is the sandbox directory, which holds for every
 * engine and control group, as long as the engine's processes are seen in /proc (not from another
 * machine). Descriptors that are on their way in a socket are not seen.
 */
#pragma once

#include "common/sandbox/sandbox.h"

/* What they take. *seen: processes of the sandbox. */
struct usage held_measure(const struct sandbox *sb, size_t *seen);
