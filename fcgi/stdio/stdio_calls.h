/*
 * The calls of `sandcgi stdio`. A request that may wait is served by a process of its own, a fork
 * of the one that talks to the client. Between the two is a socket: the call's messages come over
 * it, one per line, the client's responses go over it, and it hangs up when the request is
 * cancelled or the client's process has ended.
 */
#pragma once

#include "common/base/err.h"
#include "fcgi/stdio/stdio_lines.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>

#define STDIO_CALLS_MAX  64 /* at once, */
#define STDIO_PLACES     72 /* and on top of them such as end a call (mcp_frees) */
#define STDIO_ANSWER_MAX (96u * 1024 * 1024)
#define STDIO_OUT_MAX    (1u << 20) /* queued for the client, besides one more answer */

struct stdio_call {
    int pid;         /* 0: this place is free */
    int fd;          /* our end of its socket */
    unsigned number; /* in the ids of its requests to the client */
    json_t *id;      /* owned; NULL: it is no request, or one that is answered or cancelled */
    size_t size;
    bool answers; /* the next line is the answer */
    bool cancelled;
    struct stdio_lines lines; /* from it */
    struct buf responses;     /* for it, not sent yet */
};

struct stdio_calls {
    struct stdio_call at[STDIO_PLACES];
    size_t n;
    size_t size, size_max; /* of the requests under way in memory, about */
    unsigned last;         /* number */
    int fd;                /* in a call's process: its end of the socket; else -1 */
    struct stdio_lines responses;
};

/* What is to be served. */
struct stdio_request {
    json_t *id; /* NULL: it is no request; null: a batch, which has none */
    size_t size;
    bool frees; /* see mcp_frees */
};

void stdio_calls_init(struct stdio_calls *c, size_t line_max);
/* Hangs up on all. They end soon. */
void stdio_calls_clear(struct stdio_calls *c);

/* Forks: 1, or in the new process 0 (c->fd is its socket, standard input and output are closed), or
 * -1: ERR_INVALID when a request with this id is under way, ERR_BUSY when there are too many. */
int stdio_calls_start(struct stdio_calls *c, const struct stdio_request *request, struct err *e);

/* False: no call has this id. */
bool stdio_calls_cancel(struct stdio_calls *c, const json_t *id);
/* Hands a response of the client to the call that asked; false: it answers none of them. */
bool stdio_calls_respond(struct stdio_calls *c, const json_t *response);
/* No response will come. */
void stdio_calls_end_input(struct stdio_calls *c);

/* Fills p with STDIO_PLACES; after poll, moves what has come to out. While out has STDIO_OUT_MAX
 * bytes, only cancelled calls are read from, whose messages are dropped. */
void stdio_calls_poll(const struct stdio_calls *c, const struct buf *out, struct pollfd *p);
void stdio_calls_move(struct stdio_calls *c, const struct pollfd *p, struct buf *out);

/* In a call's process: the next message is its answer. */
int stdio_calls_begin_answer(struct stdio_calls *c, struct err *e);
/* Likewise: waits for the next response. NULL: see mcp_stdio_client.next_message. */
json_t *stdio_calls_next_response(struct stdio_calls *c, int timeout_ms);
