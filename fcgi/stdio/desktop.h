/* Settings for a client that starts "sandcgi stdio" and gives none. */
#pragma once

#include "common/base/err.h"

/*
 * The path of the user's own settings, $XDG_STATE_HOME/sandcgi/sandcgi.env (else below
 * ~/.local/state). The first call makes it, with a secret, mode 0600, and the folder of the files
 * beside it; several at once make one. Caller frees; NULL: neither variable is set, or the disk
 * refused.
 */
char *desktop_settings(struct err *e);

/* The same, where it is there; else NULL. For commands that its user types. */
char *desktop_settings_find(void);
