/*
 * What the store (common/store) does not have yet: an empty file .state/unsaved/<name> for each
 * conversation whose files were changed, or which was deleted. It is made by the process that
 * changed them, and taken by the saver: a rename moves it to .state/saving, so that a change during
 * the copy makes a new one. Nothing is lost when a process dies: what lies in .state/saving goes
 * back. .state/saved/<name> is the saver's record of what the store has (common/store/save.h).
 * Without a store there are no such folders, and nothing is made.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#define UNSAVED_DIR ".state/unsaved"
#define SAVING_DIR  ".state/saving"
#define SAVED_DIR   ".state/saved"

/* A conversation that is to be saved. */
struct unsaved_item {
    char name[SANDBOX_NAME_LEN + 1];
    int64_t since_ms; /* Unix milliseconds */
    bool again;       /* it was saved just now, but is in use */
};

struct unsaved {
    struct unsaved_item *items; /* the oldest first */
    size_t n;
};

#define AUTO_UNSAVED AUTO(unsaved_clear)

/* From now on changes are noted. Noted at once: conversations without a record, and those that a
 * saver before was saving when it ended. */
int unsaved_begin(const struct sandbox_root *root, struct err *e);
/* From now on they are not: there is no store. The records go, too. */
void unsaved_end(const struct sandbox_root *root);

/* The sandbox's files were changed, or deleted with it. A failure is logged. */
void unsaved_note(const struct sandbox_root *root, const char *name);
/* The same, of one that was saved just now and is still in use. */
void unsaved_note_again(const struct sandbox_root *root, const char *name);

/* All there are; with_taken: and what the saver is at, which is there twice if it was changed
 * since. */
int unsaved_list(const struct sandbox_root *root, bool with_taken, struct unsaved *out,
                 struct err *e);
void unsaved_clear(struct unsaved *u);

/* Is the conversation noted, or being saved? Then what is here is newer than the store. */
bool unsaved_has(const struct sandbox_root *root, const char *name);

/* The saver begins with it. false: it is noted no more. */
bool unsaved_take(const struct sandbox_root *root, const char *name);
/* It has ended with it. */
void unsaved_done(const struct sandbox_root *root, const char *name);
/* It could not: later. The time of the note stays. */
void unsaved_put_back(const struct sandbox_root *root, const char *name);
