#include "config.h"

#include "common/engine/frame.h"

#include <string.h>

/* The head is complete. */
static int take_head(struct docker_frame *f, struct err *e)
{
    const char *h = f->head;

    if ((h[0] != 1 && h[0] != 2) || h[1] != 0 || h[2] != 0 || h[3] != 0)
        return err_set(e, ERR_PROTOCOL, "the engine sent an output frame of unknown kind (%d)",
                       (unsigned char)h[0]);
    f->stream = h[0] == 1 ? ENGINE_STDOUT : ENGINE_STDERR;
    f->left = u32_get(h + 4);
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
