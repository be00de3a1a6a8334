/*
 * Who may come in: origin and host of the request (DNS rebinding), the web server's secret or the
 * bearer token, and the shape of what is sent. Each check returns 0, or -1 with the refusal in *a.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_GUARD_H
#define SANDCGI_FCGI_HTTP_HTTP_GUARD_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

/*
 * No Origin header is no browser. An Origin must be PUBLIC_BASE_URL's, the very host that was
 * called, or one of SANDCGI_ALLOWED_ORIGINS; the host must be PUBLIC_BASE_URL's, this machine's own
 * (localhost), or one of SANDCGI_ALLOWED_HOSTS. Sets a->allowed.
 */
int http_guard_origin(const struct app *app, const struct http_request *r, struct http_answer *a);

/* The web server's secret (a->status 403). */
int http_guard_front(const struct app *app, const struct http_request *r, struct http_answer *a);

/* Who is asking? Afterwards r->tenant is set. */
int http_guard_who(const struct app *app, struct http_request *r, struct http_answer *a);

/* What the place that was called offers; NULL: a->status 404. */
const struct mcp_server *http_guard_tools(const struct app *app, const struct http_request *r,
                                          struct http_answer *a);

/* Of a POST: its content type, and whether the client can take any kind of answer. */
int http_guard_shape(const struct http_request *r, struct http_answer *a);

/* The body, which must be as long as Content-Length says and at most max. */
int http_read_body(const struct http_request *r, uint64_t max, struct buf *body,
                   struct http_answer *a);

#endif
