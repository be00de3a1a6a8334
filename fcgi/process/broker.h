/* The broker as the front ends start it. */
#ifndef SANDCGI_FCGI_PROCESS_BROKER_H
#define SANDCGI_FCGI_PROCESS_BROKER_H

#include "common/broker/server.h"
#include "fcgi/settings.h"

#include <stdbool.h>

/* The broker's configuration. Pointers are borrowed from s. client_uid: the account that may
 * connect besides the broker's own. */
struct broker_config broker_config_of(const struct settings *s, uid_t client_uid);

/*
 * CGI and stdio need a broker too. Finds the one at SANDCGI_BROKER, or starts a private one, which
 * ends with this process (also when it is killed). s->broker is its socket afterwards, and
 * s->events that of the private one's events.
 */
int private_broker_ensure(struct settings *s, struct err *e);

/* Was a private one started? */
bool private_broker_is_ours(void);

/* Ends the private one, if there is one, after its jobs, and removes its socket. */
void private_broker_end(void);

#endif
