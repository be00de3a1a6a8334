/*
 * Has the machine nothing better to do? Asked before something that nobody waits for: loading
 * libraries ahead takes most of a second of a CPU.
 */
#ifndef SANDCGI_BROKER_CPU_PRESSURE_H
#define SANDCGI_BROKER_CPU_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

struct cpu_pressure {
    int64_t looked_ms; /* when answer was found */
    bool looked, answer;
    uint64_t stalled_us;  /* for which some task had waited for a CPU by then */
    uint64_t busy, total; /* where the kernel does not tell that: ticks of all CPUs by then */
};

void cpu_pressure_init(struct cpu_pressure *idle);

/*
 * True when tasks hardly had to wait for a CPU since the look before (pressure stall information,
 * under 10 % of the time), or where the kernel does not tell, when at least half of the CPUs' time
 * since then was unused. False when neither can be known, as at the first look. Looks at most every
 * 500 ms. now_ms: clock_mono_ms.
 */
bool cpu_pressure_is_idle(struct cpu_pressure *idle, int64_t now_ms);

/*
 * The two answers from the kernel's text, for tests. 1 yes, 0 no, -1 the text does not tell.
 * pressure is /proc/pressure/cpu, stat is /proc/stat: compared with the counters in *idle, which
 * then become the text's.
 */
int idle_by_pressure(struct cpu_pressure *idle, const char *pressure, int64_t now_ms);
int idle_by_stat(struct cpu_pressure *idle, const char *stat);

#endif
