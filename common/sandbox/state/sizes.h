/* What sandboxes take on the disk, without counting each of them each time. */
#pragma once

#include "common/sandbox/sandbox_root.h"

/* What a sandbox takes: as noted, or else counted and noted now; 0 when it is not there. Its lock
 * is not needed: it may go meanwhile. */
uint64_t sizes_of(const struct sandbox_root *root, const char *name);

/* Sets what the tenant's other conversations take, where the tenant has a limit of bytes
 * (sb->tenant_bytes); sb->fd may be -1. sandbox_open does it, sandbox_find does not: it is done
 * before something is added to what that opened, or what has been open for long. */
void sizes_count_others(struct sandbox *sb, const char *tenant);
