/* A process without rights besides two descriptors, for code that parses hostile bytes. Internal to
 * common/sandbox. */
#ifndef SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_PRIVSEP_H
#define SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_PRIVSEP_H

#include "common/base/err.h"

#include <sys/types.h>

/*
 * Starts this very program anew as "<command>" (privsep_start), with in_fd as its standard input
 * and a new pipe as its standard output. Returns the pipe's reading end, or -1. The caller ends
 * *out_pid (privsep_end).
 */
int archive_privsep_start(const char *command, int in_fd, pid_t *out_pid, struct err *e);

/*
 * Called by that process first: gives up root for an account without rights, network and files of
 * its own, bounds memory and time, and loads a filter of system calls that refuses all that reading
 * one descriptor and writing another does not need, and ends the process for starting a program or
 * opening a socket. -1: it must not go on, also when the filter cannot be loaded.
 */
int archive_privsep_enter(void);

#endif
