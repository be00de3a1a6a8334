/* The engine's output frames: cut in two anywhere they give the same as in one piece, and never
 * more than came in. */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/frame.h"
#include "tests/fuzz/fuzz.h"

static void take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct buf *out = ctx;
    PROMISE(len > 0);
    PROMISE(stream == ENGINE_STDOUT || stream == ENGINE_STDERR);
    for (size_t i = 0; i < len; i++) {
        buf_add_char(out, (char)stream);
        buf_add_char(out, data[i]);
    }
}

/* Pushes data, cut at cut; the payload with its streams ends up in out. */
static int push(const char *data, size_t len, size_t cut, struct buf *out)
{
    struct docker_frame f = {0};
    struct frame_sink to = {take, out};
    struct err e = ERR_INIT;
    int r = docker_frame_push(&f, data, cut, &to, &e);
    if (r == 0)
        r = docker_frame_push(&f, data + cut, len - cut, &to, &e);
    if (r < 0)
        promise_error(&e);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_BUF struct buf whole = BUF_INIT(2 * len), cut = BUF_INIT(2 * len);
    size_t at = len > 0 ? data[len - 1] % len : 0;
    int r = push((const char *)data, len, len, &whole);
    PROMISE(push((const char *)data, len, at, &cut) == r);
    PROMISE(buf_ok(&whole) && whole.len == cut.len);
    PROMISE(memcmp(buf_str(&whole), buf_str(&cut), whole.len) == 0);
    return 0;
}
