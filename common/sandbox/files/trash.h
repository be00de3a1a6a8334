/*
 * .trash: where folders go that are to be removed, in one step, so that nobody sees one half
 * removed. What is in them was a program's: trees of any depth, modes of any kind, names of any
 * bytes, and a program may be writing there still. Nothing is followed, everything is beneath
 * descriptors.
 */
#ifndef SANDCGI_SANDBOX_FILES_TRASH_H
#define SANDCGI_SANDBOX_FILES_TRASH_H

#include "common/sandbox/sandbox_root.h"

#define TRASH_NAME_LEN 32

/* Moves the folder name of at_fd there; its new name is written to out. ERR_NOT_FOUND, ERR_IO. */
int trash_take(const struct sandbox_root *root, int at_fd, const char *name, char out[],
               struct err *e);

/* Removes all that is there, and what an earlier process left half-way; what a program puts there
 * meanwhile may stay for the next time. As long as it takes; several may be at it at once. */
void trash_empty(const struct sandbox_root *root);

#endif
