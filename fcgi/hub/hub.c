#include "config.h"

#include "fcgi/commands.h"

#include "common/base/acceptor.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/base/share.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/process/resources.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH        64 /* events that are taken in before streams are served */
#define TICK_MS      500
#define SWEEP_MS     60000
#define DRAIN_MS     3000
#define MESSAGE_MAX  (MCP_STREAM_BYTES_MAX + 4096)
#define WATCH_PATH   "/proc/self/fd/%d"
#define WATCH_BUFFER 4096

/* Every stream; the body may close any of them. */
#define EACH_STREAM(h, s)                                                                          \
    struct hub_stream *s = (h)->streams, *next = NULL;                                             \
    s && (next = s->next, true);                                                                   \
    s = next

struct hub {
    const struct app *app;
    struct hub_rules rules;
    struct loop loop;
    struct hub_jobs jobs;
    struct acceptor acceptor;
    int inotify_fd;
    int events_fds[HUB_EVENTS];
    struct loop_watch events_watches[HUB_EVENTS], inotify_watch;
    struct hub_stream *streams; /* the latest first */
    struct hub_stream *closed; /* freed at the end of a turn: functions up the stack may use them */
    size_t n_streams, n_pending; /* the latter: of the former, without a complete request */
    size_t max_streams;
    bool draining;
    struct deadline sweep_at, tick_at;
};

/* ---- streams ---- */

static void stream_link(struct hub *h, struct hub_stream *s)
{
    s->next = h->streams;
    s->at = &h->streams;
    if (s->next)
        s->next->at = &s->next;
    h->streams = s;
    h->n_streams++;
    h->n_pending++;
}

static void stream_close(struct hub *h, struct hub_stream *s)
{
    if (s->fd < 0)
        return;
    hub_ask_free(TAKE_PTR(s->ask));
    loop_remove(&h->loop, &s->watch);
    shutdown(s->fd, SHUT_RDWR); /* a child of ours may have a copy of the descriptor */
    auto_close_fd(&s->fd);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    s->next = h->closed;
    h->closed = s;
    h->n_streams--;
    if (s->reader)
        h->n_pending--;
}

static void free_closed(struct hub *h)
{
    while (h->closed) {
        struct hub_stream *s = h->closed;
        const struct hub_stream *other = h->streams;
        h->closed = s->next;
        while (other && other->replay_watch != s->replay_watch)
            other = other->next; /* inotify has one watch for all that watch the same file */
        if (s->replay_watch >= 0 && !other)
            inotify_rm_watch(h->inotify_fd, s->replay_watch);
        hub_stream_free(s);
    }
}

/* Writes, and has the loop report room for more exactly while records are queued. */
static void stream_flush(struct hub *h, struct hub_stream *s)
{
    struct err e = ERR_INIT;

    if (s->fd < 0)
        return;
    if (hub_stream_flush(s) < 0) {
        stream_close(h, s);
        return;
    }
    bool wants_room = !hub_stream_is_idle(s);
    if (wants_room == s->wants_room)
        return;
    s->wants_room = wants_room;
    if (loop_change(&h->loop, &s->watch, EPOLLIN | EPOLLRDHUP | (wants_room ? EPOLLOUT : 0), &e) <
        0)
        stream_close(h, s);
}

static void stream_send(struct hub *h, struct hub_stream *s, const struct buf *text)
{
    if (hub_stream_add(s, text->data, text->len) < 0) {
        log_info("stream closed: its client reads too slowly");
        stream_close(h, s);
        return;
    }
    stream_flush(h, s);
}

static void send_message(struct hub *h, struct hub_stream *s, const char *id, const json_t *message)
{
    AUTO_BUF struct buf text = BUF_INIT(MESSAGE_MAX);
    sse_add_message(&text, id, message);
    stream_send(h, s, &text);
}

static void stream_end(struct hub *h, struct hub_stream *s)
{
    if (s->fd < 0)
        return;
    hub_stream_end(s);
    stream_flush(h, s);
}

