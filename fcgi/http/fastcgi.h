/* The loop of a process that answers FastCGI requests, one at a time. */
#pragma once

#include "fcgi/http/http_answer.h"
#include "fcgi/process/calls.h"

/* Answers one request. */
typedef void fastcgi_server(const void *ctx, const struct http_source *source);

/*
 * Serves listen_fd (non-blocking, shared with other processes) until SIGTERM, and then, if the
 * server ends, the connections in the queue. place: where calls are counted; all zero: nowhere.
 * Returns 0, or -1 when the socket is unusable.
 */
int fastcgi_loop(int listen_fd, const struct call_place *place, fastcgi_server *serve,
                 const void *ctx, struct err *e);
