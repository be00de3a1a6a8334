/*
 * Which store it is: an object with a random id in it, and a file with the same id here. An empty
 * directory on which nothing is mounted would otherwise be taken for a store that has lost
 * everything.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"
#include "common/store/store.h"
#include "common/store/store_settings.h"

/*
 * Is it the store that this machine has used before? The first time each remembers the other. The
 * settings naming another place, all is saved there anew. ERR_UNAVAILABLE: it cannot be asked, or
 * it is not the one: a directory that is not mounted, another prefix.
 */
int store_identify(struct store *store, const struct store_settings *s,
                   const struct sandbox_root *root, struct err *e);
