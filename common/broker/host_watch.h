/*
 * Faults of the machine while the server runs: the disk is full or read-only, the access rights of
 * SANDBOX_ROOT have changed, the clock was set. A fault is logged when it begins and when it is
 * over, not for each call that is refused.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#define HOST_CLOCK_STEP_S 120 /* less is no step: it may be the time between two looks */

struct host_watch {
    bool disk_is_full, root_is_open, root_is_foreign; /* as logged */
    int64_t clock_offset_s; /* Unix time less clock_boot_s at the last look; 0: there was none */
};

/* Calls the following. web_gid: the web server's group; 0: none. */
void host_watch_look(struct host_watch *w, const struct sandbox_root *root, gid_t web_gid);

/* One look at the clocks; the seconds that the clock has been set by since the last, 0: it was not.
 */
int64_t host_watch_clock(struct host_watch *w, int64_t unix_s, int64_t boot_s);
