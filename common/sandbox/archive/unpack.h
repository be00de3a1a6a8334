/*
 * Unpacking an archive into a sandbox. The archive is taken apart by a process without rights
 * (archive.h); what it tells is checked here like anything else that comes from outside.
 */
#ifndef SANDCGI_SANDBOX_ARCHIVE_UNPACK_H
#define SANDCGI_SANDBOX_ARCHIVE_UNPACK_H

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

#define UNPACK_FREE_BYTES (10u << 20) /* up to here no ratio is too good */
#define UNPACK_RATIO_MAX  200         /* of what comes out to what was written of the archive */
#define UNPACK_TIME_MS    300000

struct unpack_want {
    const char
        *folder;  /* below which it goes; "": the sandbox itself; files_check_name passed it */
    bool replace; /* files of those names? */
    uint64_t max_bytes;         /* of content */
    struct sandbox_watch watch; /* asked until the archive has been read; zeros: none */
};

struct unpacked {
    char **names; /* of the files, in the sandbox, in the archive's order */
    size_t files;
    uint64_t bytes;
};

#define UNPACKED_INIT                                                                              \
    {                                                                                              \
        0                                                                                          \
    }
#define AUTO_UNPACKED AUTO(unpacked_clear)

/*
 * Unpacks archive_fd, a regular file read from its start: tar, plain or compressed by gzip, bzip2,
 * xz or zstd, or zip. Everything is taken to .staging first; only when the whole archive has been
 * read and found good is anything put into the sandbox, so that a refused one leaves nothing.
 *
 * Refused are: names that files_check_name refuses (a leading "./" apart), links, devices, a name
 * twice or as file and folder (ERR_INVALID); more than ARCHIVE_FILES_MAX files and folders, more
 * than max_bytes, than UNPACK_RATIO_MAX times the archive's own size, than the sandbox may still
 * take, also when all has been read (ERR_LIMIT); without replace a file whose name is taken
 * (ERR_EXISTS). The texts name what it is. When the disk or a program gets in the way of the last
 * step, files that were not there before are taken back; files that have been replaced by then stay
 * as the archive has them, and folders stay.
 */
int unpack(const struct sandbox *sb, int archive_fd, const struct unpack_want *want,
           struct unpacked *out, struct err *e);
void unpacked_clear(struct unpacked *u);

#endif
