/*
 * Removing trees that a program made: of any depth, with any names and modes, and changed during
 * the removal. No link is followed and no path is used, and few descriptors are open at any depth:
 * a folder that lies too deep is moved up first. .trash holds folders that are to be removed: a
 * rename puts them there, so that no folder is seen half removed.
 */
#pragma once

#include "common/base/clock.h"
#include "common/sandbox/sandbox_root.h"

#include <stdint.h>

#define TRASH_NAME_LEN 32

struct tree_bounds {
    const struct sandbox_watch *watch; /* NULL: none */
    uint64_t entries;                  /* files and folders, those in *gone included */
    struct deadline end;
};

/*
 * Removes the folder name of at_fd and its content, as far as modes allow; the first failure ends
 * it. The number of removed entries is added to *gone, also after a failure: ERR_LIMIT at the
 * bounds, or when a program fills the folder as fast; ERR_DENIED; ERR_IO. 0 with nothing added: it
 * has vanished or is no folder.
 */
int tree_remove(int at_fd, const char *name, struct tree_bounds bounds, uint64_t *gone,
                struct err *e);

/* Sets *e to what errno says of something that was to be deleted; -1. */
int tree_cannot(const char *what, struct err *e);

/* Moves the folder name of at_fd to a folder of SANDBOX_ROOT; its new name is written to out.
 * ERR_NOT_FOUND, ERR_IO. */
int tree_take(const struct sandbox_root *root, int at_fd, const char *name, const char *to,
              char out[], struct err *e);
/* The same, to .trash. */
int trash_take(const struct sandbox_root *root, int at_fd, const char *name, char out[],
               struct err *e);

/* Removes the content of .trash, whatever its modes and however long it takes. What a program adds
 * meanwhile may stay for the next time. Several processes may do this at once. */
void trash_empty(const struct sandbox_root *root);
