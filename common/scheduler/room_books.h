/*
 * Room on the disk for contents on their way: uploads, fetched files, archives. Each has a row from
 * the moment that its size is known, or as it grows, until it is among the files of its sandbox, or
 * its owner has ended (broker/rooms.h). So two that each fit alone, but not together, are not both
 * let in. Plain data of the main process.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <stdbool.h>

struct room_row {
    struct room_row *next;
    bool named;                             /* it is known whose it is: */
    char sandbox_dir[SANDBOX_NAME_LEN + 1]; /* where the content goes, */
    char *tenant;                           /* owned */
    struct usage now;                    /* and what the sandbox took when the content set out, */
    uint64_t tenant_bytes, others_bytes; /* as in struct sandbox */
    uint64_t bytes, there;               /* reserved; of these the disk has what is there already */
};

struct room_books {
    struct room_row *first;
};

/* Adds a row of zeros, which is not named; its memory is the caller's. */
void room_books_add(struct room_books *books, struct room_row *row);
/* Whose it is: as the first message says. Once for a row. */
void room_row_name(struct room_row *row, const char *tenant, const char *sandbox_dir);
/* Frees what it owns. */
void room_books_remove(struct room_books *books, struct room_row *row);

/* What has room besides row. */
struct coming room_books_beside(const struct room_books *books, const struct room_row *row);

/* May the row have so many bytes, there of which are on the disk? Then it has them. ERR_LIMIT as
 * quota_check's otherwise, and the row is as it was. */
int room_books_take(const struct room_books *books, struct room_row *row,
                    const struct sandbox_root *root, uint64_t bytes, uint64_t there, struct err *e);

/* So many bytes of the row are among the sandbox's files: the others, which have not counted them,
 * do now, and the row has no room any more. */
void room_books_land(const struct room_books *books, struct room_row *row, uint64_t bytes);
