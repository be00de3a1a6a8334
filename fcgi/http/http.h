/*
 * MCP's HTTP rules for FastCGI and CGI alike: who may ask, what a request must look like, which
 * status an answer gets, and when it is an event stream. The front ends give it parameters (CGI
 * names), a body to read and a pipe to write to.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_H
#define SANDCGI_FCGI_HTTP_HTTP_H

#include "fcgi/app.h"
#include "fcgi/http/http_request.h"

/* Answers one request and logs one line about it. */
void http_serve(const struct app *app, const struct http_source *source);

#endif
