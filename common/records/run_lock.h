/*
 * The files of a run's supervisor. It holds a lock on SANDBOX_ROOT/.runs/<run id> until its process
 * ends: a container whose run's lock is free is an orphan. The container of an installation gets
 * SANDBOX_ROOT/.index/<run id>/ at /run/index: the socket of its index proxy, and the operator's
 * certificates.
 */
#pragma once

#include "common/sandbox/sandbox.h"

/* Creates and locks the file of run_id; the descriptor holds the lock. */
int run_lock_take(int root_fd, const char *run_id, struct err *e);
/* Close the descriptor afterwards. */
void run_lock_remove(int root_fd, const char *run_id);
/* Whether the run's supervisor is alive; removes the file when not. */
bool run_lock_reap(int root_fd, const char *run_id);
/* Removes the files of dead supervisors. */
void run_lock_sweep(int root_fd);

/*
 * Makes the directory and a listening socket in it (non-blocking, CLOEXEC: the result), with a copy
 * of the file ca_path unless that is empty. -1: nothing is left behind; ERR_UNAVAILABLE: the file
 * cannot be read.
 */
int index_dir_make(const struct sandbox_root *root, const char *run_id, const char *ca_path,
                   struct err *e);
/* Its path on the engine's host. Caller frees. */
char *index_dir_host_path(const struct sandbox_root *root, const char *run_id);
void index_dir_remove(int root_fd, const char *run_id);
/* Removes the directories of dead supervisors. */
void index_dir_sweep(int root_fd);
