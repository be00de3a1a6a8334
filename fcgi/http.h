/*
 * MCP's HTTP rules for FastCGI and CGI alike: who may ask, what a request must look like, which
 * status an answer gets. The front ends give it parameters (CGI names), a body to read and a pipe
 * to write to.
 */
#ifndef SANDCGI_FCGI_HTTP_H
#define SANDCGI_FCGI_HTTP_H

#include "fcgi/app.h"

#include <stddef.h>

/* One request as its front end presents it. */
struct http_source {
    /* The value of a CGI parameter, or NULL; valid until the request ends. */
    const char *(*param)(void *ctx, const char *name);
    /* Up to len bytes of the body; 0 at its end, -1 on trouble. */
    long (*read)(void *ctx, char *data, size_t len);
    /* The whole answer, in CGI form ("Status: …"). -1: the client is gone. */
    int (*write)(void *ctx, const char *data, size_t len);
    void *ctx;
    int cancel_fd; /* hangs up when the client leaves; -1: none */
};

/* Answers one request and logs one line about it. */
void http_serve(const struct app *app, const struct http_source *source);

#endif
