#include "config.h"

#include "fcgi/hub/hub.h"

#include "common/base/log.h"
#include "common/mcp/events/sse.h"
#include "common/mcp/session/session.h"
#include "fcgi/hub/events.h"
#include "fcgi/hub/hub_accept.h"
#include "fcgi/hub/hub_stream.h"
#include "fcgi/process/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH        64 /* of what epoll tells, of requests and of events before others have a turn */
#define TICK_MS      500
#define SWEEP_MS     60000
#define SPARE_FDS    64 /* besides those of the streams */
#define FDS_A_STREAM 2  /* a replay has its file open */
#define DRAIN_MS     3000
#define MESSAGE_MAX  (MCP_STREAM_BYTES_MAX + 4096)
#define WATCH_PATH   "/proc/self/fd/%d"
#define WATCH_BUFFER 4096

struct hub {
    const struct app *app;
    struct hub_door door;
    int events_fd, epoll_fd, inotify_fd;
    struct hub_stream *streams;
    struct hub_stream *closed; /* freed when nobody can be told of them any more */
    size_t n_streams;
    size_t max_streams;
    struct deadline sweep_at;
};

/* ---- streams ---- */

static int watch_fd(struct hub *h, int fd, unsigned events, void *who, struct err *e)
{
    struct epoll_event event = {.events = events, .data.ptr = who};
    if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_errno(e, "epoll_ctl");
    return 0;
}

static void link_stream(struct hub *h, struct hub_stream *s)
{
    s->next = h->streams;
    s->at = &h->streams;
    if (s->next)
        s->next->at = &s->next;
    h->streams = s;
    h->n_streams++;
}

static void close_stream(struct hub *h, struct hub_stream *s)
{
    if (s->fd < 0)
        return;
    auto_close_fd(&s->fd);
    *s->at = s->next;
    if (s->next)
        s->next->at = s->at;
    s->next = h->closed;
    h->closed = s;
    h->n_streams--;
}

/* Others may watch the same file: inotify has one watch for each. */
static bool is_watched(const struct hub *h, int watch)
{
    for (const struct hub_stream *s = h->streams; s; s = s->next)
        if (s->watch == watch)
            return true;
    return false;
}

static void free_closed(struct hub *h)
{
    while (h->closed) {
        struct hub_stream *s = h->closed;
        h->closed = s->next;
        if (s->watch >= 0 && !is_watched(h, s->watch))
            inotify_rm_watch(h->inotify_fd, s->watch);
        hub_stream_free(s);
    }
}

/* Writes, and has epoll say when there is room again exactly as long as something waits. */
static void flush(struct hub *h, struct hub_stream *s)
{
    if (s->fd < 0)
        return;
    if (hub_stream_flush(s) < 0) {
        close_stream(h, s);
        return;
    }
    bool wants_room = !hub_stream_is_idle(s);
    if (wants_room == s->wants_room)
        return;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | (wants_room ? EPOLLOUT : 0),
                                .data.ptr = s};
    s->wants_room = wants_room;
    if (epoll_ctl(h->epoll_fd, EPOLL_CTL_MOD, s->fd, &event) < 0)
        close_stream(h, s);
}

static void say(struct hub *h, struct hub_stream *s, const struct buf *text)
{
    if (hub_stream_add(s, text->data, text->len) < 0) {
        log_info("a stream's reader is too slow; cut");
        close_stream(h, s);
        return;
    }
    flush(h, s);
}

static void say_message(struct hub *h, struct hub_stream *s, const char *id, const json_t *message)
{
    AUTO_BUF struct buf text = BUF_INIT(MESSAGE_MAX);
    sse_add_message(&text, id, message);
    say(h, s, &text);
}

static void say_comment(struct hub *h, struct hub_stream *s)
{
    AUTO_BUF struct buf text = BUF_INIT(64);
    sse_add_comment(&text);
    say(h, s, &text);
}

static void end_stream(struct hub *h, struct hub_stream *s)
{
    if (s->fd < 0)
        return;
    hub_stream_end(s);
    flush(h, s);
}

