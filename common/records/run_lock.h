/*
 * Who is alive: the supervisor of a run holds a lock on SANDBOX_ROOT/.runs/<run id> for as long as
 * it lives, however it ends. A container whose run's lock nobody holds is an orphan, at once and
 * across restarts of the broker.
 */
#ifndef SANDCGI_RECORDS_RUN_LOCK_H
#define SANDCGI_RECORDS_RUN_LOCK_H

#include "common/base/err.h"

#include <stdbool.h>

/* Creates and locks the file of run_id. Returns a descriptor that holds the lock until closed (also
 * by death). */
int run_lock_take(int root_fd, const char *run_id, struct err *e);
/* Removes the file; close the descriptor afterwards. */
void run_lock_remove(int root_fd, const char *run_id);

/* Does a living process supervise this run? Removes the file when not. */
bool run_lock_reap(int root_fd, const char *run_id);

/* Removes the files that dead supervisors left, whatever became of their containers. */
void run_lock_sweep(int root_fd);

#endif
