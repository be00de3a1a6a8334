#include "config.h"

#include "common/scheduler/memory_room.h"

#define CALM_SHARE 32   /* of the limit, one part in so many a second is no growth */
#define MARK_MS    1500 /* what was before an older mark says nothing of now */

bool memory_room_is_stale(const struct memory_room *r, int64_t now_ms)
{
    return r->reserve > 0 && (r->latest.at_ms == 0 || now_ms - r->latest.at_ms >= MEMORY_STALE_MS);
}

void memory_room_look(struct memory_room *r, uint64_t available, int64_t now_ms)
{
    r->latest = (struct memory_look){.at_ms = now_ms,
                                     .free = available > r->reserve ? available - r->reserve : 0};
    if (r->marks[1].at_ms > 0 && now_ms - r->marks[1].at_ms < MEMORY_LOOK_MS)
        return;
    r->marks[0] = r->marks[1];
    r->marks[1] = r->latest;
}

static bool is_calm(const struct memory_room *r)
{
    const struct memory_look *mark = &r->marks[0];
    const int64_t ms = r->latest.at_ms - mark->at_ms;

    if (mark->at_ms == 0 || ms > MARK_MS)
        return false;
    return r->latest.free + r->limit / CALM_SHARE * (uint64_t)ms / 1000 >= mark->free;
}

bool memory_room_fits(const struct memory_room *r, struct memory_programs programs)
{
    const uint64_t limits = r->latest.free / r->limit; /* so many of them are free */

    if (r->reserve == 0 || programs.running == 0 || programs.running < limits)
        return true;
    return programs.young < limits && is_calm(r);
}
