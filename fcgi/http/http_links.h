/*
 * Requests whose signed link is the key; no token is asked for. They set a->status and a->what.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_LINKS_H
#define SANDCGI_FCGI_HTTP_HTTP_LINKS_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

/*
 * PUT /uploads/<ticket>: the body becomes a file of the ticket's conversation. Our nginx has
 * written it to a file (SANDCGI_BODY_FILE), which is moved; from another web server it is streamed
 * to a staging file. Memory use does not depend on its size.
 */
bool http_upload_is(const struct http_request *r);
void http_upload_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/* The question of our nginx, before it serves a file or accepts a body: is the link valid? 204, or
 * 403 with the status for the client as Sandcgi-Verdict: nginx takes no other status for a "no". */
void http_check_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/*
 * GET of an archive, from a link of download_archive: relays the bytes in pieces as the broker
 * makes them. In plain text: 403 for a link that is invalid or expired, 404 when there are no
 * files. An error in the middle breaks the connection off, so that a part is not taken for the
 * whole.
 */
bool http_archive_is(const struct http_request *r);
void http_archive_serve(const struct app *app, struct http_request *r, struct http_answer *a);

#endif
