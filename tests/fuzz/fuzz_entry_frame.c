/* What a container's entry program sends: cut anywhere it means the same, and its report stays in
 * range. */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/entry_frame.h"
#include "tests/fuzz/fuzz.h"

static bool take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct buf *out = ctx;
    for (size_t i = 0; i < len; i++) {
        buf_add_char(out, (char)stream);
        buf_add_char(out, data[i]);
    }
    return true;
}

static enum frame_push push(const char *data, size_t len, size_t cut, struct buf *out)
{
    struct entry_frame f = {.handed = true};
    struct engine_sink sink = {take, out};
    struct err e = ERR_INIT;
    enum frame_push r = entry_frame_push(&f, data, cut, &sink, &e);
    if (r == FRAME_MORE)
        r = entry_frame_push(&f, data + cut, len - cut, &sink, &e);
    if (r == FRAME_BROKEN) {
        promise_error(&e);
        PROMISE(e.kind == ERR_PROTOCOL);
    }
    PROMISE((r == FRAME_STOP) == f.reported);
    PROMISE(!f.warm || f.started);
    if (f.reported) {
        PROMISE(f.report.exit_code >= -1 && f.report.exit_code <= 255);
        PROMISE(f.report.signal >= 0 && f.report.signal <= 64);
        PROMISE((f.report.exit_code == -1) == (f.report.signal != 0));
    }
    return r;
}

/* While it has no program: nothing of it is output, and how far it is never goes back. */
static void push_waiting(const char *data, size_t len)
{
    struct entry_frame f = {0};
    enum frame_push r = FRAME_MORE;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < len && r == FRAME_MORE; i++) {
        enum engine_tier before = f.tier;
        r = entry_frame_push(&f, data + i, 1, NULL, &e);
        PROMISE(f.tier >= before && f.tier <= ENGINE_TIER_PRELOADED);
    }
    PROMISE(r != FRAME_STOP && !f.reported && !f.warm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_BUF struct buf whole = BUF_INIT(2 * len), cut = BUF_INIT(2 * len);
    size_t at = len > 0 ? data[len - 1] % len : 0;
    enum frame_push r = push((const char *)data, len, len, &whole);
    PROMISE(push((const char *)data, len, at, &cut) == r);
    push_waiting((const char *)data, len);
    PROMISE(buf_ok(&whole) && whole.len == cut.len);
    PROMISE(memcmp(buf_str(&whole), buf_str(&cut), whole.len) == 0);
    return 0;
}
