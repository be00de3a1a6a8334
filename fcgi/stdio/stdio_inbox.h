/* Queue of the lines on standard input. A thread, the only one of the program, reads and parses
 * them, so that a cancellation is noticed while its request is served. It uses only the inbox. */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/mcp/events/event.h"

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>

/* One line, or an event. */
struct stdio_mail {
    struct stdio_mail *next;
    size_t size;
    json_t *message; /* NULL: an event, a refused request, or no JSON (problem says why) */
    json_t *id;      /* not NULL, without a message: a request for which there was no room */
    struct err problem;
    json_t *source; /* not NULL: an event, whose strings live in here */
    struct mcp_event event;
};

struct stdio_inbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct stdio_mail *first, **end;
    size_t size;      /* of the queued lines in memory, about */
    size_t line_max;  /* bytes */
    bool ended;       /* end of input */
    struct err error; /* why it ended */
    json_t *current;  /* id of the request under way; NULL: none */
    int cancel_end;   /* closed to cancel it; -1: none, or cancelled */
    bool cancelled;
    /* the reader's own */
    int events_fd;
    struct buf in;
    bool skipping; /* in the rest of a line that was too long */
};

/* Starts reading. The inbox must live as long as the process. events_fd -1: none. */
int stdio_inbox_start(struct stdio_inbox *b, size_t line_max, int events_fd, struct err *e);

/* Waits for the next line; owned by the caller (stdio_mail_free). NULL at the end of input, with
 * *e set after a read error. */
struct stdio_mail *stdio_inbox_next(struct stdio_inbox *b, struct err *e);
void stdio_mail_free(struct stdio_mail *m);
/* The id of the request that a notifications/cancelled names; NULL: another message. */
const json_t *stdio_cancelled_id(const json_t *message);

/* Waits for a response; other lines stay queued. NULL: see mcp_stdio_client.next_message. */
json_t *stdio_inbox_next_response(struct stdio_inbox *b, int timeout_ms);

/* From here to stdio_inbox_finish the request id can be cancelled. Returns the descriptor that
 * hangs up then, for mcp_origin.cancel_fd; -1: none. */
int stdio_inbox_begin(struct stdio_inbox *b, json_t *id);
/* True: the request was cancelled, and gets no answer. Closes cancel_fd. */
bool stdio_inbox_finish(struct stdio_inbox *b, int cancel_fd);
