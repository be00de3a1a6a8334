/*
 * Warm containers: carries out what the pool (common/scheduler/pool.h) decides, and tells it
 * whether the machine is idle.
 */
#pragma once

#include "common/broker/spawn.h"
#include "common/scheduler/pool.h"

/* Has the machine nothing better to do? All zero at first. */
struct cpu_pressure {
    int64_t checked_ms; /* when idle was found */
    bool checked, idle;
    uint64_t stalled_us;  /* for which some task had waited for a CPU by then */
    uint64_t busy, total; /* where the kernel does not tell that: ticks of all CPUs by then */
};

/*
 * True when tasks hardly had to wait for a CPU since the check before (pressure stall information,
 * under 10 % of the time), or where the kernel does not tell, when at least half of the CPUs' time
 * since then was unused. False when neither can be known, as at the first check. Reads at most
 * every 500 ms. now_ms: clock_mono_ms.
 */
bool cpu_pressure_is_idle(struct cpu_pressure *cpu, int64_t now_ms);

/*
 * The two answers from the kernel's text, for tests. 1 yes, 0 no, -1 the text does not tell.
 * pressure is /proc/pressure/cpu, stat is /proc/stat: compared with the counters in *cpu, which
 * then become the text's.
 */
int cpu_idle_by_pressure(struct cpu_pressure *cpu, const char *pressure, int64_t now_ms);
int cpu_idle_by_stat(struct cpu_pressure *cpu, const char *stat);

struct warm_pool {
    const struct spawner *spawner; /* borrowed, as the next */
    struct pool *pool;
    struct cpu_pressure cpu;
    struct deadline due; /* when the pool wants to be asked again */
};

/* Does what the pool wants now, up to one start. queued: runs that wait for a place or a start. */
void warm_pool_tick(struct warm_pool *w, size_t queued);
/* Releases the warm containers of a sandbox's directory; sandbox_dir NULL: all. */
void warm_pool_release(struct warm_pool *w, const char *sandbox_dir);
