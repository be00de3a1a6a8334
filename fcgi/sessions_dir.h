/* The directory of the older revisions' sessions: SANDBOX_ROOT/.sessions. */
#ifndef SANDCGI_FCGI_SESSIONS_DIR_H
#define SANDCGI_FCGI_SESSIONS_DIR_H

#include "fcgi/process/account.h"
#include "fcgi/settings.h"

/*
 * Makes the directory if need be (and SANDBOX_ROOT itself), gives it to the workers' account with
 * mode 0700, and opens it: workers keep using the descriptor after giving up root. Returns the
 * descriptor or -1.
 */
int sessions_dir_open(const struct settings *s, const struct account *workers, struct err *e);

#endif
