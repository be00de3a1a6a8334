/*
 * Complete reads and writes: handles EINTR, short counts and non-blocking descriptors, for which it
 * waits.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Writes all bytes or fails. Our processes ignore SIGPIPE: a closed connection gives EPIPE. */
int fdio_write_all(int fd, const void *data, size_t len, struct err *e);
/* Reads to the end into out; ERR_LIMIT over out's max. */
int fdio_read_to_end(int fd, struct buf *out, struct err *e);
/* Reads a file of at most out->max bytes. Messages name the path; ERR_NOT_FOUND: no such file. */
int fdio_read_file(const char *path, struct buf *out, struct err *e);
/*
 * Replaces the file at path in one step, and waits until it is on the disk: readers find the old
 * text or the new one. It keeps its owner and mode; a new file is the caller's, with mode. An
 * unfinished copy beside it is removed on failure.
 */
int fdio_replace_file(const char *path, const struct buf *text, mode_t mode, struct err *e);
int fdio_set_nonblocking(int fd, struct err *e);
/* Has the limit of open descriptors be n at least, as far as that can be had. */
void fdio_allow(uint64_t n);
/* Opens /dev/null on those of 0, 1, 2 that are closed, so that no later descriptor gets such a
 * number. */
void fdio_fill_standard(void);
