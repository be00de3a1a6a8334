#include "config.h"

#include "common/engine/frame.h"

#include <string.h>

uint32_t frame_u32(const char *from)
{
    const unsigned char *p = (const unsigned char *)from;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void frame_add_u32(struct buf *out, size_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_add_char(out, (char)(value >> shift & 0xff));
}

enum frame_push frame_push(struct frame_reader *r, const struct frame_handler *handler, void *ctx,
                           const char *data, size_t len, struct err *e)
{
    while (len > 0) {
        size_t want = r->left > 0 ? r->left : handler->head_len - r->have;
        size_t part = want < len ? want : len;
        enum frame_push result = FRAME_MORE;

        if (r->left > 0) {
            r->left -= (uint32_t)part;
            result = handler->payload(ctx, data, part, e);
        } else {
            memcpy(r->head + r->have, data, part);
            r->have += part;
            if (r->have == handler->head_len) {
                r->have = 0;
                r->left = frame_u32(r->head + handler->head_len - 4);
                result = handler->head(ctx, e);
            }
        }
        if (result != FRAME_MORE)
            return result;
        data += part;
        len -= part;
    }
    return FRAME_MORE;
}

struct docker_push {
    struct docker_frame *frame;
    const struct docker_frame_out *out;
};

static enum frame_push docker_head(void *ctx, struct err *e)
{
    struct docker_frame *f = ((struct docker_push *)ctx)->frame;
    const char *h = f->reader.head;

    if ((h[0] != 1 && h[0] != 2) || h[1] != 0 || h[2] != 0 || h[3] != 0) {
        err_set(e, ERR_PROTOCOL, "the engine sent an output frame of unknown kind (%d)",
                (unsigned char)h[0]);
        return FRAME_BROKEN;
    }
    f->stream = h[0] == 1 ? ENGINE_STDOUT : ENGINE_STDERR;
    return FRAME_MORE;
}

static enum frame_push docker_payload(void *ctx, const char *data, size_t len, struct err *e)
{
    const struct docker_push *push = ctx;

    return push->out->payload(push->out->ctx, push->frame->stream, data, len, e);
}

enum frame_push docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                                  const struct docker_frame_out *out, struct err *e)
{
    static const struct frame_handler handler = {8, docker_head, docker_payload};
    struct docker_push push = {f, out};

    return frame_push(&f->reader, &handler, &push, data, len, e);
}
