#include "config.h"

#include "fcgi/http/body_pace.h"

#include "common/base/clock.h"

static int too_slow(struct err *e)
{
    return err_set(e, ERR_CANCELLED,
                   "the body comes too slowly: at least %d bytes a second are needed",
                   BODY_BYTES_S);
}

int body_pace_note(struct body_pace *p, uint64_t bytes, int64_t waited_ms, struct err *e)
{
    p->all_ms += waited_ms;
    p->look_ms += waited_ms;
    p->bytes += bytes;
    if (p->all_ms > BODY_LONGEST_S * 1000)
        return err_set(e, ERR_CANCELLED, "the body takes longer than %d s", BODY_LONGEST_S);
    if (bytes == 0 || p->look_ms < BODY_LOOK_S * 1000)
        return 0;
    if (p->bytes < (uint64_t)p->look_ms * BODY_BYTES_S / 1000)
        return too_slow(e);
    p->look_ms = 0;
    p->bytes = 0;
    return 0;
}

long body_read(struct body_pace *p, const struct http_source *source, char *data, size_t len,
               struct err *e)
{
    const int64_t began_ms = clock_mono_ms();
    const long n = source->read(source->ctx, data, len);

    if (body_pace_note(p, n > 0 ? (uint64_t)n : 0, clock_mono_ms() - began_ms, e) < 0)
        return -1;
    if (n >= 0)
        return n;
    /* The source has given up waiting. */
    return p->look_ms >= (BODY_LOOK_S - 1) * 1000 ? too_slow(e)
                                                  : err_set(e, ERR_INVALID, "the body broke off");
}
