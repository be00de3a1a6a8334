/*
 * The end of a restore: the staged conversations are moved into the root, all or none. What they
 * replace stays in .staging until all are there.
 */
#pragma once

#include "common/sandbox/archive/backup.h"
#include "common/sandbox/files/staging.h"

struct restored {
    char *tenant, *conversation;
    char staged[STAGING_NAME_LEN + 1]; /* in .staging; "": not yet */
    char name[SANDBOX_NAME_LEN + 1];   /* to be, in the root */
    bool moved, replaced;              /* replaced: staged is what was there before */
};

struct restore_move {
    const struct sandbox_root *root; /* borrowed, as the next */
    const struct restore_want *want;
    int staging_fd;
    struct restored *all;
    size_t n;
};

/* Is a conversation of c's name in the root? */
bool restore_is_there(const struct restore_move *m, const struct restored *c);

/* May c, whose names are set, come into the root? ERR_EXISTS, or ERR_BUSY. */
int restore_check_target(const struct restore_move *m, const struct restored *c, struct err *e);

/* Moves all of them, and removes what they replaced. After a failure restore_take_back follows. */
int restore_move_all(const struct restore_move *m, struct err *e);

/* After a failure, also of the reading before: takes back what was moved, removes what is staged,
 * and puts before the text of e whether all is as before. -1. */
int restore_take_back(const struct restore_move *m, struct err *e);
