/*
 * SANDBOX_ROOT/.index/<run id>/: what an installation's container gets bound at /run/index: the
 * socket of its index proxy, and the operator's certificates. Private to common/broker.
 */
#ifndef SANDCGI_RECORDS_INDEX_DIR_H
#define SANDCGI_RECORDS_INDEX_DIR_H

#include "common/sandbox/sandbox.h"

/*
 * Makes it, with a socket that listens (non-blocking, CLOEXEC: the result, to be closed) and, when
 * ca_path is not empty, a copy of that file. -1: nothing is left behind; ERR_UNAVAILABLE the file
 * cannot be read.
 */
int index_dir_make(const struct sandbox_root *root, const char *run_id, const char *ca_path,
                   struct err *e);
/* The directory's path on the engine's host. Caller frees. */
char *index_dir_host_path(const struct sandbox_root *root, const char *run_id);
void index_dir_remove(int root_fd, const char *run_id);

/* Removes those of runs that nobody supervises. */
void index_dir_sweep(int root_fd);

#endif