/* The last message of a listen, and the end. */
static void stream_finish(struct hub *h, struct hub_stream *s)
{
    json_auto_t *last = s->listen && !s->ending ? mcp_listen_end(s->listen, s->server) : NULL;

    if (last)
        send_message(h, s, NULL, last);
    stream_end(h, s);
}

/* May the stream queue a stored message, which may be large? */
static bool replay_has_room(const struct hub *h, const struct hub_stream *s)
{
    size_t own = 0, taken = 0;

    for (const struct hub_stream *o = h->streams; o; o = o->next) {
        bool large = o->out.len > HUB_QUEUE_MAX;
        taken += large;
        own += large && o->tenant == s->tenant;
    }
    return share_allows(own, taken, HUB_LARGE_MAX);
}

/* Sends the next stored messages as fast as they are read; at the next tick if there is no room. */
static void pump_replay(struct hub *h, struct hub_stream *s)
{
    while (s->fd >= 0 && s->replay && !s->ending && hub_stream_is_idle(s) &&
           replay_has_room(h, s)) {
        char id[MCP_EVENT_ID_MAX];
        json_t *message = NULL;
        int rc = mcp_replay_next(s->replay, &message, id);
        if (rc == 0)
            return;
        if (rc < 0) {
            stream_end(h, s);
            return;
        }
        send_message(h, s, id, message);
        json_decref(message);
    }
}

/* ---- requests ---- */

static bool is_full(void *ctx, const char *tenant)
{
    const struct hub *h = ctx;
    uint64_t key = share_key(tenant);
    size_t own = 0, taken = 0;

    for (const struct hub_stream *s = h->streams; s; s = s->next) {
        bool open = !s->reader && !s->ending;
        taken += open;
        own += open && s->tenant == key;
    }
    return !share_allows(own, taken, h->max_streams);
}

static bool has_session(void *ctx, const char *session)
{
    const struct hub *h = ctx;
    for (const struct hub_stream *s = h->streams; s; s = s->next) {
        const char *other = s->listen ? mcp_listen_session_id(s->listen) : NULL;
        if (other && !s->ending && strcmp(other, session) == 0)
            return true;
    }
    return false;
}

/* What had to be asked about the request is known. */
static void stream_begin(struct hub *h, struct hub_stream *s)
{
    char path[sizeof WATCH_PATH + 16];
    struct hub_request r;

    hub_request_judge(&h->rules, s->reader, s->ask ? &s->ask->question.verdict : NULL, &r);
    hub_ask_free(TAKE_PTR(s->ask));
    s->server = r.server;
    s->tenant = r.tenant;
    hub_stream_begin(s, r.listen, r.replay);
    h->n_pending--;
    if (s->replay) {
        snprintf(path, sizeof path, WATCH_PATH, mcp_replay_fd(s->replay));
        s->replay_watch = inotify_add_watch(h->inotify_fd, path, IN_MODIFY);
    }
    stream_send(h, s, &r.bytes);
    buf_clear(&r.bytes);
    if (!r.stays)
        stream_end(h, s);
    else if (h->draining)
        stream_finish(h, s);
    pump_replay(h, s);
}

static void on_verdict(void *owner, void *item, uint32_t events)
{
    struct hub_stream *s = item;

    (void)events;
    if (judge_question_go_on(&s->ask->question))
        stream_begin(owner, s);
}

/* The request is complete. Other streams are served while the judge is asked. */
static void stream_complete(struct hub *h, struct hub_stream *s)
{
    s->ask = hub_ask_new(h->app, s->reader, &h->loop, on_verdict, s);
    if (s->ask && s->ask->question.fd >= 0)
        s->give_up = deadline_in_ms(h->app->ask_ms);
    else
        stream_begin(h, s);
}

static void stream_receive(struct hub *h, struct hub_stream *s)
{
    struct err e = ERR_INIT;
    int rc = hub_stream_receive(s, &e);

    if (rc > 0) {
        stream_complete(h, s);
    } else if (rc < 0) {
        log_debug("connection closed: %s", e.text);
        stream_close(h, s);
    }
}

