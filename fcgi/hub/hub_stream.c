#include "config.h"

#include "fcgi/hub/hub_stream.h"

#include "common/base/mem.h"
#include "common/mcp/events/sse.h"

#include <errno.h>
#include <sys/socket.h>

/* FastCGI specification, sections 3.3 and 8. */
#define FCGI_VERSION     1
#define FCGI_END_REQUEST 3
#define FCGI_STDOUT      6
#define RECORD_HEAD      8
#define RECORD_MAX       65528 /* the largest length that needs no padding */

#define END_MS 5000 /* for the web server to take the rest */

struct hub_stream *hub_stream_new(int take_fd, int request_id, struct mcp_listen *take_listen,
                                  struct mcp_replay *take_replay)
{
    struct hub_stream *s = mem_alloc(sizeof *s);

    *s = (struct hub_stream){.fd = take_fd,
                             .request_id = request_id,
                             .listen = take_listen,
                             .replay = take_replay,
                             .watch = -1,
                             .out = BUF_INIT(take_replay ? HUB_REPLAY_MAX : HUB_QUEUE_MAX),
                             .comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS),
                             .give_up = DEADLINE_NEVER};
    return s;
}

void hub_stream_free(struct hub_stream *s)
{
    auto_close_fd(&s->fd);
    if (s->listen)
        mcp_listen_free(s->listen);
    mcp_replay_free(s->replay);
    buf_clear(&s->out);
    free(s);
}

static void add_record(struct hub_stream *s, unsigned char type, const void *data, size_t len)
{
    const unsigned char head[RECORD_HEAD] = {FCGI_VERSION,
                                             type,
                                             (unsigned char)((unsigned)s->request_id >> 8),
                                             (unsigned char)s->request_id,
                                             (unsigned char)(len >> 8),
                                             (unsigned char)len,
                                             0,
                                             0};
    buf_add(&s->out, head, sizeof head);
    buf_add(&s->out, data, len);
}

int hub_stream_add(struct hub_stream *s, const void *data, size_t len)
{
    const char *at = data;

    if (s->ending)
        return 0;
    while (len > 0) {
        size_t n = len < RECORD_MAX ? len : RECORD_MAX;
        add_record(s, FCGI_STDOUT, at, n);
        at += n;
        len -= n;
    }
    s->comment_at = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    return buf_ok(&s->out) ? 0 : -1;
}

void hub_stream_end(struct hub_stream *s)
{
    static const unsigned char complete[8];

    if (s->ending)
        return;
    add_record(s, FCGI_STDOUT, "", 0);
    add_record(s, FCGI_END_REQUEST, complete, sizeof complete);
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
