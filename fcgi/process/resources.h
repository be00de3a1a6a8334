/* What the guard gets from the system before there are children without root (account, directory
 * of sessions), what those give up, and the signal that ends them. */
#pragma once

#include "common/protocol/audit.h"
#include "fcgi/settings.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct account {
    uid_t uid;
    gid_t gid;
};

/* The workers' account: SANDCGI_USER when we are root (required, never root itself), else our own.
 */
int account_of_workers(const char *user, struct account *out, struct err *e);

/* Gives up root for good, with all groups and any way back (no_new_privs); the process ends with
 * its parent. Without root only the latter two. */
int account_become(const struct account *account, struct err *e);

/* Bounds the memory of a worker by what its largest request needs, that of the hub by what its
 * streams may queue, and some hundred MB. */
int front_memory_bound(const struct settings *s, bool hub, struct err *e);

/* Leaves to a worker or the hub, which may fork, the directory of sessions and open descriptors.
 * Last: afterwards it can open no other file, and connect to nothing. */
int account_confine(int sessions_fd, bool forks, struct err *e);

/* A line for each wall that this kernel does not have. */
void kernel_log_walls(void);

/* Level, format and file of the guard's log, whose file may have been renamed, or be another one;
 * children inherit them. */
void log_follow(const struct settings *s);
/* Where the audit line of a command goes; borrowed. */
struct audit_place audit_place_of(const struct settings *s);

/*
 * Locks SANDBOX_ROOT, which is made if it is not there: another server is refused until *lock_fd is
 * closed, by the end of this process at the latest. A child has to close it; a program that follows
 * by exec has the lock if the descriptor stays open. *lock_fd: -1, or that of an earlier call,
 * which stays where it is the same folder's. -1: ERR_BUSY when another server has locked it, which
 * *e names.
 */
int root_lock(const struct settings *s, int *lock_fd, struct err *e);

/* Opens SANDBOX_ROOT/NAME, and makes both directories if they do not exist: the workers' account
 * owns it, mode 0700. Returns the descriptor or -1. */
int root_folder_open(const struct settings *s, const char *name, const struct account *workers,
                     struct err *e);
/* The same of SANDBOX_ROOT/.sessions. */
int sessions_dir_open(const struct settings *s, const struct account *workers, struct err *e);

/* SIGTERM ends a worker or the hub between requests only: it is blocked except with the mask
 * *while_waiting. SIGINT is left to the master. Call it after FCGX_Init: it replaces handlers. */
int stop_prepare(sigset_t *while_waiting, struct err *e);

/* Has TERM come? */
bool stop_requested(void);