/* After the request the web server sends nothing: what is read is its leaving, or is ignored. */
static void on_stream(void *owner, void *item, uint32_t events)
{
    struct hub *h = owner;
    struct hub_stream *s = item;
    char room[512];
    ssize_t n = 1;

    if (s->reader && !s->ask) {
        stream_receive(h, s);
        return;
    }
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        n = read(s->fd, room, sizeof room);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        stream_close(h, s);
        return;
    }
    stream_flush(h, s);
    pump_replay(h, s);
}

/* Makes room for another connection: the list is in the order of arrival, the latest first. */
static void close_oldest_pending(struct hub *h)
{
    struct hub_stream *oldest = NULL;

    for (struct hub_stream *s = h->streams; s; s = s->next)
        if (s->reader)
            oldest = s;
    if (!oldest)
        return;
    log_warn("%zu connections sent no complete request; closing the oldest", h->n_pending);
    stream_close(h, oldest);
}

static void add_connection(void *owner, int take_fd)
{
    struct hub *h = owner;
    struct err e = ERR_INIT;
    struct hub_stream *s = hub_stream_new(take_fd, HUB_BODY_MAX);

    if (h->n_pending >= HUB_PENDING_MAX)
        close_oldest_pending(h);
    stream_link(h, s);
    if (loop_add(&h->loop, &s->watch, s->fd, EPOLLIN | EPOLLRDHUP, on_stream, s, &e) < 0) {
        log_error("%s", e.text);
        stream_close(h, s);
    }
}

/* ---- events ---- */

static void send_event(struct hub *h, struct hub_stream *s, const struct mcp_event *event)
{
    bool end = false;

    if (!s->listen || s->ending)
        return;
    if (event->kind == MCP_EVENT_TASK) {
        if (mcp_listen_wants_task(s->listen, event->tenant, event->task))
            hub_jobs_add(&h->jobs, &(struct hub_task){s->server, mcp_listen_features(s->listen),
                                                      event->tenant, event->task});
        return;
    }
    json_auto_t *message = mcp_listen_message(s->listen, s->server, event, &end);
    if (message)
        send_message(h, s, NULL, message);
    if (end)
        stream_end(h, s);
}

static void on_event(void *owner, void *item, uint32_t events)
{
    struct hub *h = owner;
    const int *fds = item;
    struct mcp_event event;

    (void)events;
    for (int i = 0; i < BATCH; i++) {
        json_auto_t *object = events_next(fds, &event);
        if (!object)
            return;
        for (EACH_STREAM(h, s))
            send_event(h, s, &event);
    }
}

/* A look-up has ended. */
static void on_task(void *owner, const struct hub_task *task, const json_t *state)
{
    struct hub *h = owner;

    for (EACH_STREAM(h, s)) {
        if (!s->listen || s->ending || mcp_listen_features(s->listen) != task->features ||
            !mcp_listen_wants_task(s->listen, task->tenant, task->task))
            continue;
        json_auto_t *message = mcp_listen_task_message(s->listen, state);
        send_message(h, s, NULL, message);
    }
}

static void on_inotify(void *owner, void *item, uint32_t events)
{
    struct hub *h = owner;
    char room[WATCH_BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));

    (void)item;
    (void)events;
    while (read(h->inotify_fd, room, sizeof room) > 0)
        continue; /* replays are few: all are tried */
    for (EACH_STREAM(h, s))
        pump_replay(h, s);
}

static void stream_tick(struct hub *h, struct hub_stream *s)
{
    if (deadline_passed(s->give_up) && s->ask) {
        judge_question_give_up(&s->ask->question);
        stream_begin(h, s);
    } else if (deadline_passed(s->give_up)) {
        stream_close(h, s);
    } else if (deadline_passed(s->comment_at)) {
        AUTO_BUF struct buf text = BUF_INIT(64);
        sse_add_comment(&text);
        stream_send(h, s, &text);
    }
    pump_replay(h, s); /* a writer that was killed writes no end */
}

