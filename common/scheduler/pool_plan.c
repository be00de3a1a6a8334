#include "config.h"

#include "common/scheduler/pool.h"
#include "common/scheduler/pool_books.h"

#include <string.h>

#define ANSWER_MS 15    /* after a run's end: its answer is being sent */
#define SETTLE_MS 250   /* without a claim, before work that is only likely to be useful */
#define LOAD_MS   60000 /* one that preloads for longer does not keep others from it */
#define IDLE_MS   1000  /* between checks whether the machine is idle */

/* The state of one call of pool_next. */
struct pool_pass {
    struct pool *pool;
    const struct children *children;
    const struct pool_now *now;
    struct pool_count count;
    int64_t again_ms; /* when something changes by itself; -1: never */
};

static void ask_again(struct pool_pass *l, int64_t at_ms)
{
    if (l->again_ms < 0 || at_ms < l->again_ms)
        l->again_ms = at_ms;
}

/* Has that time come? Else the pool is asked again then. */
static bool is_reached(struct pool_pass *l, int64_t at_ms)
{
    if (l->now->now_ms < at_ms)
        ask_again(l, at_ms);
    return l->now->now_ms >= at_ms;
}

/* Applies what expires by time alone. */
static void pass_time(struct pool_pass *l)
{
    struct pool *p = l->pool;

    if (p->called_ms == 0)
        p->called_ms = l->now->now_ms;
    const bool at_rest = is_reached(l, p->called_ms + POOL_CALLS_MS);
    for (size_t i = p->n_sandboxes; i-- > 0;)
        if (at_rest || is_reached(l, p->sandboxes[i].used_ms + p->settings.idle_ms))
            pool_sandbox_drop(p, &p->sandboxes[i]);
        else if (is_reached(l, p->sandboxes[i].used_ms + POOL_LIBRARIES_MS))
            p->sandboxes[i].preloaded = false;
}

static size_t places(const struct pool_pass *l, const struct pool_image *image, bool all)
{
    return pool_places(l->pool, image, l->now->now_ms, all);
}

/* Is it of no use for what it waits for? */
static bool is_stale(struct pool_pass *l, const struct child *c)
{
    if (is_reached(l, c->born_ms + POOL_AGE_MS))
        return true;
    if (l->now->engine_ok && (!c->pool_image || !c->image_id ||
                              strcmp(c->pool_image->runner->image_id, c->image_id) != 0))
        return true;
    if (c->warm_dir[0])
        return false;
    if (!c->sandbox ||
        (child_has_libraries(c) && is_reached(l, c->sandbox->used_ms + POOL_LIBRARIES_MS)))
        return true;
    return c->sandbox->have > 1 && is_reached(l, c->since_ms + POOL_FURTHER_MS);
}

static bool action(struct pool_action *out, enum pool_do what, struct child *c)
{
    *out = (struct pool_action){.what = what, .child = c};
    return true;
}

/* When no program is young and the last answer has been sent. A program that has not reported that
 * it runs is no older than the last claim. */
static int64_t quiet_from_ms(const struct pool_pass *l)
{
    int64_t at_ms = l->pool->last_end_ms + ANSWER_MS;

    for (struct child *c = NULL; (c = children_next(l->children, c));) {
        if (c->kind != CHILD_SUPERVISOR || !c->claimed || c->state == CHILD_ENDED)
            continue;
        int64_t began_ms = c->state == CHILD_RUNNING ? c->since_ms : l->pool->last_claim_ms;
        if (began_ms + POOL_YOUNG_MS > at_ms)
            at_ms = began_ms + POOL_YOUNG_MS;
    }
    return at_ms;
}

/* The container of the conversation used longest ago, if that was before; NULL: none. */
static struct child *least_used(const struct pool_pass *l, int64_t before_ms)
{
    struct child *found = NULL;

    for (struct child *c = NULL; (c = children_next(l->children, c));)
        if (child_is_warm(c) && c->sandbox && c->sandbox->used_ms < before_ms) {
            found = c;
            before_ms = c->sandbox->used_ms;
        }
    return found;
}

