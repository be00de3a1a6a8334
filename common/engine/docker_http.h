/*
 * A REST client of one engine address: requests with JSON bodies, one at a time, over one
 * kept-alive connection. The API version is agreed on before the first request: the engine's
 * own, 1.44 at most, 1.40 at least. Belongs to the process that made it; connects lazily and again
 * when the engine comes back.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/engine/engine.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define DOCKER_CONNECT_MS   2000
#define DOCKER_API_MINOR_LO 40 /* Docker 19.03, Podman 3 */
#define DOCKER_API_MINOR_HI                                                                        \
    44 /* the newest that we know; also the oldest that Docker 29 accepts                          \
        */

struct docker_http;

/* The caller's descriptor during requests and streams, and whether it has cancelled. All zero:
 * none. */
struct docker_attend {
    const struct engine_attend *caller; /* borrowed; NULL: none */
    bool cancelled;
};

/* caller may be NULL. */
void docker_attend_begin(struct docker_attend *a, const struct engine_attend *caller);
void docker_attend_end(struct docker_attend *a);

/* As poll(2) of the one descriptor own, with the caller's descriptor; own->revents is set. -1 on
 * failures other than an interruption. */
int docker_attend_poll(struct docker_attend *a, struct pollfd *own, int timeout_ms);

/* libcurl's and OpenSSL's own start, which forked processes inherit; more than once does no harm.
 */
bool docker_http_set_up(void);

/* ERR_INVALID when the address is not unix:///path or tcp://host:port, or a certificate is missing.
 */
struct docker_http *docker_http_new(const struct engine_address *address, struct err *e);
void docker_http_free(struct docker_http *h);

/* The caller's descriptor, polled while calls and streams of h wait; none at first. A call goes on
 * to its end when the caller cancels. */
struct docker_attend *docker_http_attend(struct docker_http *h);

/* Agrees on the version if that is still to do, and finds out the other facts; ERR_UNAVAILABLE
 * without an answer. */
int docker_http_ready(struct docker_http *h, struct err *e);
/* All zero before it is ready. Borrowed. */
const struct engine_facts *docker_http_facts(const struct docker_http *h);

/*
 * Sends method to path ("/containers/…", without the version) with an optional JSON body and reads
 * the whole reply into out (emptied first). Returns the HTTP status, or -1: ERR_UNAVAILABLE engine
 * not reachable or silent for timeout_ms, ERR_LIMIT reply over out's max.
 */
int docker_http_call(struct docker_http *h, const char *method, const char *path, const char *body,
                     int timeout_ms, struct buf *out, struct err *e);

/* What docker_http_call returned: 0 for a status below 400. -1: no status (e is set already), or a
 * refusal in the engine's words: 404 is ERR_NOT_FOUND, all else ERR_REFUSED. */
int docker_http_check(int status, const char *body, size_t len, struct err *e);

/* Appends text percent-encoded for use in a query. */
void docker_http_escape(struct buf *out, const char *text);

/* A new connected CURL easy handle (CURLOPT_CONNECT_ONLY) to the same address; the caller cleans it
 * up. The caller's descriptor is not polled while it connects, DOCKER_CONNECT_MS at most. */
void *docker_http_raw(struct docker_http *h, struct err *e);
