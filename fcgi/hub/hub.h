/*
 * The hub: one process that holds the streams that stay open (GET /mcp of the older revisions,
 * subscriptions/listen of the modern one, and replays), so that waiting clients occupy no worker.
 * Its loop waits for nothing but events: what has to ask the broker or to walk a directory is done
 * by short-lived children (hub_jobs.h).
 */
#ifndef SANDCGI_FCGI_HUB_HUB_H
#define SANDCGI_FCGI_HUB_HUB_H

#include "fcgi/app.h"

/*
 * Serves listen_fd (FastCGI, non-blocking) and events_fd (see events.h) until SIGTERM, then ends
 * every stream in order. Returns 0, or -1 when a socket is unusable.
 */
int hub_serve(const struct app *app, int listen_fd, int events_fd, struct err *e);

#endif
