/*
 * A request as MCP's HTTP rules see it: the parameters that matter, by their CGI names. Nothing
 * else of a request is ever looked at. Used by the workers, the hub and CGI.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_REQUEST_H
#define SANDCGI_FCGI_HTTP_HTTP_REQUEST_H

#include "common/mcp/server.h"

#include <stdbool.h>
#include <stddef.h>

/* One request as its front end presents it. */
struct http_source {
    /* The value of a CGI parameter, or NULL; valid until the request ends. */
    const char *(*param)(void *ctx, const char *name);
    /* Up to len bytes of the body; 0 at its end, -1 on trouble. */
    long (*read)(void *ctx, char *data, size_t len);
    /* A piece of the answer, in CGI form ("Status: …"); it is on its way when this returns. -1: the
     * client is gone. */
    int (*write)(void *ctx, const char *data, size_t len);
    /* Ends the answer here, while the request goes on being worked on. NULL: not possible. */
    void (*hang_up)(void *ctx);
    void *ctx;
    int cancel_fd; /* hangs up when the client leaves; -1: none */
};

/* NULL: absent or empty. Valid as long as the source's parameters are. */
struct http_request {
    const struct http_source *source;
    const char *method, *uri, *content_type, *content_length;
    const char *host, *origin, *accept, *authorization;
    const char *mcp_version, *mcp_method, *mcp_name, *mcp_session, *last_event_id;
    const char *asked_headers; /* Access-Control-Request-Headers */
    const char *tenant, *secret;
    const char *tools;     /* which set of tools this place offers; NULL: the setting's */
    const char *check;     /* what our nginx asks on its own account: "file", "upload" */
    const char *path;      /* … the file's, as nginx would serve it, behind "/files/" */
    const char *body_file; /* where our nginx has put the body */
};

void http_request_read(const struct http_source *source, struct http_request *out);

/* The caller as MCP sees it, its headers included; r must outlive it. Without out and takes_text:
 * who can send before the answer sets them. */
struct mcp_origin http_request_origin(struct http_request *r);

/* mcp_origin.param_header; ctx is the struct http_request. */
const char *http_request_param_header(void *ctx, const char *name);

bool http_request_is(const struct http_request *r, const char *method);

#endif
