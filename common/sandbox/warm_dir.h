/*
 * Warm directories: /data of a warm container. Each is an empty SANDBOX_ROOT/.pool/<name> with
 * owner and mode of a sandbox, and becomes one by a single rename that replaces nothing; a bind
 * mount follows the directory, not its name. Names cannot be guessed or listed, and nginx serves
 * none.
 */
#pragma once

#include "common/sandbox/sandbox.h"

#include <sys/stat.h>

#define WARM_DIR_NAME_LEN 24

/* No container waits that long: older directories are left over. */
#define WARM_DIR_LEFT_OVER_S 7200

/* Makes one; its name is written to out_name. ERR_IO, also when this file system has no rename that
 * replaces nothing (warm directories are then of no use). */
int warm_dir_make(const struct sandbox_root *root, char out_name[WARM_DIR_NAME_LEN + 1],
                  struct err *e);

/* Its owner and its inode; false: it is not there. */
bool warm_dir_stat(const struct sandbox_root *root, const char *name, struct stat *out);

/* Its path on the engine's host. Caller frees. */
char *warm_dir_host_path(const struct sandbox_root *root, const char *name);

/*
 * Makes it the sandbox of that name and opens it, as sandbox_open_named does. ERR_EXISTS: the
 * sandbox exists already, and the warm directory is unchanged. ERR_NOT_FOUND: there is no such
 * warm directory. Of several processes that try at once for one sandbox exactly one succeeds.
 */
int warm_dir_adopt(const struct sandbox_root *root, const char *name, const char *sandbox_dir,
                   const char *tenant, struct sandbox *out, struct err *e);

/* Removes one; with content of a program it goes to .trash. Does nothing when there is none. */
void warm_dir_remove(const struct sandbox_root *root, const char *name);

/* Removes those older than min_age_s: WARM_DIR_LEFT_OVER_S for those of an earlier broker. Younger
 * ones may belong to another broker with the same SANDBOX_ROOT. */
void warm_dir_sweep(const struct sandbox_root *root, int64_t min_age_s);
