/*
 * What a run did to its files: a listing before, a listing after, and the difference. Links,
 * sockets and devices are passed over; the listing is bounded in entries, depth and steps, and says
 * when it was cut.
 */
#pragma once

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SNAPSHOT_ENTRIES_MAX 10000 /* files listed */
#define SNAPSHOT_STEPS_MAX                                                                         \
    100000 /* directory entries looked at: folders, links and the like count here */

/* Where install_package puts things, in a sandbox: thousands of files that are no run's work. */
#define SNAPSHOT_PACKAGES ".packages"

/* At the top of a sandbox, which is its programs' home: what they keep there for themselves begins
 * with a dot, and is no run's work. */
bool snapshot_is_hidden(const char *name);
/* Whether a file at the top is a program that runs (runners/common/script.c; a session's cell), or
 * ran when its container was killed: it is in no listing. By its name and its mode, which a user's
 * own file has only if it was given both. */
bool snapshot_is_program(const char *name, const struct stat *st);

struct snapshot_entry {
    char *name;           /* relative, raw bytes as on disk */
    uint64_t size, bytes; /* its length, and what it takes (usage_of) */
    dev_t dev;
    ino_t ino;
    struct timespec ctime; /* a program can set mtime, not this */
    struct timespec mtime;
};

struct snapshot {
    struct snapshot_entry *items; /* sorted by name, byte by byte */
    size_t n;
    bool cut;              /* there was more than the bounds allow */
    bool too_deep;         /* a part of it: folders below FILES_DEPTH_MAX */
    struct usage usage;    /* of all of it, what is left out, too; partial when cut */
    struct usage free;     /* of the disk, when the way began */
    struct timespec taken; /* when the way began, on the clock of ctime */
};

#define AUTO_SNAPSHOT AUTO(snapshot_clear)

/*
 * Lists the regular files but what is hidden. What vanishes or changes its type meanwhile, or
 * cannot be read (a folder of mode 000), is passed over; files deeper than FILES_DEPTH_MAX or with
 * names over FILES_NAME_MAX, which files_open would refuse, set cut. -1 only when the system fails
 * (descriptors, memory, disk). Beside a running program the result is of no single moment.
 */
int snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e);
/* The same for a sandbox of at most steps_max directory entries; 1: there are more, and *out is not
 * touched. */
int snapshot_take_small(const struct sandbox *sb, size_t steps_max, struct snapshot *out,
                        struct err *e);
/* The same with what is hidden, but for SNAPSHOT_PACKAGES. */
int snapshot_take_all(const struct sandbox *sb, struct snapshot *out, struct err *e);
/* The same for a folder of a sandbox, opened as if it were one: nothing is left out there. */
int snapshot_take_folder(const struct sandbox *folder, struct snapshot *out, struct err *e);
/* The listing of an empty sandbox. */
void snapshot_take_empty(const struct sandbox *sb, struct snapshot *out);
void snapshot_clear(struct snapshot *s);

enum snapshot_change { SNAPSHOT_CREATED, SNAPSHOT_MODIFIED, SNAPSHOT_DELETED };

/*
 * Calls each for every difference, in order of names. entry is from after, for deletions from
 * before. Where a cut listing leaves it open, only what is certain is told: a file that a cut
 * before does not have counts as created when its ctime is not older than that listing, and a cut
 * after makes no deletions.
 */
void snapshot_diff(const struct snapshot *before, const struct snapshot *after,
                   void (*each)(void *ctx, const struct snapshot_entry *entry,
                                enum snapshot_change change),
                   void *ctx);

const char *snapshot_change_name(enum snapshot_change c); /* created, modified, deleted */
