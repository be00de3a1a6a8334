/*
 * Backups: one tar (pax) of conversations, and conversations out of it.
 *
 *   sandcgi-backup             {"version":1,"createdAt":<Unix seconds>}; the first entry
 *   <n>/record.json            {"tenant","conversationId"}; n counts from 1
 *   <n>/files/…                folders and regular files with modes and times, a folder first
 *
 * It holds neither secrets nor names of directories: a root with any FILE_SECRET takes it. Results
 * of runs and sessions are not in it.
 */
#pragma once

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

enum backup_format { BACKUP_TAR, BACKUP_TAR_GZ, BACKUP_TAR_ZST };

struct backup_sum {
    uint64_t conversations, files, bytes;
    uint64_t left_out; /* links, devices, FIFOs and sockets; what is too deep, has too long a name,
                          or cannot be read */
    uint64_t changed;  /* files that changed while they were copied */
    uint64_t unknown;  /* directories without a record, which are nobody's */
    uint64_t skipped;  /* of a restore: conversations that are there, with skip_existing */
};

/*
 * Writes the conversations of tenant (NULL: all) to fd, front to back, while the server runs. Each
 * is held meanwhile, so that it is not deleted; nothing is followed. A file has the size of its
 * opening: one that grows is cut, one that shrinks is filled up with zeros, and both are counted.
 * After a failure the output is visibly incomplete.
 */
int backup_write(const struct sandbox_root *root, const char *tenant, enum backup_format format,
                 int fd, struct backup_sum *out, struct err *e);

struct restore_want {
    const char *tenant;       /* whose conversations are restored; NULL: all */
    const char *conversation; /* the only one that is restored; NULL: all */
    bool replace;             /* conversations that are there */
    bool skip_existing;       /* leave them as they are; not with replace */
    /* Exchanges the files of one of those, which is not in use, with the folder of that name in
     * .staging; 0, or -1 with *e. The same call once more takes it back. */
    int (*exchange)(void *ctx, const char *tenant, const char *conversation, const char *staged,
                    struct err *e);
    /* At the end: removes the kept results of what one of those ran before then (Unix seconds). */
    void (*forget_runs)(void *ctx, const char *tenant, const char *conversation, int64_t before);
    void *ctx;
};

/*
 * Restores from fd, a file or a pipe, which a process without rights reads. Each conversation gets
 * an owner as a new one does, counts as used now, and must keep within the root's bounds. All are
 * staged first, and moved into the root when the whole backup was read: a refused one leaves
 * nothing. ERR_INVALID: no backup, or one with names, links or devices that a backup has not;
 * ERR_LIMIT: SANDBOX_QUOTA, SANDBOX_FILES or the disk's reserve; ERR_EXISTS with neither replace
 * nor skip_existing; ERR_NOT_FOUND: the backup has no such conversation; ERR_BUSY: one that is
 * replaced is in use. When moving fails, all is taken back, and the text says so; it names a
 * conversation for which that is impossible, since it is in use by then.
 */
int backup_restore(const struct sandbox_root *root, int fd, const struct restore_want *want,
                   struct backup_sum *out, struct err *e);

#define BACKUP_READER_COMMAND "read-backup"

/* As unpack_reader_main, for BACKUP_READER_COMMAND; without a bound of its time. */
int backup_reader_main(void);

/* ---- for both, and tests ---- */

#define BACKUP_HEAD       "sandcgi-backup"
#define BACKUP_RECORD     "record.json"
#define BACKUP_FILES      "files"
#define BACKUP_RECORD_MAX 8192 /* bytes */

enum backup_part { BACKUP_PART_HEAD, BACKUP_PART_RECORD, BACKUP_PART_TOP, BACKUP_PART_FILE };

struct backup_entry {
    enum backup_part part;
    uint64_t number;  /* n; 0: the head */
    const char *name; /* of a file or folder, in its conversation; borrowed from the path */
};

/* Takes an entry's path apart; ERR_INVALID for one that no backup has: of another form, absolute,
 * with ".", ".." or an empty component, or over FILES_NAME_MAX or FILES_DEPTH_MAX. */
int backup_entry_parse(const char *path, struct backup_entry *out, struct err *e);

/* Reads a record.json of len bytes; both strings are the caller's to free. ERR_INVALID. */
int backup_record_parse(const char *text, size_t len, char **out_tenant, char **out_conversation,
                        struct err *e);