static void hub_tick(struct hub *h)
{
    for (EACH_STREAM(h, s))
        stream_tick(h, s);
    hub_jobs_tick(&h->jobs);
    if (deadline_passed(h->sweep_at)) {
        hub_jobs_add(&h->jobs, &(struct hub_task){.server = app_server(h->app, NULL, SCOPE_ALL)});
        h->sweep_at = deadline_in_ms(SWEEP_MS);
    }
    acceptor_tick(&h->acceptor);
    h->tick_at = deadline_in_ms(TICK_MS);
}

/* ---- the loop ---- */

/* Signals are delivered only while the loop waits. */
static int hub_turn(struct hub *h, const sigset_t *while_waiting, struct err *e)
{
    metrics_set(METRIC_STREAMS, h->n_streams - h->n_pending);
    if (loop_wait(&h->loop, h->tick_at, while_waiting, e) < 0)
        return -1;
    if (deadline_passed(h->tick_at))
        hub_tick(h);
    free_closed(h);
    if (h->acceptor.failure.kind != ERR_NONE)
        *e = h->acceptor.failure;
    return h->acceptor.failure.kind == ERR_NONE ? 0 : -1;
}

/* Every stream gets its last message. */
static int hub_drain(struct hub *h, const sigset_t *while_waiting, struct err *e)
{
    struct deadline give_up = deadline_in_ms(DRAIN_MS);

    h->draining = true;
    acceptor_close(&h->acceptor);
    for (size_t i = 0; i < HUB_EVENTS; i++)
        loop_remove(&h->loop, &h->events_watches[i]);
    for (EACH_STREAM(h, s))
        if (!s->reader)
            stream_finish(h, s);
    while (h->n_streams > 0 && !deadline_passed(give_up))
        if (hub_turn(h, while_waiting, e) < 0)
            return -1;
    return 0;
}

static int hub_open(struct hub *h, struct err *e)
{
    h->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (h->inotify_fd < 0)
        log_warn("inotify: %s; replays are polled every %d ms", strerror(errno), TICK_MS);
    if (loop_init(&h->loop, h, e) < 0 ||
        (h->inotify_fd >= 0 &&
         loop_add(&h->loop, &h->inotify_watch, h->inotify_fd, EPOLLIN, on_inotify, NULL, e) < 0))
        return -1;
    for (size_t i = 0; i < HUB_EVENTS; i++)
        if (loop_add(&h->loop, &h->events_watches[i], h->events_fds[i], EPOLLIN, on_event,
                     h->events_fds, e) < 0)
            return -1;
    return acceptor_open(&h->acceptor, &h->loop, e);
}

static void hub_close(struct hub *h)
{
    while (h->streams)
        stream_close(h, h->streams);
    free_closed(h);
    hub_jobs_clear(&h->jobs);
    auto_close_fd(&h->inotify_fd);
    loop_clear(&h->loop);
}

int hub_serve(const struct app *app, int listen_fd, const int events_fds[HUB_EVENTS], struct err *e)
{
    struct hub h = {.app = app,
                    .loop = LOOP_INIT,
                    .acceptor = ACCEPTOR_INIT(listen_fd, false, add_connection),
                    .events_fds = {events_fds[0], events_fds[1]},
                    .inotify_fd = -1,
                    .max_streams = hub_streams_allowed(app->settings->max_streams),
                    .sweep_at = deadline_in_ms(0),
                    .tick_at = deadline_in_ms(0)};
    sigset_t while_waiting;
    int result = stop_prepare(&while_waiting, e);

    h.rules = (struct hub_rules){
        .app = app, .is_full = is_full, .has_session = has_session, .ctx = &h};
    h.jobs = (struct hub_jobs){.loop = &h.loop, .on_task = on_task};
    if (result == 0)
        result = hub_open(&h, e);
    while (result == 0 && !stop_requested())
        result = hub_turn(&h, &while_waiting, e);
    if (result == 0)
        result = hub_drain(&h, &while_waiting, e);
    hub_close(&h);
    return result;
}
