/* Ending in order: how a worker and the hub hear that they shall stop. Both live around libfcgi. */
#ifndef SANDCGI_FCGI_PROCESS_STOP_H
#define SANDCGI_FCGI_PROCESS_STOP_H

#include "common/base/err.h"

#include <signal.h>
#include <stdbool.h>

/*
 * Call it after FCGX_Init, which installs handlers of its own: ours replace them. TERM is blocked
 * from here on except with the mask *while_waiting, for ppoll and the like, so that it takes effect
 * between requests only. INT is the master's to hear.
 */
int stop_prepare(sigset_t *while_waiting, struct err *e);

/* Has TERM come? */
bool stop_requested(void);

#endif
