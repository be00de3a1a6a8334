/*
 * MCP for all revisions behind one function: it takes a JSON value from any transport and
 * returns an answer. Transports (fcgi/: HTTP over FastCGI or CGI, stdio) know nothing of methods;
 * this layer knows nothing of connections, and of HTTP only the headers that the specification
 * cross-checks and the status codes it asks for (which stdio ignores).
 *
 * handle.c has the table of methods and the way of a message; era.c decides which era a message
 * belongs to; features/ holds what servers offer, client/ what goes to the client between a request
 * and its answer, session/ what legacy clients need, events/ what open streams are sent.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/node.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mcp_tool;        /* tool.h */
struct mcp_arguments;   /* tool.h */
struct mcp_prompt;      /* offer.h */
struct mcp_resources;   /* offer.h */
struct mcp_tasks;       /* task.h */
struct mcp_tools_cache; /* tool.h */
struct mcp_event;       /* event.h */
struct mcp_listen;      /* listen.h */

/*
 * Error texts for clients that were written for another server and parse them: legacy revisions
 * only. The name that the client used follows the text.
 */
struct mcp_error_style {
    int unknown_tool_code;
    const char *unknown_tool;
    const char *unknown_method;
    const char *parse_error; /* the reason is in the error's data */
    bool always_200;         /* HTTP status of errors that we would send with 400 */
};

/* Which node serves a call, where there are several (route.h). */
enum mcp_routes_by {
    MCP_ROUTES_NOWHERE, /* the node at which it arrives */
    /* Of tools: */
    MCP_ROUTES_NAMED, /* that of the run, sandbox or conversation that its arguments name */
    MCP_ROUTES_NEW,   /* the same; without a conversation it begins one */
    /* Of methods: */
    MCP_ROUTES_TOOL,    /* as the tool says */
    MCP_ROUTES_TASK,    /* that of taskId */
    MCP_ROUTES_URI,     /* that of what the uri names */
    MCP_ROUTES_CONTEXT, /* that of the conversation among the arguments given so far */
    MCP_ROUTES_LISTEN,  /* that of the first task or resource */
    MCP_ROUTES_SESSION, /* the legacy session's */
};

/* What a server is to its clients; constant. One process may be several (struct mcp_origin's
 * transport chooses), which share app and sessions_fd. */
struct mcp_server {
    const char *name; /* serverInfo.name */
    /* Which of several: a session that one of them made is unknown to the others. "" or NULL: the
     * first. */
    const char *offer;
    const struct mcp_error_style *error_style; /* NULL: our own */
    const char *title;
    const char *version;
    const char *instructions; /* for the model, in initialize and server/discover */
    bool in_text; /* its tools say in a text what a model needs: results are that text and
                     pictures, unless mcp_origin.structured */
    const struct mcp_tool *const *tools; /* in the order of tools/list, n_tools */
    size_t n_tools;
    const char *tool_prefix; /* of their names in tools/list; calls may leave it out; NULL: none */
    /* Why a tool that the client names is not among them, on the heap; NULL: there is no such tool.
     * local: of stdio. NULL function: there are no others. */
    char *(*absent_tool)(void *app, const char *name, bool local, unsigned scopes);
    /* Of its tools; NULL: all calls of a tenant belong to one node, since ids name none. */
    enum mcp_routes_by (*routes_by)(const struct mcp_tool *tool);
    unsigned scopes;    /* what its callers may do, which has chosen the tools; for absent_tool */
    bool route_headers; /* tables' schemas have x-mcp-header: headers are compared with arguments */
    const struct mcp_arguments *arguments;   /* reads the tools' tables; NULL: they have none */
    const struct mcp_prompt *const *prompts; /* in the order of prompts/list, n_prompts */
    size_t n_prompts;
    const struct mcp_resources *resources; /* NULL: none */
    /* The argument of tools and prompts whose values, as far as the session has named them, are
     * what resources/list and completion offer; NULL: none. */
    const char *named_argument;
    const struct mcp_tasks *tasks; /* NULL: none */
    void *app;                     /* passed to the tools untouched */
    struct mcp_tools_cache
        *tools_cache; /* of tools/list, made by mcp_tools_cache_new; NULL: none */
    int sessions_fd;  /* directory of the legacy sessions' files; -1: there are no sessions */
    int64_t session_ttl_s;
    size_t sessions_max; /* of all tenants */
    /* Seals requestState; the same in all workers; at least 32 bytes. */
    const void *seal_key;
    size_t seal_key_len;
    /* Sends an event to all open streams (event.h); NULL: there are none. Never blocks. */
    void (*publish)(void *ctx, const struct mcp_event *event);
    void *publish_ctx;
};

