#include "config.h"

#include "common/broker/cpu_pressure.h"

#include "common/base/auto.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define LOOK_MS      500
#define PRESSURE_MAX 10 /* percent of the time that some task waited for a CPU */

/* The whole number at the front of text; returns what follows it, NULL when there is none. */
static const char *take_number(const char *text, uint64_t *out)
{
    size_t len = strspn(text, "0123456789");

    *out = 0;
    if (len == 0 || len > 18)
        return NULL;
    for (size_t i = 0; i < len; i++)
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    return text + len;
}

int idle_by_pressure(struct cpu_pressure *idle, const char *pressure, int64_t now_ms)
{
    static const char start[] = "some ", name[] = " total=";
    const char *total = strncmp(pressure, start, sizeof(start) - 1) == 0 ? strstr(pressure, name)
                                                                         : NULL;
    uint64_t stalled_us;

    if (!total || !take_number(total + sizeof(name) - 1, &stalled_us))
        return -1;
    const uint64_t since_us = stalled_us - idle->stalled_us;
    const int64_t passed_ms = now_ms - idle->looked_ms;
    const bool first = !idle->looked || stalled_us < idle->stalled_us || passed_ms <= 0;
    idle->stalled_us = stalled_us;
    if (first)
        return 0;
    return since_us / 10 < (uint64_t)passed_ms * PRESSURE_MAX;
}

int idle_by_stat(struct cpu_pressure *idle, const char *stat)
{
    uint64_t ticks[8] = {0}; /* user nice system idle iowait irq softirq steal */
    uint64_t busy = 0, total = 0;

    if (strncmp(stat, "cpu ", 4) != 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(ticks); i++) {
        stat += strcspn(stat, " \n");
        stat += strspn(stat, " ");
        if (!take_number(stat, &ticks[i]))
            return -1;
        total += ticks[i];
        busy += i == 3 || i == 4 ? 0 : ticks[i];
    }
    const uint64_t busy_since = busy - idle->busy, since = total - idle->total;
    const bool first = idle->total == 0;
    idle->busy = busy;
    idle->total = total;
    if (first || since == 0 || busy_since > since)
        return -1;
    return busy_since * 2 < since;
}

/* The front of a file of the kernel's; false when there is none. */
static bool read_front(const char *path, char *out, size_t size)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (n <= 0)
        return false;
    out[n] = '\0';
    return true;
}

void cpu_pressure_init(struct cpu_pressure *idle)
{
    *idle = (struct cpu_pressure){0};
}

bool cpu_pressure_is_idle(struct cpu_pressure *idle, int64_t now_ms)
{
    char text[512];
    int answer = -1;

    if (idle->looked && now_ms - idle->looked_ms < LOOK_MS)
        return idle->answer;
    if (read_front("/proc/pressure/cpu", text, sizeof(text)))
        answer = idle_by_pressure(idle, text, now_ms);
    if (answer < 0 && read_front("/proc/stat", text, sizeof(text)))
        answer = idle_by_stat(idle, text);
    idle->looked = true;
    idle->looked_ms = now_ms;
    idle->answer = answer > 0;
    return idle->answer;
}
