/*
 * A process that has only what it is given: the steps by which one that meets foreign bytes gives
 * up all else. What only one of them needs (namespaces, a filter of system calls) is its own.
 */
#ifndef SANDCGI_BASE_PRIVSEP_H
#define SANDCGI_BASE_PRIVSEP_H

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

/* Ends it, should it still live, and waits for that. */
void privsep_end(pid_t pid);

/* ---- from inside; after a -1 the process must not go on ---- */

/* fds[i] becomes descriptor i (-1: /dev/null), for n of up to PRIVSEP_FDS_MAX; all else is closed.
 */
int privsep_keep_fds(const int *fds, size_t n);

/*
 * Gives up root, if it is ours, for an account without files, which is not that of the sandboxes,
 * and any way back (no_new_privs); nobody may look into its memory, dumps included; it dies with
 * its parent.
 */
int privsep_drop_rights(void);

struct privsep_limit {
    __rlimit_resource_t resource;
    rlim_t max;
};

/* For good. RLIMIT_AS is left out under sanitizers, which reserve terabytes of addresses. */
int privsep_bound(const struct privsep_limit *limits, size_t n);

/* Dies with parent, from now on: a change of account takes that back. Ends the process if parent,
 * its pid as seen before the fork, has gone already. */
void privsep_die_with(pid_t parent);

#endif
