/*
 * One connection that the hub holds: text goes into FastCGI STDOUT records, which are written as
 * the web server takes them. Small, since there are thousands: the buffer exists only while
 * something waits in it.
 */
#ifndef SANDCGI_FCGI_HUB_HUB_STREAM_H
#define SANDCGI_FCGI_HUB_HUB_STREAM_H

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/stream.h"

/* What may wait for a slow reader. A replay has more, since a stored message may be large; but it
 * is fetched only when nothing waits. */
#define HUB_QUEUE_MAX  (64u * 1024)
#define HUB_REPLAY_MAX (MCP_STREAM_BYTES_MAX + HUB_QUEUE_MAX)

struct hub_stream {
    struct hub_stream *next, **at; /* in the hub's list; *at points here */
    int fd;                        /* non-blocking; -1: closed */
    int request_id;
    struct mcp_listen *listen;       /* owned; NULL: a replay, or an answer without a stream */
    const struct mcp_server *server; /* whose news listen wants; set with it */
    struct mcp_replay *replay;       /* owned; NULL: none */
    int watch;                       /* of the replay's file; -1: none */
    struct buf out;                  /* records that wait */
    size_t written;                  /* of them */
    bool wants_room;                 /* the event loop is to say when more can be written */
    bool ending;                     /* everything is in out; close when it is written */
    struct deadline comment_at;
    struct deadline give_up; /* of an ending one */
};

/* Takes the descriptor, listen and replay (both may be NULL). */
struct hub_stream *hub_stream_new(int take_fd, int request_id, struct mcp_listen *take_listen,
                                  struct mcp_replay *take_replay);
void hub_stream_free(struct hub_stream *s);

/* Adds text. 0, or -1 when too much waits already: the reader is too slow. */
int hub_stream_add(struct hub_stream *s, const void *data, size_t len);
/* Adds the end of the request. */
void hub_stream_end(struct hub_stream *s);
/* Writes what can be written; 0, or -1 when the web server has gone. */
int hub_stream_flush(struct hub_stream *s);

static inline bool hub_stream_is_idle(const struct hub_stream *s)
{
    return s->out.len == 0;
}

#endif
