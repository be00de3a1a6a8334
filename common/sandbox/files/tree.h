/*
 * Removing trees that a program made: of any depth, with names of any bytes, and changed while we
 * are at it. Nothing is followed, everything is beneath descriptors, and those are few however deep
 * a program has dug: what lies too deep is moved up first. Internal to common/sandbox.
 */
#ifndef SANDCGI_SANDBOX_FILES_TREE_H
#define SANDCGI_SANDBOX_FILES_TREE_H

#include "common/base/clock.h"
#include "common/sandbox/sandbox_root.h"

#include <stdint.h>

struct tree_bounds {
    const struct sandbox_watch *watch; /* asked now and then; NULL: none */
    uint64_t entries;                  /* files and folders, those gone before among them */
    struct deadline end;
};

/*
 * Removes the folder name of at_fd and all that is in it, as far as modes allow; the first that
 * cannot be removed ends it. What is gone is added to *gone, also after a failure: ERR_LIMIT at
 * the bounds, or when a program fills the folder as fast; ERR_DENIED; ERR_IO. 0 with nothing added:
 * it is not there any more, or no folder.
 */
int tree_remove(int at_fd, const char *name, struct tree_bounds bounds, uint64_t *gone,
                struct err *e);

/*
 * Removes what is in the folder name of at_fd, whatever its modes, without bounds. What withstands
 * stays, and what a program puts there meanwhile may; several processes may be at it at once.
 */
void tree_empty(int at_fd, const char *name);

/* Sets *e to what errno says of something that was to be deleted; -1. */
int tree_cannot(const char *what, struct err *e);

#endif
