/*
 * Owners: the user that a sandbox's programs run as, which owns its directory and its files. The
 * directory's owner on the disk is what counts: later containers of a conversation run as it.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#include <sys/stat.h>

#define SANDBOX_MODE 0755 /* of a sandbox's directory */

/*
 * Decides who owns sandboxes, by trying it on the file fd: root->owner if that is set, else a range
 * from which each sandbox gets its own, else this account for all of them (not root). Says what
 * fell short in one line of the log. ERR_INVALID names SANDBOX_USER.
 */
int owners_choose(struct sandbox_root *root, int fd, struct err *e);

/* For a new sandbox. */
struct sandbox_owner owner_new(const struct sandbox_root *root);

/* May a sandbox have this owner? Otherwise its tree was made under another
 * setting, or has not been given to its user yet. */
bool owner_is_right(const struct sandbox_root *root, const struct stat *st);

/* Gives the directory fd and all that is in it to owner, the directory last; nothing is followed.
 * What is deeper than 800 folders, or immutable, stays as it is. */
int owner_give_tree(int fd, struct sandbox_owner owner, struct err *e);

/* Opens a sandbox's directory, without its lock. No program can write to SANDBOX_ROOT, so its
 * entries may be named by path; a program owns its directory, and may have set a mode that only
 * root can open. -1 with errno. */
int owner_open_dir(int root_fd, const char *name);
