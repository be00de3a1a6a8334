/*
 * What a run did to its files: a listing before, a listing after, and the difference. Links,
 * sockets and devices are passed over; the listing is bounded in entries and depth, and says when
 * it was cut.
 */
#ifndef SANDCGI_SANDBOX_SNAPSHOT_H
#define SANDCGI_SANDBOX_SNAPSHOT_H

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define SNAPSHOT_ENTRIES_MAX 10000

struct snapshot_entry {
    char *name; /* relative, raw bytes as on disk */
    uint64_t size;
    ino_t ino;
    struct timespec ctime; /* a program can set mtime, not this */
    struct timespec mtime;
};

struct snapshot {
    struct snapshot_entry *items; /* sorted by name */
    size_t n;
    bool cut; /* there was more than the bounds allow */
};

#define SNAPSHOT_INIT                                                                              \
    {                                                                                              \
        0                                                                                          \
    }
#define AUTO_SNAPSHOT AUTO(snapshot_clear)

int snapshot_take(const struct sandbox *sb, struct snapshot *out, struct err *e);
void snapshot_clear(struct snapshot *s);

enum snapshot_change { SNAPSHOT_CREATED, SNAPSHOT_MODIFIED, SNAPSHOT_DELETED };

/* Calls each for every difference, in order of names. entry is from after, for deletions from
 * before. */
void snapshot_diff(const struct snapshot *before, const struct snapshot *after,
                   void (*each)(void *ctx, const struct snapshot_entry *entry,
                                enum snapshot_change change),
                   void *ctx);

const char *snapshot_change_name(enum snapshot_change c); /* created, modified, deleted */

#endif
