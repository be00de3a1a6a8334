/*
 * Archives of a sandbox's files, and files out of archives. The only users of libarchive are
 * archive_write.c, which reads nothing hostile but names and bytes, and archive_read.c, which runs
 * in a process of its own without any rights (archive_privsep.h) and hands on what it finds as a
 * stream of records (archive_record.h).
 */
#ifndef SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_H
#define SANDCGI_SANDBOX_ARCHIVE_ARCHIVE_H

#include "common/sandbox/sandbox.h"

#include <stdint.h>

#define ARCHIVE_FILES_MAX 10000        /* of one archive, either way */
#define PACK_BYTES_MAX    (8ull << 30) /* bytes of the files that one archive is made of */

enum pack_format { PACK_TAR_GZ, PACK_ZIP, PACK_TAR };

/* "tar.gz", "zip", "tar". */
const char *pack_format_name(enum pack_format format);
/* 0, or -1 leaving *out alone. */
int pack_format_parse(const char *name, enum pack_format *out);

struct pack_sum {
    uint64_t files, bytes; /* before they are packed */
};

/*
 * What an archive of folder ("": the whole sandbox but SNAPSHOT_LEFT_OUT) would hold now.
 * ERR_NOT_FOUND when there is no such folder or not one file in it, ERR_LIMIT over
 * ARCHIVE_FILES_MAX or PACK_BYTES_MAX.
 */
int pack_look(const struct sandbox *sb, const char *folder, struct pack_sum *out, struct err *e);

/* Where an archive goes. */
struct pack_sink {
    int fd; /* becomes non-blocking */
    /* How long its reader may take nothing, and how long all may take; 0: as long as it likes. */
    int64_t stall_ms, total_ms;
};

/*
 * Writes it to the sink, front to back. folder NULL: sb is any open folder (only its fd is used),
 * and all of it is packed. Regular files only, called as in the sandbox, so none is
 * absolute or leaves the place it is unpacked at; owner 0, mode 0644. A file counts with the size
 * that it has when its turn comes: what grows is cut there, what shrinks is filled up with zeros,
 * what vanishes is left out. A backslash in a name, or the colon of "C:", which some systems take
 * for part of a path, becomes "_". ERR_CANCELLED when nobody reads it any more (SIGPIPE is the
 * caller's business), ERR_TIMEOUT when its reader is too slow. After a failure what was written is
 * no whole archive, and shows it.
 */
int pack_files(const struct sandbox *sb, const char *folder, enum pack_format format,
               const struct pack_sink *sink, struct pack_sum *out, struct err *e);

#define UNPACK_READER_COMMAND "read-archive"

/*
 * main of the process that takes archives apart: standard input is the archive (a regular file),
 * standard output the records. First it gives up all it can. Every program that unpacks must begin
 * with this when its only argument is UNPACK_READER_COMMAND. Returns the exit code.
 */
int unpack_reader_main(void);

/* The work itself, which ends with a record of its own in either case: at most max_bytes of content
 * are handed on. */
void unpack_read(int archive_fd, int out_fd, uint64_t max_bytes);

#endif
