/*
 * The process that reads an archive, without rights besides two descriptors, and the records that
 * it writes: a tag, 4 bytes big-endian length, then that many bytes. The parent takes them for
 * hostile. Internal to common/sandbox.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Starts this program anew as "<command>" (privsep_start), with in_fd as its standard input and a
 * new pipe as its standard output. Returns the pipe's reading end, or -1. The caller ends *out_pid
 * (privsep_end). */
int archive_privsep_start(const char *command, int in_fd, pid_t *out_pid, struct err *e);

/*
 * Called by that process first: gives up root for an account without rights, and its network and
 * IPC; bounds memory and time; loads a filter of system calls that allows little more than reading
 * and writing open descriptors, and kills the process for starting a program or opening a socket.
 * -1: it must not go on.
 */
int archive_privsep_enter(bool time_is_bounded);

#define ARCHIVE_RECORD_MAX 65536u

enum archive_tag {
    ARCHIVE_FOLDER = 'D',     /* the name of a folder */
    ARCHIVE_FILE = 'F',       /* the name of a regular file; its content follows */
    ARCHIVE_ATTRIBUTES = 'A', /* "<octal mode> <Unix seconds>" of the folder or file that follows */
    ARCHIVE_REPAIRED = 'R',   /* empty: the name that follows was in another encoding than UTF-8 */
    ARCHIVE_LEFT_OUT = 'L',   /* a sentence about an entry that does not come */
    ARCHIVE_BYTES = 'B',      /* a piece of it, 1 to ARCHIVE_RECORD_MAX bytes */
    ARCHIVE_END = 'Z',        /* empty: the archive was whole; the last record, as is the next */
    ARCHIVE_REFUSED = 'X',    /* a sentence: why the archive is not unpacked */
};

struct archive_record {
    enum archive_tag tag;
    size_t len;
    char data[ARCHIVE_RECORD_MAX + 1]; /* with a NUL behind len */
};

/* 0, or -1 when the reader has closed. */
int archive_record_write(int fd, enum archive_tag tag, const void *data, size_t len);

/* Reads one from a pipe or file; ERR_PROTOCOL for an invalid one and at the end, ERR_LIMIT after
 * the deadline. */
int archive_record_read(int fd, struct deadline d, struct archive_record *out, struct err *e);
