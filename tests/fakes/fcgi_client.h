/* The web server's side of FastCGI, for tests of the front ends. */
#pragma once

#include "common/base/buf.h"

#define FCGI_CLIENT_ID 1 /* of every request */

/* Connects to a socket's path; fails the test after timeout_ms without a listener. */
int fcgi_client_connect(const char *path, int timeout_ms);

/* The records of a request. params: name, value, ..., NULL. */
void fcgi_client_add_request(struct buf *out, const char *const *params, const char *body);

/* Reads standard output up to the end of the request. 0; -1: the peer closed the connection before,
 * or nothing came for timeout_ms. */
int fcgi_client_read_answer(int fd, struct buf *out, int timeout_ms);

/* Reads until standard output holds part; likewise. */
int fcgi_client_read_until(int fd, const char *part, struct buf *out, int timeout_ms);
