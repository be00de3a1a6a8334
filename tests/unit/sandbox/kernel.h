/* What the kernel answers in this folder's program; a group that sets nothing has the real one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern uint64_t (*disk_free)(void); /* in bytes */

extern bool lacks_openat2;
extern int n_openat2; /* how often it was asked for while it seems to be missing */

/* The set-up of a group on such a kernel. */
int take_openat2_away(void **state);
