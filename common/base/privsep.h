/*
 * Removes the rights of a process that reads hostile bytes. Namespaces and filters of system calls
 * are left to the process.
 */
#pragma once

#include "common/base/err.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#define PRIVSEP_FDS_MAX 4

/* ---- from outside ---- */

/*
 * Starts this very program anew (so that no secret of ours is in its memory) as "<command>", with
 * the descriptors of privsep_keep_fds and an empty environment. Returns its pid, for privsep_end,
 * or -1.
 */
pid_t privsep_start(const char *command, const int *fds, size_t n, struct err *e);

/* Kills it if it still runs, and reaps it. */
void privsep_end(pid_t pid);

/* ---- from inside; after a -1 the process must exit ---- */

/* fds[i] becomes descriptor i (-1: /dev/null), for n of up to PRIVSEP_FDS_MAX; all else is closed.
 */
int privsep_keep_fds(const int *fds, size_t n);

/*
 * Gives up root, if it has it, for an account without files that is not the sandboxes' account, and
 * any way back (no_new_privs). Other processes cannot read its memory, nor is it dumped. It dies
 * with its parent.
 */
int privsep_drop_rights(void);

struct privsep_limit {
    __rlimit_resource_t resource;
    rlim_t max;
};

/* For good. RLIMIT_AS is left out under sanitizers, which reserve terabytes of addresses. */
int privsep_bound(const struct privsep_limit *limits, size_t n);

/* Makes the process die with parent (a pid taken before the fork), or end now if that has ended. A
 * later change of account undoes it. */
void privsep_die_with(pid_t parent);
