/*
 * The worker's side of an event stream that answers one POST (mcp_out): it begins with the first
 * message that is sent before the answer, and ends with the answer. Streams that can be taken up
 * again are also written into their store, whether or not the client is still there.
 */
#ifndef SANDCGI_FCGI_HTTP_HTTP_STREAM_H
#define SANDCGI_FCGI_HTTP_HTTP_STREAM_H

#include "common/mcp/server.h"
#include "fcgi/http/http_answer.h"
#include "fcgi/http/http_request.h"

struct http_stream {
    struct mcp_out out; /* give it to mcp_handle */
    const struct http_source *source;
    const struct http_answer *head; /* whose headers the stream begins with */
    bool started;                   /* the head is sent: the answer has to go the same way */
    bool gone;                      /* the client, or the connection after hang_up */
};

/* source and head must outlive it, and it must not move. */
void http_stream_init(struct http_stream *s, const struct http_source *source,
                      const struct http_answer *head);

/* Sends a message on the stream, which begins now if it has not. As mcp_out.send. */
int http_stream_send(struct http_stream *s, const json_t *message);

/* Ends the store, if there is one. */
void http_stream_finish(struct http_stream *s);

#endif
