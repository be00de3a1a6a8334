/* The parts of the hub (hub_serve in commands.h): connections, requests, and children. */
#pragma once

#include "common/base/loop.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/stream.h"
#include "fcgi/app.h"
#include "fcgi/hub/fcgi_record.h"
#include "fcgi/oauth/judge_serve.h"

/* Output queued for a slow reader. One stored message of a replay may be larger. */
#define HUB_QUEUE_MAX  (64u * 1024)
#define HUB_REPLAY_MAX (MCP_STREAM_BYTES_MAX + HUB_QUEUE_MAX)
#define HUB_LARGE_MAX  16 /* streams with more than HUB_QUEUE_MAX queued; the other replays wait */

#define HUB_PENDING_MAX 1024 /* connections without a complete request, in a burst, too */

/* Raises the limit of open files for so many streams; before root is given up. */
void hub_streams_reserve(uint64_t max_streams);
/* As many streams as the limit of open files allows, at most max_streams. */
size_t hub_streams_allowed(uint64_t max_streams);

/* One connection of the web server: its request is received, then text is sent in FastCGI records.
 * Small, since there are thousands: buffers exist only while they hold something. */
struct hub_stream {
    struct hub_stream *next, **at; /* in the hub's list; *at points here */
    int fd;                        /* non-blocking; -1: closed */
    struct loop_watch watch;
    struct fcgi_reader *reader; /* owned; NULL: the request has been judged */
    struct hub_ask *ask;        /* owned; NULL: nothing is asked about it */
    int request_id;
    uint64_t tenant;                 /* share_key, since the request has been received */
    struct mcp_listen *listen;       /* owned; NULL: a replay, or an answer without a stream */
    const struct mcp_server *server; /* set with listen: the server that was called */
    struct mcp_replay *replay;       /* owned; NULL: none */
    int replay_watch;                /* inotify's, of the replay's file; -1: none */
    struct buf out;                  /* queued records */
    size_t written;                  /* of them */
    bool wants_room;                 /* the loop reports when more can be written */
    bool ending;                     /* the end is queued; close when it is written */
    struct deadline comment_at;
    struct deadline give_up; /* for the request to arrive; for an answer about its token; for the
                                end to be taken */
};

/* What the judge of access tokens is asked about a request. */
struct hub_ask {
    struct judge_question question;
    struct loop *loop; /* borrowed */
    struct loop_watch watch;
};

/* Takes the descriptor. body_max: of the request. */
struct hub_stream *hub_stream_new(int take_fd, size_t body_max);
void hub_stream_free(struct hub_stream *s);

/* Reads what has arrived of the request. 1: complete; 0: incomplete; -1: the connection failed. */
int hub_stream_receive(struct hub_stream *s, struct err *e);
/* The request has been judged: listen and replay (both may be NULL) are the stream's now. */
void hub_stream_begin(struct hub_stream *s, struct mcp_listen *take_listen,
                      struct mcp_replay *take_replay);

/* Queues text. 0, or -1 when the queue is full: the reader is too slow. */
int hub_stream_add(struct hub_stream *s, const void *data, size_t len);
/* Queues the end of the request. */
void hub_stream_end(struct hub_stream *s);
/* Writes what can be written; 0, or -1 when the web server has gone. */
int hub_stream_flush(struct hub_stream *s);

static inline bool hub_stream_is_idle(const struct hub_stream *s)
{
    return s->out.len == 0;
}

/* ---- requests ---- */

#define HUB_BODY_MAX (256u * 1024) /* a list of URIs */

/* What the decision depends on. */
struct hub_rules {
    const struct app *app;
    bool (*is_full)(void *ctx, const char *tenant);      /* has it its share of the streams? */
    bool (*has_session)(void *ctx, const char *session); /* a GET stream of that session */
    void *ctx;
};

struct hub_request {
    struct buf bytes;                /* what to write first; owned by the caller */
    bool is_stream;                  /* bytes begin an event stream */
    bool stays;                      /* the stream stays open; else the request ends with bytes */
    uint64_t tenant;                 /* share_key */
    const struct mcp_server *server; /* that was called */
    struct mcp_listen *listen;       /* owned by the caller; may be NULL, like replay */
    struct mcp_replay *replay;
};

/* Must the judge of access tokens be asked first? NULL: no. The loop calls on_ready with item when
 * there is more of the answer; without a descriptor the verdict says why there is none. */
struct hub_ask *hub_ask_new(const struct app *app, const struct fcgi_reader *in, struct loop *loop,
                            loop_handler *on_ready, void *item);
void hub_ask_free(struct hub_ask *ask); /* may be NULL */

/* Decides about a complete request; the hub writes what was decided. asked: what was found out
 * about its token; NULL: nothing had to be asked. */
void hub_request_judge(const struct hub_rules *rules, const struct fcgi_reader *in,
                       const struct judge_verdict *asked, struct hub_request *out);

/* ---- children: short-lived work that waits for the broker or the disk ---- */

/* What a child works on. Borrowed. */
struct hub_task {
    const struct mcp_server *server;
    unsigned features;         /* mcp_listen_features of the streams that it is for */
    const char *tenant, *task; /* NULL: remove expired sessions */
};

struct hub_jobs {
    struct loop *loop;
    /* A task's state; owner is the loop's. Not called for a task that cannot be looked up. */
    void (*on_task)(void *owner, const struct hub_task *task, const json_t *state);
    struct hub_job *first; /* running, then queued, in the order of their start */
    size_t n, n_running;
};

/* Looks up the state of a task, or removes expired sessions. */
void hub_jobs_add(struct hub_jobs *j, const struct hub_task *what);
/* Kills children that have used up their time. */
void hub_jobs_tick(struct hub_jobs *j);
/* Kills all. */
void hub_jobs_clear(struct hub_jobs *j);
