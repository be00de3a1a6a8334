/* GET of an archive: what a link of download_archive leads to. The signature is the key. */
#ifndef SANDCGI_FCGI_HTTP_HTTP_ARCHIVE_H
#define SANDCGI_FCGI_HTTP_HTTP_ARCHIVE_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

/* Is the request for a path of archives? */
bool http_archive_is(const struct http_request *r);

/*
 * Answers it: the archive's bytes as the broker makes them, of which never more than a piece is
 * held here; 403 for a link that is not ours, altered or expired, 404 when there is nothing (any
 * more), in plain text. What fails in the middle breaks the connection off, so that nobody takes a
 * part for the whole. Sets a->status, a->what and a->sent.
 */
void http_archive_serve(const struct app *app, struct http_request *r, struct http_answer *a);

#endif