/* The cheapest surplus container, or the most expensive of all, the oldest of equal ones; NULL:
 * none. */
static struct child *find_warm(struct pool_pass *l, bool surplus)
{
    struct child *found = NULL;
    uint64_t bytes = 0;

    for (struct child *c = NULL; (c = children_next(l->children, c));) {
        if (!child_is_warm(c) ||
            (surplus && (!c->warm_dir[0] || !c->pool_image ||
                         c->pool_image->have <= places(l, c->pool_image, true))))
            continue;
        if (found && (surplus ? pool_bytes_of(c) >= bytes : pool_bytes_of(c) <= bytes))
            continue;
        found = c;
        bytes = pool_bytes_of(c);
    }
    return found;
}

/* Ends what is stale, then what is surplus; when all together are over the budget, the container of
 * the conversation used longest ago, then the most expensive. Within the budget it waits until no
 * program is young: the end of a container takes the engine as much as a start. */
static bool end_one(struct pool_pass *l, struct pool_action *out)
{
    const bool over = l->count.used - l->count.leaving > l->pool->settings.memory_bytes;

    if (!over && !is_reached(l, quiet_from_ms(l)))
        return false;
    for (struct child *c = NULL; (c = children_next(l->children, c));)
        if (child_is_warm(c) && is_stale(l, c))
            return action(out, POOL_END, c);
    struct child *worst = find_warm(l, true);
    if (!worst && over)
        worst = least_used(l, INT64_MAX);
    if (!worst && over)
        worst = find_warm(l, false);
    return worst && action(out, POOL_END, worst);
}

static bool may_begin(struct pool_pass *l)
{
    const struct pool *p = l->pool;
    int64_t quiet_ms = quiet_from_ms(l);

    if (!l->now->engine_ok || l->count.starting >= p->settings.starts_max)
        return false;
    return l->now->waiting_callers > 0 || l->count.callers > 0 || is_reached(l, quiet_ms);
}

static bool may_start(struct pool_pass *l, const struct pool_image *image)
{
    return image->runner && is_reached(l, image->retry_ms);
}

/* The image of which a new conversation would find the fewest; NULL: all find enough. */
static struct pool_image *choose_image(struct pool_pass *l, bool all)
{
    struct pool_image *best = NULL;

    for (size_t i = 0; i < l->pool->settings.n; i++) {
        struct pool_image *image = &l->pool->images[i];
        if (may_start(l, image) && image->have < places(l, image, all) &&
            (!best || image->have < best->have))
            best = image;
    }
    return best;
}

/* The conversation used last of those that want a container. */
static struct pool_sandbox *choose_sandbox(struct pool_pass *l)
{
    struct pool_sandbox *best = NULL;

    for (size_t i = 0; i < l->pool->n_sandboxes; i++) {
        struct pool_sandbox *sandbox = &l->pool->sandboxes[i];
        if (sandbox->from_ms > 0 && sandbox->have + sandbox->busy == 0 &&
            (!best || sandbox->used_ms > best->used_ms) && is_reached(l, sandbox->from_ms) &&
            may_start(l, sandbox->image))
            best = sandbox;
    }
    return best;
}

/* Has no run come for a moment? Then there is time for what is not needed at once. */
static bool is_settled(struct pool_pass *l)
{
    return is_reached(l, l->pool->last_claim_ms + SETTLE_MS);
}

/* Makes room for that conversation, or (NULL) a new one. */
static bool evict_for(struct pool_pass *l, const struct pool_sandbox *who, struct pool_action *out)
{
    struct child *c = least_used(l, who ? who->used_ms : INT64_MAX);

    if (!c)
        return false;
    pool_sandbox_drop(l->pool, c->sandbox); /* its next use adds it again */
    return action(out, POOL_END, c);
}

