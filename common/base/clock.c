#include "config.h"

#include "common/base/clock.h"

#include <limits.h>
#include <time.h>

int64_t clock_mono_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

int64_t clock_boot_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec;
}

int64_t clock_ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int64_t clock_unix_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_unix_s(void)
{
    return clock_unix_us() / 1000000;
}

struct deadline deadline_in_ms(int64_t ms)
{
    int64_t now = clock_mono_ms();
    if (ms < 0)
        ms = 0; /* a negative at_ms would mean never */
    return (struct deadline){.at_ms = ms > INT64_MAX - now ? INT64_MAX : now + ms};
}

bool deadline_passed(struct deadline d)
{
    return d.at_ms >= 0 && clock_mono_ms() >= d.at_ms;
}

int deadline_poll_ms(struct deadline d)
{
    if (d.at_ms < 0)
        return -1;
    int64_t left = d.at_ms - clock_mono_ms();
    if (left <= 0)
        return 0;
    return left > INT_MAX ? INT_MAX : (int)left;
}

struct deadline deadline_min(struct deadline a, struct deadline b)
{
    if (a.at_ms < 0)
        return b;
    if (b.at_ms < 0)
        return a;
    return a.at_ms < b.at_ms ? a : b;
}
