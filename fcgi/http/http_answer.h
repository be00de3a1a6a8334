/* The answer to an HTTP request, in CGI form: head and JSON body, or an event stream. */
#pragma once

#include "common/base/buf.h"
#include "common/mcp/server.h"

#include <jansson.h>
#include <stdbool.h>

#define HTTP_HEAD_MAX 8192
#define HTTP_ANSWER_MAX                                                                            \
    (96u * 1024 * 1024) /* output and pictures, twice and escaped, are far below it */

/* One request as its front end presents it. */
struct http_source {
    /* The value of a CGI parameter, or NULL; valid until the request ends. */
    const char *(*param)(void *ctx, const char *name);
    /* Up to len bytes of the body; 0 at its end, -1 on error. */
    long (*read)(void *ctx, char *data, size_t len);
    /* Sends a piece of the answer, in CGI form ("Status: …"). -1: the client has left. */
    int (*write)(void *ctx, const char *data, size_t len);
    /* Ends the answer, while the request is still being served. NULL: not possible. */
    void (*hang_up)(void *ctx);
    void *ctx;
    const uint64_t *sent; /* bytes of the answer; NULL: not counted */
    int cancel_fd;        /* hangs up when the client leaves; -1: none */
};

struct http_answer {
    int status;
    const char *headers;           /* each line ends in CRLF */
    const char *allowed;           /* origin of the browser page that may read this; NULL: none */
    const char *asked_headers;     /* by a preflight request; NULL: this answers no such request */
    char session[MCP_SESSION_MAX]; /* Mcp-Session-Id; "" none */
    json_t *body;                  /* owned; NULL: none, or there is text */
    struct buf text;               /* serialized JSON instead of body; owned */
    bool sent;                     /* it was not JSON and has been sent */
    const char *what, *detail;     /* for the log line */
    const char *error; /* for the log line: the kind of a tool's error; NULL: the status says
                          whether it went well */
    bool quiet;        /* a success that occurs all the time: logged at debug only */
};

#define HTTP_ANSWER_INIT                                                                           \
    ((struct http_answer){.status = 500, .headers = "", .what = "-", .detail = ""})

/* Refuses the request with a JSON-RPC error that names no id. Always returns -1. */
int http_refuse(struct http_answer *a, int status, const char *headers, const char *message);

/* The reason phrase of a status. */
const char *http_reason(int status);

/* The whole answer: head and JSON body. */
void http_answer_write(const struct http_answer *a, struct buf *out);

/* The head of an event stream. */
void http_answer_write_stream_head(const struct http_answer *a, struct buf *out);

/* The event stream that answers one POST (mcp_out): from the first message before the answer to the
 * answer. Streams that can be resumed are also written into their store, with or without client. */
struct http_stream {
    struct mcp_out out; /* give it to mcp_handle */
    const struct http_source *source;
    const struct http_answer *head; /* whose headers the stream begins with */
    bool started;                   /* the head is sent: the answer must be sent on the stream */
    bool gone;                      /* the client has left, or hang_up was called */
    int64_t written_ms;             /* of the last byte; before it, of the beginning */
};

/* source and head must outlive it, and it must not move. */
void http_stream_init(struct http_stream *s, const struct http_source *source,
                      const struct http_answer *head);

/* Sends a message on the stream, which begins now if it has not. It is mcp_out.send;
 * ctx is the struct http_stream. */
int http_stream_send(void *ctx, const json_t *message);

/* Sends a comment if the client has heard nothing for SSE_KEEP_ALIVE_MS, so that nothing in between
 * takes the connection for dead. The stream begins with it if it has not. ctx is the struct
 * http_stream, whose client must take streams. It is mcp_out.keep_alive. */
void http_stream_keep_alive(void *ctx);

/* Ends the store, if there is one. */
void http_stream_finish(struct http_stream *s);
