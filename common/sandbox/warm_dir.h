/*
 * Spare directories: what a waiting container has mounted as /data before anybody knows whose it
 * will be. Each is an empty SANDBOX_ROOT/.pool/<name> with owner and mode of a sandbox, and becomes
 * one by a single rename that replaces nothing; a bind mount follows the directory, not its name.
 * Nobody can guess a name, nginx serves none of them, and .pool cannot be listed.
 */
#ifndef SANDCGI_SANDBOX_WARM_DIR_H
#define SANDCGI_SANDBOX_WARM_DIR_H

#include "common/sandbox/sandbox.h"

#include <stdint.h>

#define WARM_DIR_NAME_LEN 24

/* What is older than this belongs to nobody: containers do not wait that long. */
#define WARM_DIR_LEFT_OVER_S 7200

/*
 * Makes one; its name is written to out_name. ERR_IO when that cannot be done, or when this file
 * system has no rename that replaces nothing (then spares are of no use here).
 */
int warm_dir_make(const struct sandbox_root *root, char out_name[WARM_DIR_NAME_LEN + 1],
                  struct err *e);

/* Its path on the engine's host. Caller frees. */
char *warm_dir_host_path(const struct sandbox_root *root, const char *name);

/*
 * Makes it the sandbox of (tenant, conversation) and opens that, as sandbox_open does. ERR_EXISTS:
 * there is such a sandbox already; the warm_dir stays what it was. ERR_NOT_FOUND: there is no such
 * warm_dir. Of several processes that try at once for one sandbox exactly one succeeds.
 */
int warm_dir_adopt(const struct sandbox_root *root, const char *name, const char *tenant,
                   const char *conversation, struct sandbox *out, struct err *e);

/* Removes one; with whatever a program put there it goes to .trash, which is emptied later. Does
 * nothing when there is none. */
void warm_dir_remove(const struct sandbox_root *root, const char *name);

/*
 * Removes those older than min_age_s: WARM_DIR_LEFT_OVER_S for what an earlier broker left behind.
 * Younger ones may belong to another broker on the same tree.
 */
void warm_dir_sweep(const struct sandbox_root *root, int64_t min_age_s);

#endif
