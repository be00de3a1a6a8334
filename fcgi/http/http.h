/*
 * MCP's HTTP rules for FastCGI and CGI: authentication, the format of a request, the status of its
 * answer, and when it is an event stream.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_H
#define SANDCGI_FCGI_HTTP_HTTP_H

#include "fcgi/app.h"
#include "fcgi/http/http_request.h"

/* Answers one request and logs one line about it. */
void http_serve(const struct app *app, const struct http_source *source);

#endif
