/*
 * The machine's own files, for a server that works for its own user (stdio): only what lies beneath
 * allowed directories. Links below them are not followed, so none leads out.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define LOCAL_DIRS_MAX 32
#define LOCAL_PATH_MAX 4096

struct local_dirs {
    char *paths[LOCAL_DIRS_MAX]; /* absolute, without a slash at the end */
    size_t n;
};

#define AUTO_LOCAL_DIRS AUTO(local_dirs_clear)

/* Adds absolute paths, separated by commas ("" none). ERR_INVALID for one that is relative or the
 * root itself, ERR_LIMIT over LOCAL_DIRS_MAX. */
int local_dirs_add(struct local_dirs *dirs, const char *list, struct err *e);
/* Adds what a file: URI of this machine names; anything else, and the root itself, is passed over.
 */
void local_dirs_add_uri(struct local_dirs *dirs, const char *uri);
void local_dirs_clear(struct local_dirs *dirs);

/*
 * Opens a regular file, or a folder, by its absolute path; returns the descriptor. ERR_DENIED when
 * the path lies beneath none of the directories or leads over a link, ERR_NOT_FOUND when there is
 * nothing of that kind, ERR_INVALID for a path that is relative or holds "." or "..".
 */
int local_open_file(const struct local_dirs *dirs, const char *path, struct stat *out,
                    struct err *e);
int local_open_folder(const struct local_dirs *dirs, const char *path, struct err *e);

/*
 * Puts size bytes of from_fd (from its current offset) at path, whose folder must be there: written
 * beside it, then renamed; mode 0644 as the umask allows. ERR_EXISTS without replace when something
 * is there; else as above.
 */
int local_put_file(const struct local_dirs *dirs, const char *path, int from_fd, uint64_t size,
                   bool replace, struct err *e);