/* The next stored messages, as fast as they are read. */
static void pump_replay(struct hub *h, struct hub_stream *s)
{
    while (s->fd >= 0 && s->replay && !s->ending && hub_stream_is_idle(s)) {
        char id[MCP_EVENT_ID_MAX];
        json_t *message = NULL;
        int rc = mcp_replay_next(s->replay, &message, id);
        if (rc == 0)
            return;
        if (rc < 0) {
            end_stream(h, s);
            return;
        }
        say_message(h, s, id, message);
        json_decref(message);
    }
}

static void watch_replay(struct hub *h, struct hub_stream *s)
{
    char path[sizeof WATCH_PATH + 16];
    snprintf(path, sizeof path, WATCH_PATH, mcp_replay_fd(s->replay));
    s->watch = inotify_add_watch(h->inotify_fd, path, IN_MODIFY);
}

/* ---- who comes in ---- */

static bool is_full(void *ctx)
{
    const struct hub *h = ctx;
    return h->n_streams >= h->max_streams;
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

static void take_in(struct hub *h, struct hub_guest *g)
{
    struct err e = ERR_INIT;
    struct hub_stream *s = hub_stream_new(g->fd, g->request_id, g->listen, g->replay);

    s->server = g->server;
    link_stream(h, s);
    if (watch_fd(h, s->fd, EPOLLIN | EPOLLRDHUP, s, &e) < 0) {
        log_error("%s", e.text);
        close_stream(h, s);
    } else if (s->replay) {
        watch_replay(h, s);
    }
    if (s->fd >= 0)
        say(h, s, &g->bytes);
    if (s->fd >= 0 && !g->stays)
        end_stream(h, s);
    pump_replay(h, s);
    buf_clear(&g->bytes);
}

static int receive_requests(struct hub *h, struct err *e)
{
    for (int i = 0; i < BATCH; i++) {
        struct hub_guest g;
        int rc = hub_accept_receive(&h->door, &g, e);
        if (rc <= 0)
            return rc;
        take_in(h, &g);
    }
    return 0;
}

/* ---- what happens ---- */

static void tell(struct hub *h, struct hub_stream *s, const struct mcp_event *event)
{
    bool end = false;

    if (!s->listen || s->ending)
        return;
    json_auto_t *message = mcp_listen_message(s->listen, s->server, event, &end);
    if (message)
        say_message(h, s, NULL, message);
    if (end)
        end_stream(h, s);
}

static void receive_events(struct hub *h)
{
    struct mcp_event event;

    for (int i = 0; i < BATCH; i++) {
        json_auto_t *object = events_receive(h->events_fd, &event);
        if (!object)
            return;
        for (struct hub_stream *s = h->streams, *next; s; s = next) {
            next = s->next;
            tell(h, s, &event);
        }
    }
}

static void receive_changes(struct hub *h)
{
    char room[WATCH_BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));

    while (read(h->inotify_fd, room, sizeof room) > 0)
        continue; /* which file it was does not matter: replays are few, and looking is cheap */
    for (struct hub_stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        pump_replay(h, s);
    }
}

/* The web server sends nothing after the request: what can be read is its going, or is ignored. */
static void hear_stream(struct hub *h, struct hub_stream *s, unsigned events)
{
    char room[512];
    ssize_t n = 1;

    if (s->fd < 0)
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        n = read(s->fd, room, sizeof room);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close_stream(h, s);
        return;
    }
    flush(h, s);
    pump_replay(h, s);
}

static void look_after(struct hub *h, struct hub_stream *s)
{
    if (deadline_passed(s->give_up))
        close_stream(h, s);
    else if (deadline_passed(s->comment_at))
        say_comment(h, s);
    pump_replay(h, s); /* a writer that was killed writes no end */
}

static void tick(struct hub *h)
{
    for (struct hub_stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        look_after(h, s);
    }
    if (deadline_passed(h->sweep_at)) {
        mcp_sessions_sweep(app_server(h->app, NULL));
        h->sweep_at = deadline_in_ms(SWEEP_MS);
    }
}

/* ---- the loop ---- */

static int handle(struct hub *h, const struct epoll_event *event, struct err *e)
{
    if (event->data.ptr == &h->door)
        return receive_requests(h, e);
    if (event->data.ptr == &h->events_fd)
        receive_events(h);
    else if (event->data.ptr == &h->inotify_fd)
        receive_changes(h);
    else
        hear_stream(h, event->data.ptr, event->events);
    return 0;
}

