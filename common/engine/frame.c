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

/* The head is complete. */
static int take_head(struct docker_frame *f, struct err *e)
{
    const char *h = f->head;

    if ((h[0] != 1 && h[0] != 2) || h[1] != 0 || h[2] != 0 || h[3] != 0)
        return err_set(e, ERR_PROTOCOL, "the engine sent an output frame of unknown kind (%d)",
                       (unsigned char)h[0]);
    f->stream = h[0] == 1 ? ENGINE_STDOUT : ENGINE_STDERR;
    f->left = frame_u32(h + 4);
    f->have = 0;
    return 0;
}

int docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                      const struct frame_sink *sink, struct err *e)
{
    while (len > 0) {
        size_t want = f->left > 0 ? f->left : DOCKER_FRAME_HEAD - f->have;
        size_t part = want < len ? want : len;

        if (f->left > 0) {
            f->left -= (uint32_t)part;
            sink->output(sink->ctx, f->stream, data, part);
        } else {
            memcpy(f->head + f->have, data, part);
            f->have += part;
            if (f->have == DOCKER_FRAME_HEAD && take_head(f, e) < 0)
                return -1;
        }
        data += part;
        len -= part;
    }
    return 0;
}
