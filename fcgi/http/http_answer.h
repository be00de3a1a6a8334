/* An answer to an HTTP request being made, and its head in CGI form. */
#ifndef SANDCGI_FCGI_HTTP_HTTP_ANSWER_H
#define SANDCGI_FCGI_HTTP_HTTP_ANSWER_H

#include "common/base/buf.h"

#include <jansson.h>
#include <stdbool.h>

#define HTTP_HEAD_MAX 8192
#define HTTP_ANSWER_MAX                                                                            \
    (96u * 1024 * 1024) /* output and pictures, twice, escaped: far below this */

struct http_answer {
    int status;
    const char *headers; /* each line ends in CRLF */
    const char *allowed; /* the browser page's origin that may read this; NULL: none */
    const char
        *asked_headers; /* a preflight's question, when this is its answer; NULL: it is not */
    char session[65];   /* Mcp-Session-Id; "" none */
    json_t *body;       /* owned; NULL: none, or there is text */
    struct buf text;    /* JSON that is written already; owned */
    bool sent;          /* it was no JSON, and is gone */
    const char *what, *detail; /* for the log line */
    char trace[56];            /* for the log line: a traceparent, or "" */
    bool quiet;                /* all is well, and it happens all the time: for debugging only */
};

#define HTTP_ANSWER_INIT                                                                           \
    {                                                                                              \
        .status = 500, .headers = "", .what = "-", .detail = ""                                    \
    }

/* Refuses the request with a JSON-RPC error that names no id. Always returns -1. */
int http_refuse(struct http_answer *a, int status, const char *headers, const char *message);

/* The whole answer: head and JSON body. */
void http_answer_write(const struct http_answer *a, struct buf *out);

/* The head of an event stream. */
void http_answer_write_stream_head(const struct http_answer *a, struct buf *out);

#endif
