#include "config.h"

#include "common/engine/docker_frame.h"

#include <string.h>

/* Understands a complete header. */
static enum frame_push take_head(struct docker_frame *f, struct err *e)
{
    const unsigned char *h = f->head;

    if ((h[0] != 1 && h[0] != 2) || h[1] != 0 || h[2] != 0 || h[3] != 0) {
        err_set(e, ERR_PROTOCOL, "the engine sent an output frame of unknown kind (%d)", h[0]);
        return FRAME_BROKEN;
    }
    f->stream = h[0] == 1 ? ENGINE_STDOUT : ENGINE_STDERR;
    f->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
    f->head_have = 0;
    return FRAME_MORE;
}

enum frame_push docker_frame_push(struct docker_frame *f, const char *data, size_t len,
                                  const struct docker_frame_out *out, struct err *e)
{
    while (len > 0) {
        size_t part;
        enum frame_push r;

        if (f->left == 0) {
            part = DOCKER_FRAME_HEAD - f->head_have;
            if (part > len)
                part = len;
            memcpy(f->head + f->head_have, data, part);
            f->head_have += part;
            r = f->head_have == DOCKER_FRAME_HEAD ? take_head(f, e) : FRAME_MORE;
        } else {
            part = f->left < len ? f->left : len;
            f->left -= (uint32_t)part;
            r = out->payload(out->ctx, f->stream, data, part, e);
        }
        if (r != FRAME_MORE)
            return r;
        data += part;
        len -= part;
    }
    return FRAME_MORE;
}
