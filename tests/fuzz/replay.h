/* Without a fuzzer, one program replays the seeds of all targets: replay.c, and how a target gets
 * there. */
#pragma once

#include "tests/unit/group.h"

#include <stdint.h>

const char *replay_name(const struct unit_group *g, size_t i);
bool replay_passes(const struct unit_group *g, size_t i, bool first, bool last);

/* What replay.c finds in a group's tests. */
struct replay_target {
    int (*one_input)(const uint8_t *data, size_t len);
};
