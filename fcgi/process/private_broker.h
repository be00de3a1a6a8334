/*
 * CGI and stdio need a broker too. When none answers at SANDCGI_BROKER they start one of their own
 * for the life of the process, so that tools have one way to run programs.
 */
#ifndef SANDCGI_FCGI_PROCESS_PRIVATE_BROKER_H
#define SANDCGI_FCGI_PROCESS_PRIVATE_BROKER_H

#include "fcgi/settings.h"

#include <stdbool.h>

/*
 * Finds or starts a broker; s->broker is its socket afterwards. The private one ends with this
 * process (also when it is killed), and s->events is then where it tells what has changed.
 */
int private_broker_ensure(struct settings *s, struct err *e);

/* Was one started? */
bool private_broker_is_ours(void);

/* Ends a broker that ensure started, after its jobs, and removes its socket. Nothing to do
 * otherwise. */
void private_broker_end(void);

#endif