static bool start_one(struct pool_pass *l, struct pool_action *out)
{
    const uint64_t budget = l->pool->settings.memory_bytes;

    if (!may_begin(l))
        return false;
    struct pool_image *image = choose_image(l, false);
    struct pool_sandbox *sandbox = image ? NULL : choose_sandbox(l);
    if (sandbox)
        image = sandbox->image;
    if (!image)
        return false;
    const uint64_t more = pool_usual_bytes(image, false);
    if (l->count.used - l->count.leaving + more > budget)
        return evict_for(l, sandbox, out);
    if (l->count.used + more > budget)
        return false; /* until the released ones have ended */
    *out = (struct pool_action){.what = sandbox ? POOL_START_ON_SANDBOX : POOL_START_ON_WARM_DIR,
                                .runner = image->runner};
    if (sandbox)
        memcpy(out->sandbox_dir, sandbox->name, sizeof(out->sandbox_dir));
    return true;
}

/* One place of several stays without libraries, for programs that import none. */
static bool wants_loading(struct pool_pass *l, const struct child *c)
{
    if (!c->pool_image || !*c->pool_image->runner->preload || c->state != CHILD_WAITING ||
        child_has_libraries(c) || c->tier != ENGINE_TIER_STARTED)
        return false;
    if (!c->warm_dir[0])
        return c->sandbox && c->sandbox->preloaded; /* NULL: it is about to end */
    const size_t n = places(l, c->pool_image, true);
    return c->pool_image->preloaded < (n > 1 ? n - 1 : 1);
}

static bool is_idle(struct pool_pass *l)
{
    if (!is_settled(l))
        return false;
    if (!l->now->machine_idle)
        ask_again(l, l->now->now_ms + IDLE_MS);
    return l->now->machine_idle;
}

/* A conversation's programs import the libraries each time, for as much of the processor as a load
 * takes once: its container does not wait for an idle machine, but comes before all others. */
static bool may_load(struct pool_pass *l, const struct child *c)
{
    return c->sandbox_dir[0] ? is_reached(l, quiet_from_ms(l)) : is_idle(l);
}

static bool is_loading(struct pool_pass *l)
{
    return l->count.loading > 0 && !is_reached(l, l->pool->last_load_ms + LOAD_MS);
}

static bool load_one(struct pool_pass *l, struct pool_action *out)
{
    struct child *best = NULL;

    if (!l->now->engine_ok || l->count.starting > 0 || is_loading(l))
        return false;
    for (struct child *c = NULL; (c = children_next(l->children, c));) {
        if (!child_is_warm(c) || !wants_loading(l, c) || (best && !c->sandbox_dir[0]) ||
            !may_load(l, c))
            continue;
        const uint64_t others = l->count.used - pool_bytes_of(c);
        const uint64_t more = pool_usual_bytes(c->pool_image, true);
        if (others + more <= l->pool->settings.memory_bytes &&
            (!best || !best->sandbox || c->sandbox->used_ms > best->sandbox->used_ms))
            best = c;
    }
    if (!best)
        return false;
    l->pool->last_load_ms = l->now->now_ms;
    action(out, POOL_PRELOAD, best);
    out->fast = l->count.running == 0 && l->now->waiting_callers == 0;
    return true;
}

/* After all libraries, and in room that none of them needs: a container that has them is worth
 * several that do not. */
static bool start_more(struct pool_pass *l, struct pool_action *out)
{
    if (l->count.starting > 0 || is_loading(l) || !may_begin(l))
        return false;
    const struct pool_image *image = choose_image(l, true);
    if (!image || !is_idle(l) ||
        l->count.used + pool_usual_bytes(image, false) + pool_usual_bytes(image, true) >
            l->pool->settings.memory_bytes)
        return false;
    *out = (struct pool_action){.what = POOL_START_ON_WARM_DIR, .runner = image->runner};
    return true;
}

bool pool_next(struct pool *p, const struct children *children, const struct pool_now *now,
               struct pool_action *out, int64_t *out_at_ms)
{
    struct pool_pass l = {.pool = p, .children = children, .now = now, .again_ms = -1};

    *out_at_ms = -1;
    if (p->settings.n == 0)
        return false;
    pass_time(&l);
    pool_count(p, children, &l.count);
    if (end_one(&l, out) || start_one(&l, out) || load_one(&l, out) || start_more(&l, out))
        return true;
    *out_at_ms = l.again_ms;
    return false;
}
