/*
 * Has the machine nothing better to do? Asked before something that nobody waits for: loading
 * libraries ahead takes most of a second of a CPU.
 */
#ifndef SANDCGI_BROKER_IDLE_H
#define SANDCGI_BROKER_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct idle {
    int64_t looked_ms; /* when answer was found */
    bool looked, answer;
    uint64_t busy, total; /* ticks of all CPUs at that time; where the kernel tells no pressure */
};

void idle_init(struct idle *idle);

/*
 * True when tasks hardly had to wait for a CPU lately (pressure stall information, under 10 % of
 * the last ten seconds), or where the kernel does not tell, when at least half of the CPUs' time
 * since the look before was unused. False when neither can be known, as at the first look without
 * pressure. Looks at most every 500 ms. now_ms: clock_mono_ms.
 */
bool idle_is(struct idle *idle, int64_t now_ms);

/*
 * The two answers from the kernel's text, for tests. 1 yes, 0 no, -1 the text does not tell.
 * pressure is /proc/pressure/cpu. stat is /proc/stat: compared with the counters in *idle, which
 * then become stat's.
 */
int idle_by_pressure(const char *pressure);
int idle_by_stat(struct idle *idle, const char *stat);

#endif
