/*
 * The engine's floor: what a run costs when nothing of ours is in the way. The same REST calls with
 * the same bodies as the broker sends, by the barest client: create, attach, start, write the
 * envelope, read up to the report.
 */
#ifndef SANDCGI_BENCH_FLOOR_H
#define SANDCGI_BENCH_FLOOR_H

#include "common/engine/engine.h"
#include "tests/bench/wire.h"

#include <stdint.h>

struct floor {
    const char *socket; /* path of the engine's socket */
    struct wire api;    /* kept alive from run to run, as the broker's would be at best */
    struct engine_spec spec;
    struct engine_program program;
    unsigned runs;
};

void floor_open(struct floor *f, const char *socket, const struct engine_spec *spec,
                const struct engine_program *program);
void floor_close(struct floor *f);

/* One run; microseconds from the first byte of create to the last of the report. The removal comes
 * after that. */
int64_t floor_run(struct floor *f);

#endif
