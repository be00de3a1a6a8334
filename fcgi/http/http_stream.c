#include "config.h"

#include "fcgi/http/http_stream.h"

#include "common/base/log.h"
#include "common/mcp/session/stream.h"

#define RETRY_MS 1000 /* after which a client that lost its connection comes back */

static void write_out(struct http_stream *s, const struct buf *text)
{
    if (!s->gone && s->source->write(s->source->ctx, text->data, text->len) < 0) {
        log_debug("the client left its event stream");
        s->gone = true;
    }
}

static void start(struct http_stream *s, int retry_ms, struct buf *out)
{
    char id[MCP_EVENT_ID_MAX];

    if (s->started)
        return;
    s->started = true;
    http_answer_write_stream_head(s->head, out);
    if (s->out.store) {
        mcp_stream_first_id(s->out.store, id);
        sse_add_priming(out, id, retry_ms);
    }
}

int http_stream_send(struct http_stream *s, const json_t *message)
{
    AUTO_BUF struct buf text = BUF_INIT(HTTP_ANSWER_MAX + HTTP_HEAD_MAX);
    char id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;
    bool stored = s->out.store && mcp_stream_add(s->out.store, message, id, &e) == 0;

    if (s->out.store && !stored)
        log_debug("an event is not kept: %s", e.text);
    start(s, RETRY_MS, &text);
    sse_add_message(&text, stored ? id : NULL, message);
    write_out(s, &text);
    return stored || !s->gone ? 0 : -1;
}

static int send_message(void *ctx, const json_t *message)
{
    return http_stream_send(ctx, message);
}

static void keep_alive(void *ctx)
{
    struct http_stream *s = ctx;
    AUTO_BUF struct buf text = BUF_INIT(HTTP_HEAD_MAX);

    if (!s->started)
        return;
    sse_add_comment(&text);
    write_out(s, &text);
}

/* What the client needs to come back for the rest is the id of the priming event, or a later one
 * that it has seen already. */
static void hang_up(void *ctx, int retry_ms)
{
    struct http_stream *s = ctx;
    AUTO_BUF struct buf text = BUF_INIT(HTTP_HEAD_MAX);

    if (!s->out.store || s->gone)
        return;
    if (s->started)
        buf_addf(&text, "retry: %d\n\n", retry_ms);
    else
        start(s, retry_ms, &text);
    write_out(s, &text);
    s->source->hang_up(s->source->ctx);
    s->gone = true;
}

void http_stream_init(struct http_stream *s, const struct http_source *source,
                      const struct http_answer *head)
{
    *s = (struct http_stream){.source = source, .head = head};
    s->out = (struct mcp_out){.send = send_message,
                              .keep_alive = keep_alive,
                              .hang_up = source->hang_up ? hang_up : NULL,
                              .ctx = s};
}

void http_stream_finish(struct http_stream *s)
{
    if (s->out.store)
        mcp_stream_end(s->out.store);
    s->out.store = NULL;
}
