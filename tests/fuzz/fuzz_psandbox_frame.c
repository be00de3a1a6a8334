/* The frames of a persistent sandbox: one is taken whole or not at all, and its values are in
 * range.
 */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/psandbox_frame.h"
#include "tests/fuzz/fuzz.h"

static void check_event(const struct engine_psandbox_event *event, const char *frame, size_t len)
{
    const struct engine_outcome *o = &event->outcome;
    PROMISE(event->kind != ENGINE_PSANDBOX_NOTHING);
    PROMISE(event->data >= frame && event->data + event->len == frame + len);
    PROMISE(event->len < PSANDBOX_FRAME_MAX);
    if (event->kind != ENGINE_PSANDBOX_ENDED)
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
        struct engine_psandbox_event event, part;
        struct err e = ERR_INIT;
        ssize_t n = psandbox_frame_take(at, len, &event, &e);
        if (n < 0) {
            promise_error(&e);
            break;
        }
        if (n == 0)
            break;
        PROMISE((size_t)n <= len);
        check_event(&event, at, (size_t)n);
        PROMISE(psandbox_frame_take(at, (size_t)n - 1, &part, &e) == 0);
        at += n;
        len -= (size_t)n;
    }
    return 0;
}
