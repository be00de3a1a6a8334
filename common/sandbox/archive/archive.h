/*
 * Archives of a sandbox's files, and files out of archives. libarchive is used by archive_write.c,
 * whose only hostile input is names and bytes, and by archive_read.c, which runs in a process
 * without rights and sends a stream of records (archive_privsep.h). unpack.c checks these as any
 * input from outside.
 */
#pragma once

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
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
 * What an archive of folder ("": the whole sandbox but SNAPSHOT_PACKAGES) would hold now.
 * ERR_NOT_FOUND when there is no such folder or not one file in it, ERR_LIMIT over
 * ARCHIVE_FILES_MAX or PACK_BYTES_MAX.
 */
int pack_look(const struct sandbox *sb, const char *folder, struct pack_sum *out, struct err *e);

struct pack_sink {
    int fd;                     /* becomes non-blocking */
    int64_t stall_ms, total_ms; /* bounds of the reader's pauses, and of the whole; 0: none */
};

/*
 * Writes it to the sink, front to back. folder NULL: sb is any open folder (only its fd is used),
 * and all of it is packed. Regular files only, under their names in the sandbox, which are
 * relative; owner 0, mode 0644. A file has the size of its opening: one that grows is cut, one that
 * shrinks is filled up with zeros, one that has vanished is left out. A backslash in a name, or the
 * colon of "C:", which other systems read as part of a path, becomes "_". ERR_CANCELLED when the
 * reader has closed (the caller ignores SIGPIPE), ERR_TIMEOUT when it is too slow. After a failure
 * the output is visibly incomplete.
 */
int pack_files(const struct sandbox *sb, const char *folder, enum pack_format format,
               const struct pack_sink *sink, struct pack_sum *out, struct err *e);

/* ---- unpacking ---- */

#define UNPACK_FREE_BYTES (10u << 20) /* up to here the ratio is not checked */
#define UNPACK_RATIO_MAX  200         /* of the content to the archive's bytes */
#define UNPACK_TIME_MS    300000

struct unpack_want {
    const char
        *folder;  /* below which it goes; "": the sandbox itself; files_check_name passed it */
    bool replace; /* files of those names? */
    uint64_t max_bytes;         /* of content */
    struct sandbox_watch watch; /* until the archive has been read; zeros: none */
    /* May there be so many bytes of content, there of which are written? With watch.ctx; NULL: as
     * far as the sandbox's bounds go. */
    int (*keep_room)(void *ctx, uint64_t bytes, uint64_t there, struct err *e);
};

struct unpacked {
    char **names; /* of the files, in the sandbox, in the archive's order */
    size_t files;
    uint64_t bytes;
    size_t repaired;          /* names that were in another encoding */
    size_t left_out;          /* links, devices */
    char first_left_out[512]; /* a sentence about the first of them */
};

#define AUTO_UNPACKED AUTO(unpacked_clear)

/*
 * Unpacks archive_fd, a regular file read from its start: tar, plain or compressed by gzip, bzip2,
 * xz or zstd, or zip. Everything is written to .staging first, and put into the sandbox when the
 * whole archive has been read and checked: a refused one leaves nothing.
 *
 * Refused are: names that files_check_name refuses (a leading "./" apart), links, devices, a name
 * twice or as file and folder (ERR_INVALID); more than ARCHIVE_FILES_MAX files and folders, more
 * than max_bytes, than UNPACK_RATIO_MAX times the archive's own size, than the sandbox may still
 * take, also when all has been read (ERR_LIMIT); without replace a file whose name is taken
 * (ERR_EXISTS). The texts name the cause. When the last step fails, new files are removed; files
 * that have been replaced by then, and folders, stay.
 */
int unpack(const struct sandbox *sb, int archive_fd, const struct unpack_want *want,
           struct unpacked *out, struct err *e);
void unpacked_clear(struct unpacked *u);

#define UNPACK_READER_COMMAND "read-archive"

/* main of the process that reads archives: standard input is the archive (a regular file), standard
 * output the records. It gives up its rights first. A program that unpacks must call it when its
 * only argument is UNPACK_READER_COMMAND. Returns the exit code. */
int unpack_reader_main(void);

/* Reads the archive and sends records, at most max_bytes of content; the last one says how it
 * ended. lenient: links and devices are left out, names that are not UTF-8 repaired; else the
 * former are refused, the latter sent as they are. */
void unpack_read(int archive_fd, int out_fd, uint64_t max_bytes, bool lenient);
