/* A container in which the housekeeper tries something out. */
#pragma once

#include "common/broker/spawn.h"

struct probe {
    struct engine *engine;
    const struct sandbox_root *root;
    char dir[WARM_DIR_NAME_LEN + 1]; /* its /data; "": none */
};

#define AUTO_PROBE AUTO(probe_clear)

/* *p is zeroed. Starts a container of image (any runner's) on a directory of its own. */
int probe_start(struct probe *p, const struct spawner *s, const char *image, enum network_tier tier,
                const struct engine_limits *limits, struct err *e);
/* Runs a command in it, for some seconds; what it prints goes to out. */
int probe_run(struct probe *p, const char *const *argv, size_t n_argv, struct buf *out,
              struct engine_outcome *outcome, struct err *e);
/* Removes the container and its directory. */
void probe_clear(struct probe *p);
