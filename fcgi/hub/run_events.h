/* Tells those who listen that a run has ended whose caller may not be there any more: what became
 * of its task, and which files it changed. */
#ifndef SANDCGI_FCGI_HUB_RUN_EVENTS_H
#define SANDCGI_FCGI_HUB_RUN_EVENTS_H

#include "common/broker/server.h"

/* broker_config.run_ended; ctx is the struct settings, constant. */
void run_events_send(void *ctx, const struct broker_run_news *news);

#endif
