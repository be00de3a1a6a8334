/* Taking over from a server that runs (SANDCGI_TAKEOVER). */
#pragma once

#include "fcgi/settings.h"

#include <signal.h>

/*
 * Starts a child that waits until programs can run here, over the workers' end of the connections
 * to the broker, for two minutes at most: its exit status is 0 then. It closes lock_fd (-1: none),
 * which keeps SANDBOX_ROOT. mask: its blocked signals. 0: it cannot be started, which was logged.
 */
pid_t takeover_wait(const struct settings *s, int conns_fd, int lock_fd, const sigset_t *mask);
