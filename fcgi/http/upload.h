/*
 * PUT /uploads/<ticket>: the body becomes a file of the conversation whose ticket it is. No token
 * is asked for, the signed link is the key. Behind our nginx the body is in a file by then
 * (SANDCGI_BODY_FILE), which only has to be moved; from any other web server it is streamed to
 * where it will be moved from. Neither takes memory that grows with it.
 */
#ifndef SANDCGI_FCGI_HTTP_UPLOAD_H
#define SANDCGI_FCGI_HTTP_UPLOAD_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

bool upload_is(const struct http_request *r);
void upload_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/* Is the link good, and its ticket for a body of this size (UINT64_MAX: not known yet)? The
 * ticket's id, to be freed, or NULL. */
char *upload_ticket(const struct app *app, const struct http_request *r, uint64_t size,
                    struct err *e);
/* The status that says what went wrong. */
int upload_status(enum err_kind kind);

#endif
