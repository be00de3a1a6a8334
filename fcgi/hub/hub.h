/*
 * The hub: one process that holds the streams that wait (GET /mcp of the older revisions,
 * subscriptions/listen of the modern one, and replays), so that waiting clients use up no workers.
 * Event-driven; the only thing that blocks is libfcgi taking in a request that the web server has
 * sent whole. It also sweeps the sessions' directory.
 */
#ifndef SANDCGI_FCGI_HUB_HUB_H
#define SANDCGI_FCGI_HUB_HUB_H

#include "fcgi/app.h"

/* Raises the limit of open files for so many streams; before root is given up. A limit that stays
 * lower is logged. */
void hub_raise_limits(uint64_t max_streams);

/*
 * Serves listen_fd (FastCGI) and events_fd (see events.h) until SIGTERM, then ends every stream in
 * order. Returns 0, or -1 when a socket is unusable.
 */
int hub_serve(const struct app *app, int listen_fd, int events_fd, struct err *e);

#endif
