/* The FastCGI front end: one worker process, one request at a time. The one user of libfcgi besides
 * the hub to come. */
#ifndef SANDCGI_FCGI_HTTP_FASTCGI_H
#define SANDCGI_FCGI_HTTP_FASTCGI_H

#include "fcgi/app.h"

/*
 * Serves requests from listen_fd (non-blocking, shared with other workers) until SIGTERM, which
 * takes effect between requests. Returns 0 then, -1 when the socket is unusable.
 */
int fastcgi_serve(const struct app *app, int listen_fd, struct err *e);

#endif
