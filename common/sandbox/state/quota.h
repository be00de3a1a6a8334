/*
 * The bounds of what one conversation keeps (root->bounds), looked at before something is added:
 * before a run, an upload, an unpacking, an installation. It is no quota of the kernel's: a program
 * that runs may pass it, its next run is refused then.
 */
#ifndef SANDCGI_SANDBOX_STATE_QUOTA_H
#define SANDCGI_SANDBOX_STATE_QUOTA_H

#include "common/sandbox/files/usage.h"
#include "common/sandbox/sandbox.h"

#include <stdint.h>

#define QUOTA_LOOK_BYTES (16u << 20) /* of a content under way, between two looks at the disk */

/*
 * May more_bytes be added to the sandbox (0: is it within its bounds as it is)? Walks the sandbox,
 * but no further than its bounds. ERR_LIMIT with a sentence for the client otherwise: it names the
 * setting (SANDBOX_QUOTA, SANDBOX_FILES, SANDBOX_DISK_RESERVE), the sizes and what to do. Here and
 * below a sandbox whose fd is -1 is one that is not there yet.
 */
int quota_check(const struct sandbox *sb, uint64_t more_bytes, struct err *e);

/* The same without a way, for whoever knows what the sandbox takes. */
int quota_check_usage(const struct sandbox *sb, const struct usage *now, uint64_t more_bytes,
                      struct err *e);

/* The same for a content that lies on the file system already and only has to be moved in: the
 * reserve must not have been touched, by whomever. */
int quota_check_arrived(const struct sandbox *sb, uint64_t bytes, struct err *e);

/* Only the file system's reserve: may more_bytes be written at all? */
int quota_check_disk(int fd, uint64_t reserve, uint64_t more_bytes, struct err *e);
/* The same before the next piece of a content of which written bytes are there: other processes
 * write as well. Looks every QUOTA_LOOK_BYTES. */
int quota_check_piece(int fd, uint64_t reserve, uint64_t written, uint64_t piece, struct err *e);

/*
 * What may still be added, for whoever adds many files: UINT64_MAX where there is no bound; bytes
 * are bounded by the file system's reserve too. ERR_LIMIT as quota_check(sb, 0) when there is
 * nothing left.
 */
int quota_left(const struct sandbox *sb, struct usage *out, struct err *e);

/* Is that above the conversation's bounds? Then *e (may be NULL) is the sentence. */
bool quota_exceeded(const struct sandbox_root *root, const struct usage *now, struct err *e);

#endif
