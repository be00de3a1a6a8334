#include "config.h"

#include "common/scheduler/pool.h"
#include "common/scheduler/pool_books.h"

#include <string.h>

#define ANSWER_MS 15    /* after a run's end: its answer is being sent */
#define SETTLE_MS 250   /* without a claim, before work that is only likely to be useful */
#define GUESS_MS  1000  /* between two starts for conversations that were used once */
#define FRESH_MS  60000 /* since its use, for such a conversation */
#define EXTRA_MS  10000 /* without a miss: an added place goes */
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

/* A place for the next container. */
struct candidate {
    struct pool_lang *lang;
    struct pool_sandbox *sandbox; /* NULL: it goes on a warm directory */
    size_t have;
    int64_t used_ms;
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

static const struct engine_runner *runner_of(const struct pool_pass *l, const char *language)
{
    const struct engine_runners *all = l->now->runners;

    for (size_t i = 0; all && i < all->n; i++)
        if (all->items[i].warm && strcmp(all->items[i].language, language) == 0)
            return &all->items[i];
    return NULL;
}

/* Removes added places after EXTRA_MS without a miss. */
static void let_lapse(struct pool_pass *l, struct pool_extra *extra)
{
    while (extra->n > 0 && l->now->now_ms - extra->changed_ms >= EXTRA_MS) {
        extra->n--;
        extra->changed_ms += EXTRA_MS;
    }
    if (extra->n > 0)
        ask_again(l, extra->changed_ms + EXTRA_MS);
}

/* Applies what expires by time alone. */
static void pass_time(struct pool_pass *l)
{
    struct pool *p = l->pool;

    for (size_t i = 0; i < p->settings.n; i++)
        let_lapse(l, &p->langs[i].extra);
    for (size_t i = p->n_sandboxes; i-- > 0;) {
        struct pool_sandbox *sandbox = &p->sandboxes[i];
        if (is_reached(l, sandbox->used_ms + p->settings.idle_ms))
            pool_sandbox_drop(p, sandbox);
        else
            let_lapse(l, &sandbox->extra);
    }
}

static size_t places_of_lang(const struct pool_lang *lang)
{
    return lang->setting.n + lang->extra.n;
}

/* Those for which the machine has to be idle, too. */
static size_t all_places_of_lang(const struct pool_lang *lang)
{
    return places_of_lang(lang) + lang->setting.spare;
}

static size_t places_of_sandbox(const struct pool_sandbox *sandbox)
{
    return sandbox->ended ? 1 + sandbox->extra.n : 0;
}

/* Is it too old, of a replaced image, or for a conversation that is not remembered? */
static bool is_stale(struct pool_pass *l, const struct child *c)
{
    if (is_reached(l, c->born_ms + POOL_AGE_MS))
        return true;
    if (l->now->engine_ok && l->now->runners) {
        const struct engine_runner *r = runner_of(l, c->language);
        if (!r || !c->image_id || strcmp(r->image_id, c->image_id) != 0)
            return true;
    }
    return c->warm_dir[0] ? !pool_lang_of(l->pool, c->language)
                          : !pool_sandbox_of_child(l->pool, c);
}

static bool action(struct pool_action *out, enum pool_do what, struct child *c)
{
    *out = (struct pool_action){.what = what, .child = c};
    return true;
}

/* Is the one used longer ago than the other, or larger where neither waits for a conversation? */
static bool goes_before(struct pool_pass *l, const struct child *one, const struct child *other)
{
    const struct pool_sandbox *a = pool_sandbox_of_child(l->pool, one);
    const struct pool_sandbox *b = other ? pool_sandbox_of_child(l->pool, other) : NULL;

    if (!other || !a != !b)
        return !other || a;
    return a ? a->used_ms < b->used_ms
             : pool_bytes_of(l->pool, one) > pool_bytes_of(l->pool, other);
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

/* Ends the cheapest surplus container, the oldest of equal ones; when all together are over the
 * budget, that of the conversation used longest ago, then the most expensive. Within the budget it
 * waits until no program is young: the end of a container takes the engine as much as a start. */
static bool end_one(struct pool_pass *l, struct pool_action *out)
{
    const bool over = l->count.used - l->count.leaving > l->pool->settings.memory_bytes;
    struct child *worst = NULL, *first = NULL;

    if (!over && !is_reached(l, quiet_from_ms(l)))
        return false;
    for (struct child *c = NULL; (c = children_next(l->children, c));) {
        if (!child_is_warm(c))
            continue;
        if (is_stale(l, c))
            return action(out, POOL_END, c);
        const struct pool_lang *lang = pool_lang_of(l->pool, c->language);
        const struct pool_sandbox *sandbox = pool_sandbox_of_child(l->pool, c);
        if ((c->warm_dir[0] ? lang->have > all_places_of_lang(lang)
                            : sandbox->have > places_of_sandbox(sandbox)) &&
            (!worst || pool_bytes_of(l->pool, c) < pool_bytes_of(l->pool, worst)))
            worst = c;
        if (over && goes_before(l, c, first))
            first = c;
    }
    if (!worst)
        worst = first;
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

static bool may_start(struct pool_pass *l, const struct pool_lang *lang)
{
    return runner_of(l, lang->setting.language) && is_reached(l, lang->retry_ms);
}

/* The fewest containers first, then the latest use. */
static void propose(struct candidate *best, struct candidate c)
{
    if (!best->lang || c.have < best->have || (c.have == best->have && c.used_ms > best->used_ms))
        *best = c;
}

static void propose_langs(struct pool_pass *l, struct candidate *best, bool spare)
{
    for (size_t i = 0; i < l->pool->settings.n; i++) {
        struct pool_lang *lang = &l->pool->langs[i];
        if (lang->have < (spare ? all_places_of_lang(lang) : places_of_lang(lang)) &&
            may_start(l, lang))
            propose(best,
                    (struct candidate){.lang = lang, .have = lang->have, .used_ms = lang->used_ms});
    }
}

static void propose_sandboxes(struct pool_pass *l, struct candidate *best, bool proven)
{
    for (size_t i = 0; i < l->pool->n_sandboxes; i++) {
        struct pool_sandbox *sandbox = &l->pool->sandboxes[i];
        if (sandbox->proven == proven &&
            sandbox->have + sandbox->busy < places_of_sandbox(sandbox) &&
            (proven || (is_reached(l, sandbox->used_ms + SETTLE_MS) &&
                        l->now->now_ms - sandbox->used_ms < FRESH_MS)) &&
            may_start(l, sandbox->lang))
            propose(best, (struct candidate){.lang = sandbox->lang,
                                             .sandbox = sandbox,
                                             .have = sandbox->have,
                                             .used_ms = sandbox->used_ms});
    }
}

/* Has no run come for a moment? Then there is time for what is not needed at once. */
static bool is_settled(struct pool_pass *l)
{
    return is_reached(l, l->pool->last_claim_ms + SETTLE_MS);
}

static struct candidate choose_candidate(struct pool_pass *l)
{
    struct candidate best = {0};

    propose_langs(l, &best, false);
    propose_sandboxes(l, &best, true);
    /* A conversation used once may never return: its container is started only when no other
     * start is needed, one per GUESS_MS. */
    if (!best.lang && l->count.starting == 0) {
        propose_sandboxes(l, &best, false);
        if (best.lang && !(is_reached(l, l->pool->last_guess_ms + GUESS_MS) && is_settled(l)))
            best.lang = NULL;
    }
    return best;
}

/* Ends the container of the least recently used conversation, if that is older than the candidate.
 */
static bool evict_for(struct pool_pass *l, const struct candidate *who, struct pool_action *out)
{
    struct child *oldest = NULL;
    struct pool_sandbox *of = NULL;

    for (struct child *c = NULL; (c = children_next(l->children, c));) {
        struct pool_sandbox *sandbox = child_is_warm(c) ? pool_sandbox_of_child(l->pool, c) : NULL;
        if (!sandbox || (who->sandbox && sandbox->used_ms >= who->used_ms) ||
            (of && sandbox->used_ms >= of->used_ms))
            continue;
        oldest = c;
        of = sandbox;
    }
    if (!oldest)
        return false;
    pool_sandbox_drop(l->pool, of); /* its next use adds it again */
    return action(out, POOL_END, oldest);
}

static bool start_one(struct pool_pass *l, struct pool_action *out)
{
    const uint64_t budget = l->pool->settings.memory_bytes;

    if (!may_begin(l))
        return false;
    struct candidate who = choose_candidate(l);
    if (!who.lang)
        return false;
    const uint64_t more = pool_usual_bytes(who.lang, false);
    if (l->count.used - l->count.leaving + more > budget)
        return !(who.sandbox && who.sandbox->expected) && evict_for(l, &who, out);
    if (l->count.used + more > budget)
        return false; /* until the released ones have ended */
    if (who.sandbox && !who.sandbox->proven)
        l->pool->last_guess_ms = l->now->now_ms;
    *out = (struct pool_action){.what = who.sandbox ? POOL_START_ON_SANDBOX
                                                    : POOL_START_ON_WARM_DIR,
                                .runner = runner_of(l, who.lang->setting.language)};
    if (who.sandbox)
        memcpy(out->sandbox_dir, who.sandbox->name, sizeof(out->sandbox_dir));
    return true;
}

/* One place of several stays without libraries, for programs that import none. */
static bool wants_loading(struct pool_pass *l, const struct child *c)
{
    const struct engine_runner *r = runner_of(l, c->language);

    if (!r || !r->preload || !r->preload[0] || c->state != CHILD_WAITING || c->preload_asked ||
        c->tier != ENGINE_TIER_STARTED)
        return false;
    const struct pool_lang *lang = pool_lang_of(l->pool, c->language);
    const struct pool_sandbox *sandbox = pool_sandbox_of_child(l->pool, c);
    if (!lang || !c->warm_dir[0])
        return sandbox && sandbox->preloaded; /* NULL: it is about to end */
    const size_t n = lang->setting.n + lang->setting.spare;
    return lang->preloaded < (n > 1 ? n - 1 : 1);
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
        const uint64_t others = l->count.used - pool_bytes_of(l->pool, c);
        const uint64_t more = pool_usual_bytes(pool_lang_of(l->pool, c->language), true);
        if (others + more <= l->pool->settings.memory_bytes &&
            (!best || !best->sandbox_dir[0] || goes_before(l, best, c)))
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
static bool start_spare(struct pool_pass *l, struct pool_action *out)
{
    struct candidate who = {0};

    if (l->count.starting > 0 || is_loading(l) || !may_begin(l))
        return false;
    propose_langs(l, &who, true);
    if (!who.lang || !is_idle(l) ||
        l->count.used + pool_usual_bytes(who.lang, false) + pool_usual_bytes(who.lang, true) >
            l->pool->settings.memory_bytes)
        return false;
    *out = (struct pool_action){.what = POOL_START_ON_WARM_DIR,
                                .runner = runner_of(l, who.lang->setting.language)};
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
    if (end_one(&l, out) || start_one(&l, out) || load_one(&l, out) || start_spare(&l, out))
        return true;
    *out_at_ms = l.again_ms;
    return false;
}