/*
 * The channel to the client while its request is being processed. The first message turns an HTTP
 * answer into an event stream; on stdio it is one more line. After mcp_handle the transport sends
 * the answer's body on the same channel.
 */
struct mcp_out {
    /* Sends one notification or request; 0, or -1 when the client cannot be reached any more. */
    int (*send)(void *ctx, const json_t *message);
    /*
     * Streams of 2025-11-25 sessions can be taken up again: events are numbered and kept
     * (stream.h). store is the stream's writer, NULL otherwise. Set by mcp_handle before the first
     * send or hang_up; from then on the transport adds every message and the answer to it
     * (mcp_stream_add), also when the client has left, and ends it (mcp_stream_end).
     */
    struct mcp_stream *store;
    /* Sends an SSE comment if the stream was silent for SSE_KEEP_ALIVE_MS; called while waiting for
     * the client's user. NULL: not needed. */
    void (*keep_alive)(void *ctx);
    /* Closes the connection early; the answer then goes into the store only. NULL: not possible. */
    void (*hang_up)(void *ctx, int retry_ms);
    void *ctx;
};

/* What a process with one client (stdio) remembers between messages; one struct on the front end's
 * stack. */
struct mcp_stdio_client {
    bool modern;            /* a modern request was seen: initialize comes too late */
    const char *negotiated; /* the revision that initialize agreed on, a literal; NULL: none yet */
    json_t *capabilities;   /* of the client, legacy; owned */
    int log_level;          /* legacy logging/setLevel (mcp_log_level_parse); -1: not set */
    json_t *subscriptions;  /* legacy resources/subscribe: array of URIs; owned */
    json_t *named;          /* values of mcp_server.named_argument; owned */
    unsigned call, next_request; /* ids of requests to the client: sandcgi-<call>-<request> */
    /*
     * Called before a request that may wait is run, or a batch with one: 1: another process runs
     * and answers it; 0: it is run here, and mcp_origin.cancel_fd is set; -1: it is refused. All
     * else is run at once, since what follows may depend on it. NULL: everything is.
     */
    int (*hand_over)(void *ctx, struct err *e);
    /*
     * Waits for the client's next response (a message without a method; new reference). The front
     * end signals notifications/cancelled about the current request on mcp_origin.cancel_fd. NULL
     * at the end of input, after timeout_ms, or as soon as the request was cancelled. NULL
     * function: the client cannot be asked.
     */
    json_t *(*next_message)(void *ctx, int timeout_ms);
    void *ctx;
};

#define MCP_STDIO_CLIENT_INIT ((struct mcp_stdio_client){.log_level = -1})

void mcp_stdio_client_clear(struct mcp_stdio_client *stdio_client);

/* What the edge says about a message, where there are several nodes. */
struct mcp_edge {
    const char *route; /* the key by which it chose this node, "tenant:conversation"; NULL: none */
    bool again;        /* it was sent on already */
    const char *home;  /* address of the node that it belongs to, which is away; NULL: it is not, */
    bool refuses;      /* and this one does not serve in its stead */
};

#define MCP_KEY_MAX       384 /* of a conversation in the form of a header, with its NUL */
#define MCP_AWAY_RETRY_MS 5000

