/*
 * Disk quotas of the kernel: a sandbox's bounds as the limits of its user, which owns its files and
 * no others. A program meets them at once (EDQUOT); the server, which is root, only by its own
 * checks (quota.h). They are user quotas, not project quotas: a file's owner can take it out of its
 * project, but cannot give it away.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

/* Finds out whether root's file system and this process's rights allow them (root->user_quotas),
 * and says so in one line of the log. */
void user_quota_detect(struct sandbox_root *root);

/* Sets the limits of a sandbox's user to root->bounds, if they differ; nothing without
 * root->user_quotas, or if no sandbox has a user of this number. A failure is logged: looks at the
 * disk have to do then. */
void user_quota_set(const struct sandbox_root *root, uid_t uid);
/* Removes the limits. */
void user_quota_drop(const struct sandbox_root *root, uid_t uid);

/* Has the user files on the file system? */
bool user_quota_has_files(const struct sandbox_root *root, uid_t uid);
