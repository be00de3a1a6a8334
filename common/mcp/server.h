/*
 * MCP for all revisions behind one function: a JSON value from any transport goes in, an answer
 * comes out. Transports (fcgi/: HTTP over FastCGI or CGI, stdio) know nothing of methods; this
 * layer knows nothing of sockets, and of HTTP only the headers that the specification cross-checks
 * and the status codes it asks for (which stdio ignores).
 *
 * Inside: revision.c (the five revisions and what each allows), era.c (which era a message belongs
 * to), methods.c (the table of methods), tool.h (what a tool is), content.c and result.c (content
 * blocks, results and their shaping per revision).
 */
#ifndef SANDCGI_MCP_SERVER_H
#define SANDCGI_MCP_SERVER_H

#include "common/base/err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mcp_tool;  /* tool.h */
struct mcp_lists; /* lists.h */

/* What this server is; one per process, constant. */
struct mcp_server {
    const char *name; /* serverInfo.name */
    const char *title;
    const char *version;
    const char *instructions;            /* for the model, in initialize and server/discover */
    const struct mcp_tool *const *tools; /* in the order of tools/list, n_tools */
    size_t n_tools;
    void *app;               /* handed to the tools untouched */
    struct mcp_lists *lists; /* keeps what tools/list answers, made by mcp_lists_new; NULL: built
                                anew each time */
};

/* Where a message came from. Headers are NULL when absent; on stdio http is false and there are
 * none. */
struct mcp_origin {
    bool http;
    const char *tenant;
    const char *protocol_version; /* MCP-Protocol-Version */
    const char *method;           /* Mcp-Method */
    const char *name;             /* Mcp-Name */
    int cancel_fd; /* becomes readable or hangs up when the client leaves; -1: none */
    /* stdio only, NULL for http: what one process, which has one client, remembers between
     * messages. */
    bool *modern_pinned;     /* a modern request was seen: initialize comes too late */
    const char **negotiated; /* the revision that initialize agreed on, a literal; starts as NULL */
};

struct mcp_answer {
    int status;         /* HTTP status: 200, 202, 400, 404 … */
    json_t *body;       /* owned by the caller; NULL: nothing to send (202) */
    const char *method; /* for the log: the method's name when it is one of ours, else "-" */
    const char *detail; /* for the log: the tool's name when it is one of ours, else "" */
};

/* Answers one parsed message (or batch, or a value that is no message). Never fails: failures are
 * answers. */
void mcp_handle(const struct mcp_server *server, const struct mcp_origin *origin,
                const json_t *message, struct mcp_answer *out);

/* The answer to bytes that are no JSON (400, -32700); problem is json_parse's text. */
void mcp_parse_failed(const struct err *problem, struct mcp_answer *out);

#endif
