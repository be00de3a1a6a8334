/*
 * What a sandbox takes on the disk: blocks, not lengths, so that a sparse file counts as what is
 * written of it, and a file with several names counts once.
 */
#ifndef SANDCGI_SANDBOX_FILES_USAGE_H
#define SANDCGI_SANDBOX_FILES_USAGE_H

#include "common/sandbox/sandbox_root.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define USAGE_DEPTH_MAX 800 /* folders in folders; deeper ones are not looked into */

struct usage {
    uint64_t bytes;
    uint64_t files; /* everything that has a name: folders, links and the like too */
    bool partial;   /* there is more: folders too deep, or counting ended at `enough` */
};

/* What one entry adds to the bytes. */
uint64_t usage_of(const struct stat *st);

/*
 * Counts all of it, beside programs that may be changing it; links are not followed, and folders
 * that cannot be read count as empty. enough: counting ends when either number is above it (NULL:
 * never). -1 only when the system fails (descriptors, memory, disk).
 */
int usage_measure(const struct sandbox *sb, const struct usage *enough, struct usage *out,
                  struct err *e);

#endif
