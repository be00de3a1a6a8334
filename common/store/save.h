/*
 * Saving: bringing the store to where a conversation's files are now. Only what has changed since
 * the last time is read and sent. The record .state/saved/<name> is the manifest of the last time,
 * with what tells that a file has not changed (its inode and time of change). An empty record says
 * that another node has written a newer state: what is here is not saved any more, and is replaced
 * when it is next asked for (load.h).
 */
#pragma once

#include "common/sandbox/sandbox_root.h"
#include "common/store/manifest.h"
#include "common/store/store.h"

#define SAVE_FILE_MAX (5ull << 30) /* bytes of one file: what S3 takes in one piece */

struct saver {
    struct store *store; /* borrowed, as all */
    const struct sandbox_root *root;
    const char *node;   /* this one; "": it has no name */
    size_t entries_max; /* of a conversation, more are left out; 0: MANIFEST_ENTRIES_MAX */
};

enum save_outcome {
    SAVE_SAME, /* nothing had changed */
    SAVE_SENT,
    SAVE_REMOVED, /* the conversation was deleted: the store has it no more */
    SAVE_UNKNOWN, /* it has no record of its own (state.h) yet: it will be noted with it */
    SAVE_STALE,   /* another node has written a newer state: nothing was sent */
    SAVE_MOVED,   /* it was deleted meanwhile, and is noted again */
};

struct save_sum {
    enum save_outcome outcome;
    uint64_t files, bytes; /* that were sent */
    uint64_t left_out;     /* devices, FIFOs and sockets; too large, too deep or unreadable */
    uint64_t changed;      /* files that changed while they were read each time: the state of before
                              stays in the store */
};

/* Saves the conversation whose sandbox has that name, or removes it from the store when it was
 * deleted here. ERR_UNAVAILABLE: the store; others: this machine's. */
int save_conversation(const struct saver *s, const char *name, struct save_sum *out, struct err *e);