/* One turn; signals come in only while we wait. */
static int turn(struct hub *h, const sigset_t *while_waiting, struct deadline *next_tick,
                struct err *e)
{
    struct epoll_event events[BATCH];
    int n = epoll_pwait(h->epoll_fd, events, BATCH, deadline_poll_ms(*next_tick), while_waiting);

    if (n < 0 && errno != EINTR)
        return err_errno(e, "epoll_wait");
    for (int i = 0; i < n; i++)
        if (handle(h, &events[i], e) < 0)
            return -1;
    if (deadline_passed(*next_tick)) {
        tick(h);
        *next_tick = deadline_in_ms(TICK_MS);
    }
    free_closed(h);
    return 0;
}

/* Every stream gets its last message. */
static int drain(struct hub *h, const sigset_t *while_waiting, struct err *e)
{
    struct deadline give_up = deadline_in_ms(DRAIN_MS), next_tick = deadline_in_ms(TICK_MS);

    epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, h->door.listen_fd, NULL);
    epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, h->events_fd, NULL);
    for (struct hub_stream *s = h->streams, *next; s; s = next) {
        next = s->next;
        json_auto_t *last = s->listen ? mcp_listen_end(s->listen, s->server) : NULL;
        if (last && !s->ending)
            say_message(h, s, NULL, last);
        end_stream(h, s);
    }
    while (h->n_streams > 0 && !deadline_passed(give_up))
        if (turn(h, while_waiting, &next_tick, e) < 0)
            return -1;
    return 0;
}

static int open_hub(struct hub *h, struct err *e)
{
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (h->epoll_fd < 0)
        return err_errno(e, "epoll_create1");
    h->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (h->inotify_fd < 0)
        log_warn("inotify: %s; replays are looked after every %d ms", strerror(errno), TICK_MS);
    else if (watch_fd(h, h->inotify_fd, EPOLLIN, &h->inotify_fd, e) < 0)
        return -1;
    if (watch_fd(h, h->events_fd, EPOLLIN, &h->events_fd, e) < 0)
        return -1;
    return watch_fd(h, h->door.listen_fd, EPOLLIN, &h->door, e);
}

static void close_hub(struct hub *h)
{
    while (h->streams)
        close_stream(h, h->streams);
    free_closed(h);
    auto_close_fd(&h->epoll_fd);
    auto_close_fd(&h->inotify_fd);
}

void hub_raise_limits(uint64_t max_streams)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)max_streams * FDS_A_STREAM + SPARE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    if (limit.rlim_max < wanted && geteuid() == 0)
        limit.rlim_max = wanted;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn("the limit of open files stays as it is: %s", strerror(errno));
}

/* As many streams as the limit of open files allows. */
static size_t streams_allowed(uint64_t max_streams)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= 2 * SPARE_FDS)
        return (size_t)max_streams;
    uint64_t allowed = (limit.rlim_cur - SPARE_FDS) / FDS_A_STREAM;
    if (allowed >= max_streams)
        return (size_t)max_streams;
    log_warn("SANDCGI_MAX_STREAMS is over what the limit of open files allows: %ju",
             (uintmax_t)allowed);
    return (size_t)allowed;
}

int hub_serve(const struct app *app, int listen_fd, int events_fd, struct err *e)
{
    struct hub h = {.app = app,
                    .events_fd = events_fd,
                    .epoll_fd = -1,
                    .inotify_fd = -1,
                    .max_streams = streams_allowed(app->settings->max_streams),
                    .sweep_at = deadline_in_ms(0)};
    struct deadline next_tick = deadline_in_ms(TICK_MS);
    sigset_t while_waiting;
    int result = -1;

    h.door = (struct hub_door){.app = app,
                               .listen_fd = listen_fd,
                               .is_full = is_full,
                               .has_session = has_session,
                               .ctx = &h};
    if (hub_accept_init(e) == 0 && stop_prepare(&while_waiting, e) == 0 && open_hub(&h, e) == 0) {
        do
            result = turn(&h, &while_waiting, &next_tick, e);
        while (result == 0 && !stop_requested());
        if (result == 0)
            result = drain(&h, &while_waiting, e);
    }
    close_hub(&h);
    return result;
}
