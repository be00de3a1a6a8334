#include "config.h"

#include "common/scheduler/pool_books.h"

#include <string.h>

struct pool_shelf *pool_shelf_of(struct pool *p, const char *language)
{
    for (size_t i = 0; i < p->settings.n; i++)
        if (strcmp(p->shelves[i].setting.language, language) == 0)
            return &p->shelves[i];
    return NULL;
}

void pool_sandbox_drop(struct pool *p, struct pool_sandbox *sandbox)
{
    *sandbox = p->sandboxes[--p->n_sandboxes];
}

struct pool_sandbox *pool_sandbox_of(struct pool *p, const char *name, struct pool_shelf *shelf)
{
    struct pool_sandbox *oldest = &p->sandboxes[0];

    for (size_t i = 0; i < p->n_sandboxes; i++) {
        if (p->sandboxes[i].shelf == shelf && strcmp(p->sandboxes[i].name, name) == 0)
            return &p->sandboxes[i];
        if (p->sandboxes[i].used_ms < oldest->used_ms)
            oldest = &p->sandboxes[i];
    }
    if (p->n_sandboxes == p->max_sandboxes)
        pool_sandbox_drop(p, oldest);
    struct pool_sandbox *sandbox = &p->sandboxes[p->n_sandboxes++];
    *sandbox = (struct pool_sandbox){.shelf = shelf};
    memcpy(sandbox->name, name, strnlen(name, SANDBOX_NAME_LEN));
    return sandbox;
}

uint64_t pool_usual_bytes(const struct pool_shelf *shelf, bool full)
{
    const uint64_t seen = !shelf ? 0 : full ? shelf->full_bytes : shelf->light_bytes;

    return seen ? seen : full ? POOL_FULL_BYTES : POOL_LIGHT_BYTES;
}

uint64_t pool_bytes_of(struct pool *p, const struct child *c)
{
    const bool full = c->tier == ENGINE_TIER_FULL || c->preload_asked;
    const bool measured = c->memory_bytes > 0 && (c->tier == ENGINE_TIER_FULL) == full;

    return measured ? c->memory_bytes + POOL_BESIDE_BYTES
                    : pool_usual_bytes(pool_shelf_of(p, c->language), full);
}

/* Where the search for a name begins. Names are digests: a few of their digits tell them apart. */
static size_t index_of(const char *name)
{
    size_t h = 0;

    for (size_t i = 0; i < 8 && name[i]; i++)
        h = h * 31 + (unsigned char)name[i];
    return h % POOL_INDEX;
}

static void make_index(struct pool *p)
{
    memset(p->index, 0, sizeof(p->index));
    for (size_t i = 0; i < p->n_sandboxes; i++) {
        size_t at = index_of(p->sandboxes[i].name);
        while (p->index[at])
            at = (at + 1) % POOL_INDEX;
        p->index[at] = (uint16_t)(i + 1);
    }
}

struct pool_sandbox *pool_sandbox_of_child(struct pool *p, const struct child *c)
{
    if (!c->sandbox_dir[0])
        return NULL;
    for (size_t at = index_of(c->sandbox_dir); p->index[at]; at = (at + 1) % POOL_INDEX) {
        struct pool_sandbox *sandbox = &p->sandboxes[p->index[at] - 1];
        if (strcmp(sandbox->name, c->sandbox_dir) == 0 &&
            strcmp(sandbox->shelf->setting.language, c->language) == 0)
            return sandbox;
    }
    return NULL;
}

static void count_waiting(struct pool *p, const struct child *c, struct pool_count *out)
{
    struct pool_shelf *shelf = pool_shelf_of(p, c->language);
    struct pool_sandbox *sandbox = pool_sandbox_of_child(p, c);

    if (c->preload_asked && c->tier != ENGINE_TIER_FULL)
        out->loading++;
    if (sandbox)
        sandbox->have++;
    if (!shelf || !c->warm_dir[0])
        return;
    shelf->have++;
    if (c->preload_asked || c->tier == ENGINE_TIER_FULL)
        shelf->full++;
}

void pool_count(struct pool *p, const struct children *children, struct pool_count *out)
{
    *out = (struct pool_count){0};
    for (size_t i = 0; i < p->settings.n; i++)
        p->shelves[i].have = p->shelves[i].full = 0;
    for (size_t i = 0; i < p->n_sandboxes; i++)
        p->sandboxes[i].have = 0;
    make_index(p);
    for (struct child *c = NULL; (c = children_next(children, c));) {
        if (c->kind != CHILD_SUPERVISOR)
            continue;
        out->starting += c->state == CHILD_STARTING;
        out->callers += c->state == CHILD_STARTING && c->claimed;
        if (c->claimed)
            continue;
        out->used += pool_bytes_of(p, c);
        if (child_is_warm(c))
            count_waiting(p, c, out);
        else
            out->leaving += pool_bytes_of(p, c);
    }
}
