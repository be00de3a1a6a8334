/* What a container sends: a frame is taken whole or not at all, and its values are in range. */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/entry_frame.h"
#include "tests/fuzz/fuzz.h"

static void check_event(const struct engine_event *event, const char *frame, size_t len)
{
    const struct engine_outcome *o = &event->outcome;
    PROMISE(event->kind != ENGINE_EVENT_NOTHING);
    PROMISE(event->data >= frame && event->data + event->len == frame + len);
    PROMISE(event->len <= ENTRY_FRAME_MAX);
    if (event->kind == ENGINE_EVENT_TIER)
        PROMISE(event->wait.tier > ENGINE_TIER_NONE && event->wait.tier <= ENGINE_TIER_PRELOADED);
    if (event->kind != ENGINE_EVENT_ENDED)
        return;
    PROMISE(o->end == ENGINE_EXITED || o->end == ENGINE_TIMED_OUT);
    PROMISE(o->exit_code >= -1 && o->exit_code <= 255);
    PROMISE(o->signal >= 0 && o->signal <= 64);
    PROMISE((o->exit_code == -1) == (o->signal != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const char *at = (const char *)data;
    while (len > 0) {
        struct engine_event event, part;
        struct err e = ERR_INIT;
        ssize_t n = entry_frame_take(at, len, &event, &e);
        if (n < 0) {
            promise_error(&e);
            PROMISE(e.kind == ERR_PROTOCOL);
            break;
        }
        if (n == 0)
            break;
        PROMISE((size_t)n <= len);
        check_event(&event, at, (size_t)n);
        PROMISE(entry_frame_take(at, (size_t)n - 1, &part, &e) == 0);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
