/*
 * The master: opens the sockets, starts one broker, the hub and the workers, starts again what dies
 * (at once when it had lived a while, with growing pauses when it dies young), and ends them in
 * order.
 *
 *   SIGTERM, SIGINT   drain: workers finish their request, the broker its runs, then everything
 * ends; a second one ends at once SIGHUP            read the settings again; a new broker and new
 * workers take over, the old ones drain
 */
#ifndef SANDCGI_FCGI_PROCESS_MASTER_H
#define SANDCGI_FCGI_PROCESS_MASTER_H

#include "fcgi/settings.h"

/* config_path: the file for SIGHUP (NULL: none). take_settings is owned by the master from here on.
 * Returns the exit status. */
int master_run(struct settings *take_settings, const char *config_path);

#endif
