/*
 * What a sandbox takes on the disk, and the bounds of what one conversation keeps (root->bounds),
 * checked before something is added: before a run, an upload, an unpacking, an installation.
 * Without quotas of the kernel (user_quota.h) a running program may exceed it for a moment. Its
 * supervisor looks (supervisor/disk_watch.h), ends it, and removes what is too much (trim.h).
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define USAGE_DEPTH_MAX  800         /* nested folders; deeper ones are not counted */
#define QUOTA_LOOK_BYTES (16u << 20) /* of a content, between two checks of the disk */
#define QUOTA_STEP_BYTES (1u << 20)  /* by which the room of one grows whose size is not known */

/* The bytes of one entry: its blocks, not its length (a sparse file counts as what is written of
 * it), divided by its names. */
uint64_t usage_of(const struct stat *st);

/*
 * Counts the whole sandbox, which programs may be changing; links are not followed, and folders
 * that cannot be read count as empty. Counting ends when either number is above enough (NULL: no
 * bound). -1 only when the system fails (descriptors, memory, disk).
 */
int usage_measure(const struct sandbox *sb, const struct usage *enough, struct usage *out,
                  struct err *e);

/*
 * May more_bytes be added to the sandbox (0: is it within its bounds)? Counts the sandbox up to its
 * bounds. ERR_LIMIT with a sentence for the client otherwise: it names the setting (SANDBOX_QUOTA,
 * SANDBOX_FILES, SANDBOX_DISK_RESERVE) or the tenant's limit (bytes), the sizes and a remedy. Here
 * and below a sandbox whose fd is -1 does not exist yet.
 */
int quota_check(const struct sandbox *sb, uint64_t more_bytes, struct err *e);

/* The same with a usage that is known already. */
int quota_check_usage(const struct sandbox *sb, const struct usage *now, uint64_t more_bytes,
                      struct err *e);

/* The same for a content that is on the file system already and only has to be moved in: the
 * reserve must be untouched. */
int quota_check_arrived(const struct sandbox *sb, uint64_t bytes, struct err *e);

/* Is there room for a content of so many bytes, there of which are on the disk, while it is on its
 * way to a sandbox that takes now? What else is on its way (sb->coming) has its room already; sb
 * needs no fd. */
int quota_check_coming(const struct sandbox *sb, const struct usage *now, uint64_t bytes,
                       uint64_t there, struct err *e);

/* Only the file system's reserve: may more_bytes be written? */
int quota_check_disk(int fd, const struct sandbox_bounds *b, uint64_t more_bytes, struct err *e);
/* The same before the next piece of a content of which written bytes are there, every
 * QUOTA_LOOK_BYTES: other processes write as well. */
int quota_check_piece(int fd, const struct sandbox_bounds *b, uint64_t written, uint64_t piece,
                      struct err *e);
/* What fd's file system has left, the reserve included; UINT64_MAX: unknown. */
struct usage disk_free_on(int fd);

/* What may still be added; UINT64_MAX: no bound. The file system's reserve bounds bytes, too.
 * ERR_LIMIT as quota_check(sb, 0) when nothing is left. */
int quota_left(const struct sandbox *sb, struct usage *out, struct err *e);

/* The most that the sandbox may take: SANDBOX_QUOTA, or what its tenant's other conversations leave
 * of the tenant's limit, if that is less; 0: no bound. */
uint64_t quota_bytes(const struct sandbox *sb);

/* The sandbox's usage as far as its bounds go: partial when it is above them. */
int quota_measure(const struct sandbox *sb, struct usage *out, struct err *e);
/* The same, but nothing is counted of a sandbox without bounds. */
int quota_count(const struct sandbox *sb, struct usage *out, struct err *e);

/*
 * Does the sandbox take too much now: more than its bounds, or part of the reserve? For the latter
 * it must have taken, since then, at least a share of what the disk has lost since. Then *why is
 * the reason, a clause, and *most is what it may keep.
 */
#define QUOTA_BLAME_SHARE 32 /* more sandboxes do not grow at once */
bool quota_over(const struct sandbox *sb, const struct disk_mark *then, const struct usage *now,
                struct usage *most, struct err *why);
