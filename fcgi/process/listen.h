/* The listening sockets of the house. */
#ifndef SANDCGI_FCGI_PROCESS_LISTEN_H
#define SANDCGI_FCGI_PROCESS_LISTEN_H

#include "fcgi/process/account.h"
#include "fcgi/settings.h"

/*
 * The FastCGI socket: handed over by systemd (LISTEN_FDS) or spawn-fcgi (descriptor 0), else opened
 * as the settings say. Non-blocking and CLOEXEC. Returns the descriptor or -1.
 */
int listen_fastcgi(const struct settings *s, struct err *e);

/* The hub's FastCGI socket, with the same mode and group. */
int listen_hub(const struct settings *s, struct err *e);

/* The broker's socket, which only the workers' account may open. */
int listen_broker(const struct settings *s, const struct account *workers, struct err *e);

#endif
