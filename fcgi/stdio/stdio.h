/* The stdio front end (MCP transports, "stdio"): one JSON-RPC message per line; standard output
 * carries nothing else. */
#ifndef SANDCGI_FCGI_STDIO_STDIO_H
#define SANDCGI_FCGI_STDIO_STDIO_H

#include "fcgi/app.h"

/*
 * Serves until the end of standard input. events_fd: where others tell what has changed (see
 * events.h); -1: nobody does. Returns 0, or -1 when standard input or output fails.
 */
int stdio_serve(const struct app *app, int events_fd, struct err *e);

#endif
