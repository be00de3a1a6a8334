/* Deadlines by the monotonic clock, timestamps by the real-time clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

int64_t clock_mono_ms(void);
int64_t clock_mono_us(void);
int64_t clock_unix_s(void);
/* Seconds since the boot, with the time in suspend. This clock cannot be set. */
int64_t clock_boot_s(void);
int64_t clock_unix_us(void);
int64_t clock_ns_of(struct timespec time);

/* A point on the monotonic clock; at_ms < 0 means never. */
struct deadline {
    int64_t at_ms;
};

#define DEADLINE_NEVER ((struct deadline){.at_ms = -1})

struct deadline deadline_in_ms(int64_t ms);
bool deadline_passed(struct deadline d);
/* poll(2)'s timeout: milliseconds left, clamped to [0, INT_MAX]; -1: never. */
int deadline_poll_ms(struct deadline d);
/* The earlier of the two. */
struct deadline deadline_min(struct deadline a, struct deadline b);
