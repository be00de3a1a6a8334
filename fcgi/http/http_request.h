/*
 * A request as MCP's HTTP rules see it: the parameters that matter, by their CGI names. Nothing
 * else of a request is ever looked at. Used by the workers, the hub and CGI.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_REQUEST_H
#define SANDCGI_FCGI_HTTP_HTTP_REQUEST_H

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"

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

/*
 * Checks: origin and host of the request (DNS rebinding), the web server's secret or the bearer
 * token, and the format of the body. Each returns 0, or -1 with the refusal in *a.
 */

/*
 * No Origin header is no browser. An Origin must be PUBLIC_BASE_URL's, the very host that was
 * called, or one of SANDCGI_ALLOWED_ORIGINS; the host must be PUBLIC_BASE_URL's, this machine's own
 * (localhost), or one of SANDCGI_ALLOWED_HOSTS. Sets a->allowed.
 */
int http_guard_origin(const struct app *app, const struct http_request *r, struct http_answer *a);

/* With SANDCGI_AUTH=nginx: the web server's secret (a->status 403). */
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
