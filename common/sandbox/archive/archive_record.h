/*
 * What the process that takes an archive apart tells of it: a tag, 4 bytes big-endian length, then
 * that many bytes. Whoever reads it takes the writer for hostile. Internal to common/sandbox.
 *
 *   ARCHIVE_FOLDER  the name of a folder
 *   ARCHIVE_FILE    the name of a regular file, whose content follows as
 *   ARCHIVE_BYTES   a piece of it, 1 to ARCHIVE_RECORD_MAX bytes
 *   ARCHIVE_END     nothing: the archive was whole; the last record, as is
 *   ARCHIVE_REFUSED a sentence: why the archive is not unpacked
 */
#ifndef SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_RECORD_H
#define SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_RECORD_H

#include "common/base/clock.h"
#include "common/base/err.h"

#include <stddef.h>

#define ARCHIVE_RECORD_MAX 65536u

enum archive_tag {
    ARCHIVE_FOLDER = 'D',
    ARCHIVE_FILE = 'F',
    ARCHIVE_BYTES = 'B',
    ARCHIVE_END = 'Z',
    ARCHIVE_REFUSED = 'X',
};

struct archive_record {
    enum archive_tag tag;
    size_t len;
    char data[ARCHIVE_RECORD_MAX + 1]; /* with a NUL behind len */
};

/* 0, or -1 when nobody takes it. */
int archive_record_write(int fd, enum archive_tag tag, const void *data, size_t len);

/* The next one from a pipe or file; ERR_PROTOCOL for what is none (the end, too), ERR_LIMIT when it
 * did not come by the deadline. */
int archive_record_read(int fd, struct deadline d, struct archive_record *out, struct err *e);

#endif
