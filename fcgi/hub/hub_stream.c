#include "config.h"

#include "fcgi/hub/hub_stream.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/session/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define REQUEST_MS 10000 /* for the request to arrive: nginx has all of it before it connects */
#define END_MS     5000  /* for the web server to take the rest */
#define READ_CHUNK 32768

#define SPARE_FDS    (64 + HUB_PENDING_MAX) /* besides those of the streams */
#define FDS_A_STREAM 2                      /* a replay has its file open */

void hub_streams_reserve(uint64_t max_streams)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)max_streams * FDS_A_STREAM + SPARE_FDS;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
        return;
    if (limit.rlim_max < wanted && geteuid() == 0)
        limit.rlim_max = wanted;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_warn("cannot raise RLIMIT_NOFILE: %s", strerror(errno));
}

size_t hub_streams_allowed(uint64_t max_streams)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= 2 * SPARE_FDS)
        return (size_t)max_streams;
    uint64_t allowed = (limit.rlim_cur - SPARE_FDS) / FDS_A_STREAM;
    if (allowed >= max_streams)
        return (size_t)max_streams;
    log_warn("SANDCGI_MAX_STREAMS is limited to %ju by RLIMIT_NOFILE", (uintmax_t)allowed);
    return (size_t)allowed;
}

struct hub_stream *hub_stream_new(int take_fd, size_t body_max)
{
    struct hub_stream *s = mem_alloc(sizeof *s);

    *s = (struct hub_stream){.fd = take_fd,
                             .watch = LOOP_WATCH_INIT,
                             .reader = mem_alloc(sizeof *s->reader),
                             .replay_watch = -1,
                             .out = BUF_INIT(HUB_QUEUE_MAX),
                             .comment_at = DEADLINE_NEVER,
                             .give_up = deadline_in_ms(REQUEST_MS)};
    fcgi_reader_init(s->reader, body_max);
    return s;
}

static void drop_reader(struct hub_stream *s)
{
    if (s->reader)
        fcgi_reader_clear(s->reader);
    free(TAKE_PTR(s->reader));
}

void hub_stream_free(struct hub_stream *s)
{
    auto_close_fd(&s->fd);
    drop_reader(s);
    mcp_listen_free(s->listen);
    mcp_replay_free(s->replay);
    buf_clear(&s->out);
    free(s);
}

int hub_stream_receive(struct hub_stream *s, struct err *e)
{
    char room[READ_CHUNK];
    ssize_t n = recv(s->fd, room, sizeof room, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : err_errno(e, "receiving a request");
    if (n == 0)
        return err_set(e, ERR_IO, "the connection ended before the request");
    return fcgi_reader_feed(s->reader, room, (size_t)n, e);
}

void hub_stream_begin(struct hub_stream *s, struct mcp_listen *take_listen,
                      struct mcp_replay *take_replay)
{
    s->request_id = s->reader->request_id;
    s->listen = take_listen;
    s->replay = take_replay;
    if (s->replay)
        s->out.max = HUB_REPLAY_MAX;
    s->comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    s->give_up = DEADLINE_NEVER;
    drop_reader(s);
}

int hub_stream_add(struct hub_stream *s, const void *data, size_t len)
{
    if (s->ending)
        return 0;
    for (const char *at = data, *end = at + len; at < end;) {
        size_t n = end - at < FCGI_RECORD_MAX ? (size_t)(end - at) : FCGI_RECORD_MAX;
        fcgi_record_add(&s->out, FCGI_STDOUT, s->request_id, at, n);
        at += n;
    }
    s->comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    return buf_ok(&s->out) ? 0 : -1;
}

void hub_stream_end(struct hub_stream *s)
{
    if (s->ending)
        return;
    fcgi_record_add_end(&s->out, s->request_id);
    s->ending = true;
    s->comment_at = DEADLINE_NEVER;
    s->give_up = deadline_in_ms(END_MS);
}

int hub_stream_flush(struct hub_stream *s)
{
    while (s->written < s->out.len) {
        ssize_t n = send(s->fd, s->out.data + s->written, s->out.len - s->written,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        s->written += (size_t)n;
    }
    buf_clear(&s->out);
    s->written = 0;
    return 0;
}
