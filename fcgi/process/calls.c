#include "config.h"

#include "fcgi/process/calls.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/share.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

static size_t size_for(size_t n)
{
    return sizeof(struct calls) + n * sizeof(struct call_entry);
}

struct calls *calls_new(size_t n)
{
    return mem_shared(size_for(n));
}

void calls_free(struct calls *c, size_t n)
{
    if (c)
        munmap(c, size_for(n));
}

enum call_state calls_state(const struct calls *c, size_t i, int64_t now_ms)
{
    int64_t since = atomic_load(&c->entries[i].since_ms);

    if (since == 0)
        return CALL_NONE;
    return now_ms - since < CALL_LONG_MS ? CALL_BRIEF : CALL_LONG;
}

void calls_clear(struct calls *c, size_t i)
{
    atomic_store(&c->entries[i].tenant, 0);
    atomic_store(&c->entries[i].turn, 0);
    atomic_store(&c->entries[i].since_ms, 0);
}

/* After a change of the entry: either the master still sees it, or its wish is seen here. */
static void wake_master(const struct call_place *p)
{
    if (atomic_exchange(&p->calls->wants_wake, false))
        eventfd_write(p->wake_fd, 1);
}

bool calls_are_last(const struct call_place *p)
{
    return p->calls && atomic_load(&p->calls->last);
}

bool calls_are_draining(const struct call_place *p)
{
    return p->calls && atomic_load(&p->calls->draining);
}

void call_begin(const struct call_place *p)
{
    if (!p->calls)
        return;
    atomic_store(&p->calls->entries[p->i].since_ms, clock_mono_ms());
    wake_master(p);
}

void call_end(const struct call_place *p)
{
    if (!p->calls)
        return;
    calls_clear(p->calls, p->i);
    wake_master(p);
}

enum call_room call_admit(const struct call_place *p, const char *tenant, size_t most)
{
    uint64_t key = share_key(tenant);
    size_t own = 0, taken = 0;

    if (!p->calls)
        return CALL_HAS_ROOM;
    /* First seen, then counted: of two that come at once, one at least sees the other. */
    atomic_store(&p->calls->entries[p->i].tenant, key);
    const uint64_t turn = atomic_fetch_add(&p->calls->turns, 1) + 1;
    atomic_store(&p->calls->entries[p->i].turn, turn);
    for (size_t i = 0, n = atomic_load(&p->calls->n_used); i < n && i < p->n; i++) {
        const struct call_entry *entry = &p->calls->entries[i];
        if (i == p->i || atomic_load(&entry->since_ms) == 0)
            continue;
        taken++;
        own += atomic_load(&entry->tenant) == key && atomic_load(&entry->turn) < turn;
    }
    if (own < most && share_allows(own, taken, p->max))
        return CALL_HAS_ROOM;
    own -= own < CALL_RESERVE ? own : CALL_RESERVE;
    return own < most && share_allows(own, taken, p->max) ? CALL_MAY_FREE : CALL_HAS_NO_ROOM;
}
