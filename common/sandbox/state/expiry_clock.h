/*
 * The time by which files expire. A clock that jumps ahead must not cost files: what has expired
 * must have done so at two looks, hours apart by the monotonic clock. So the time to judge by is
 * that of an earlier look, and the clock has been right or set right since.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <stdint.h>

/* The time of a look at what has expired, by both clocks. */
struct expiry_look {
    int64_t mono_s;
    int64_t unix_s; /* 0: there was no look */
};

struct expiry_clock {
    struct expiry_look sure;   /* at least expiry_wait_s before the next */
    struct expiry_look latest; /* the newest look that others wait for */
};

/* Seconds between the two looks: 2 hours, less for a ttl_s below 16 hours, none below one. */
int64_t expiry_wait_s(int64_t ttl_s);

/* Takes note of a look. Returns the Unix time to judge by, never later than the look's; 0: it is
 * not known yet, and nothing has expired. */
int64_t expiry_clock_look(struct expiry_clock *c, int64_t ttl_s, struct expiry_look look);

/* The same with the looks that .state/clock keeps for this boot of the machine. */
int64_t expiry_now(const struct sandbox_root *root, struct expiry_look look);
