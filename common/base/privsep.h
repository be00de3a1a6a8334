/*
 * Removes the rights of a process that reads hostile bytes: its account, its limits, and, by
 * Landlock and seccomp, all files, sockets and system calls but those that it states.
 */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* What a process needs after its start; it gets nothing else. */
struct privsep_needs {
    const char *const *files; /* may be read, folders with all below; NULL-terminated; those that do
                                 not exist are left out. NULL: none */
    int folder_fd;            /* files below may be changed; -1: none */
    const int *families;      /* of new sockets; 0-terminated. NULL: none, and no address is
                                 connected or sent to */
    const uint16_t *ports;    /* TCP's that it may connect to; 0-terminated. NULL: any */
    bool children;            /* may it start and kill some */
    const char *calls;        /* the only system calls, with blanks between; NULL: those of an
                                 ordinary program that starts no other */
};

/* What resolving a name and TLS need. */
extern const char *const privsep_network_files[];
extern const int privsep_network_families[];

/*
 * Takes all else from the process, for good, by Landlock and seccomp as far as the kernel has them.
 * Other calls fail with ENOSYS; a call that no library makes, such as starting a program, kills the
 * process. Open descriptors stay. It can signal none but its children. -1: it must exit; also where
 * the kernel has no seccomp, if it has calls of its own.
 */
int privsep_confine(const struct privsep_needs *needs, struct err *e);

/* What the kernel has, and does not withhold. */
bool privsep_has_seccomp(void);
int privsep_landlock_version(void); /* 0: none */
#define PRIVSEP_LANDLOCK_TCP     4  /* versions from which on it restricts TCP ports, */
#define PRIVSEP_LANDLOCK_SIGNALS 6  /* and signals and abstract sockets */