/* Where a message is served instead of here. */
struct mcp_elsewhere {
    enum { MCP_STAYS, MCP_BY_KEY, MCP_BY_NODE } by;
    char name[MCP_KEY_MAX]; /* the conversation, or the node */
};

struct mcp_answer;

/* Where a message came from. Headers are NULL when absent; on stdio http is false and there are
 * none. */
struct mcp_origin {
    bool http;
    const char *tenant;
    const char *protocol_version; /* MCP-Protocol-Version */
    const char *method;           /* Mcp-Method */
    const char *name;             /* Mcp-Name */
    const char *session;          /* Mcp-Session-Id */
    bool bare_stream;             /* a stream needs none (/mcp/events) */
    const char *accept;           /* may the answer be an event stream? */
    /* The value of Mcp-Param-<name> (name as in x-mcp-header, any case), or NULL. NULL function:
     * none. */
    const char *(*param_header)(void *ctx, const char *name);
    void *param_ctx;
    struct mcp_out *out; /* NULL: only the answer can be sent */
    const char *network; /* the most that its programs may have (permit.h); NULL: no such limit */
    const char *reuse;   /* of containers, by its programs (permit.h); NULL: as the server does */
    bool structured;     /* a program calls: results are objects (mcp_server.in_text) */
    const struct mcp_edge *edge; /* NULL: no edge sent it */
    /* Called for each message of a batch that is refused; the log's notes say more. NULL: none. */
    void (*refused)(const struct mcp_answer *one);
    bool takes_text; /* answers may come as text, which is cached where many ask for the same */
    /* Hangs up (POLLHUP, POLLRDHUP) when the client leaves; on stdio when notifications/cancelled
     * names the current request. -1: none. */
    int cancel_fd;
    struct mcp_stdio_client *stdio_client; /* stdio only, NULL for http */
};

#define MCP_SESSION_ID_LEN 64 /* of a session's id, without a node's name */
#define MCP_SESSION_MAX    (MCP_SESSION_ID_LEN + NODE_NAME_MAX + 2) /* with it and the NUL */

struct mcp_answer {
    int status;      /* HTTP status: 200, 202, 400, 404 … */
    struct buf text; /* instead of body, when origin->takes_text: the same, written already; owned
                        by the caller */
    json_t *body; /* owned by the caller; NULL: nothing to send (202; also a request that the client
                     has cancelled: end its stream) */
    const char *method; /* for the log: the method's name when it is one of ours, else "-" */
    const char *detail; /* for the log: the tool's name when it is one of ours, else "" */
    char session[MCP_SESSION_MAX]; /* to be sent as Mcp-Session-Id (answers to initialize); ""
                                      none */
    struct mcp_elsewhere to;       /* nothing of it was done; there is no body */
    const char *error; /* for the log: why it is a refusal or a tool's failure; NULL: it is none */
    /*
     * A stream that stays open was asked for (subscriptions/listen): body is then the
     * acknowledgement to send first, and listen (owned by the caller, mcp_listen_free) what to
     * deliver on it. A transport that cannot hold streams sends the body, then mcp_listen_end's
     * result, and is done. NULL for all other answers.
     */
    struct mcp_listen *listen;
};

/* Answers one parsed message (or batch, or a value that is no message). Never fails: failures are
 * answers. */
void mcp_handle(const struct mcp_server *server, const struct mcp_origin *origin,
                const json_t *message, struct mcp_answer *out);

/* Does the message end something (a call, a run, a sandbox, a subscription, files), or let a call
 * of ours go on? Such a message makes room, so it is served where others find none. */
bool mcp_frees(const struct mcp_server *server, const json_t *message);

/* The answer to bytes that are no JSON (400, -32700); problem is json_parse's text. */
void mcp_parse_failed(const struct mcp_server *server, const struct err *problem,
                      struct mcp_answer *out);
