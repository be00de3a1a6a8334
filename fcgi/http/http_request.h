/* An HTTP request: the CGI parameters that are used, and the checks that it must pass. */
#pragma once

#include "fcgi/app.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/oauth/judge_serve.h"

#define CHALLENGE_MAX 4096

/* NULL: absent or empty. Valid as long as the source's parameters are. */
struct http_request {
    const struct http_source *source;
    const char *method, *uri, *content_type, *content_length;
    const char *host, *origin, *accept, *authorization;
    const char *mcp_version, *mcp_method, *mcp_name, *mcp_session, *last_event_id;
    const char *range, *if_range, *if_match, *if_none_match, *if_modified_since;
    const char *if_unmodified_since;
    const char *asked_headers; /* Access-Control-Request-Headers */
    const char *tenant, *secret;
    const char *scope_list; /* what the token allows, as nginx says; NULL: everything */
    unsigned scopes;        /* the same, set by http_guard_who */
    struct token token;     /* the tenant of SANDCGI_AUTH=token is in it */
    const char *bearer;     /* "oauth": the token is an access token; NULL: a static one */
    const char *limits;     /* section of SANDBOX_TENANTS_FILE; NULL: the tenant's own */
    const struct judge_verdict *asked; /* about the access token; NULL: the judge is asked */
    char row[JUDGE_TEXT_MAX];          /* what that grants, which the former point into */
    char challenge[CHALLENGE_MAX];     /* a header of the answer */
    const char *address, *trace;       /* of the client, as the web server says; its traceparent */
    const char *tools;                 /* the set of tools at this location; NULL: the setting's */
    char tools_at[33];                 /* as its path names it */
    const char *answers;               /* "structured" where programs call; NULL: the setting's */
    const char *place;                 /* what the web server takes it for: PLACE_… of http.c */
    const char *network;               /* of mcp_origin; NULL: the setting's */
    const char *reuse;                 /* the same */
    const char *check;                 /* a question of our nginx: "upload" */
    const char *body_file;             /* our nginx has written the body there */
    const char *calls;                 /* most calls of a tenant at once; NULL: its share of all */
    const char *rate; /* not NULL: there were too many calls of the tenant in a short time */
    const char *edge_secret, *edge_route, *edge_again, *edge_standin; /* what an edge sends */
    struct mcp_edge edge; /* the same, set by http_guard_who when it is believed */
    bool behind_edge;
    bool must_free; /* set by http_guard_room: only a message that ends something has room */
};

void http_request_read(const struct http_source *source, struct http_request *out);

/* Notes in the log who calls, and the trace that the client names or else a new one; the line about
 * the answer, which ends the notes. */
void http_request_note(const struct http_request *r);
void http_request_log(const struct http_request *r, const struct http_answer *a, bool stream,
                      int64_t us);

/* The caller as MCP sees it; r must outlive it. out and takes_text are left to the worker. */
struct mcp_origin http_request_origin(struct http_request *r);

/* The message is for another node: the edge sends it there (nginx/edge.conf.in). It need not know
 * the tenant itself. Without a body nginx keeps its connection to this node. */
void http_send_on(struct http_request *r, const struct mcp_elsewhere *to, struct http_answer *a);

/* mcp_origin.param_header; ctx is the struct http_request. */
const char *http_request_param_header(void *ctx, const char *name);

bool http_request_is(const struct http_request *r, const char *method);

/* ---- checks: each returns 0, or -1 with the refusal in *a ---- */

/* For what needs no token: is the Host one that http_guard_origin lets in, an address, or absent?
 * Pages of other sites have none of these. */
bool http_host_is_known(const struct settings *s, const char *host);

/* Against DNS rebinding: an Origin (of browsers) must be PUBLIC_BASE_URL's, that of the called
 * host, or one of SANDCGI_ALLOWED_ORIGINS; the host must be PUBLIC_BASE_URL's, localhost, or one of
 * SANDCGI_ALLOWED_HOSTS. Sets a->allowed. */
int http_guard_origin(const struct app *app, const struct http_request *r, struct http_answer *a);

/* With SANDCGI_AUTH=nginx: the web server's secret (a->status 403). */
int http_guard_front(const struct app *app, const struct http_request *r, struct http_answer *a);

/* Authenticates the caller and sets r->tenant and r->scopes. Where there are several nodes,
 * believes what the edge says if it sends SANDCGI_EDGE_SECRET. */
int http_guard_who(const struct app *app, struct http_request *r, struct http_answer *a);

/* 401 with a challenge (error and description may be NULL; see resource.h) and the message. */
int http_refuse_token(const struct app *app, struct http_request *r, struct http_answer *a,
                      const char *error, const char *description, const char *message);

/* 403 with a challenge that names the scopes. */
int http_refuse_scopes(const struct app *app, struct http_request *r, struct http_answer *a,
                       unsigned scopes, const char *message);

/* Is it to be asked, before http_guard_who can tell? With SANDCGI_AUTH=token alone. */
bool http_must_ask(const struct app *app, const struct http_request *r);

/* An access token: asks the process that judges them, unless that was done, and sets r->tenant and
 * what belongs to it. */
int http_guard_access_token(const struct app *app, struct http_request *r, struct http_answer *a);

/* What the message needs besides the scopes of an access token: 403 that names them. The list of
 * tools, *server then, has all that the tenant may be allowed. */
int http_guard_scopes(const struct app *app, struct http_request *r, const json_t *message,
                      const struct mcp_server **server, struct http_answer *a);

/* 429 when the tenant has its share of all calls (a FastCGI worker only), or is above the rate.
 * Small requests to /mcp pass with r->must_free: what they say decides (mcp_frees). */
int http_guard_room(const struct app *app, struct http_request *r, struct http_answer *a);
int http_refuse_room(const struct http_request *r, struct http_answer *a);

/* The server with the location's set of tools; NULL: a->status 404, or 403 when r->scopes allow
 * none of them. */
const struct mcp_server *http_guard_tools(const struct app *app, struct http_request *r,
                                          struct http_answer *a);

/* Of a POST: its Content-Type and Accept. */
int http_guard_shape(const struct http_request *r, struct http_answer *a);

/* The body, which must be as long as Content-Length says and at most max. */
int http_read_body(const struct http_request *r, uint64_t max, struct buf *body,
                   struct http_answer *a);

/* ---- requests whose signed link is the key: no token is needed (http_links.c) ---- */

/* PUT /uploads/<ticket>: the body becomes a file of the ticket's conversation. The file that our
 * nginx has written (SANDCGI_BODY_FILE) is moved; other bodies are streamed to a staging file. */
void http_upload_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/* auth_request of our nginx for uploads: 204 for a valid link, with its tenant's number as
 * Sandcgi-Uploader, else 403 with the status for the client as Sandcgi-Verdict. */
void http_check_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/* GET of an archive of download_archive: relays it in pieces as the broker makes them. Refusals are
 * plain text: 403 link invalid or expired, 404 no files. A later error breaks the connection off,
 * so that a part is not taken for the whole. */
void http_archive_serve(const struct app *app, struct http_request *r, struct http_answer *a);

/* GET of a file's URL, under a web server that does not serve them itself (http_files.c): what
 * nginx answers, with the same headers. Other methods are 404. A file that is cut meanwhile breaks
 * the connection off. */
void http_file_serve(const struct app *app, struct http_request *r, struct http_answer *a);
