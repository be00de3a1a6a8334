/* The pool over hours: whatever happens in whatever order, its promises hold. */
#include "config.h"

#include "tests/unit/scheduler/pool_world.h"

/* ---- chance ---- */

static uint64_t seed;

static unsigned chance(unsigned n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % n;
}

/* ---- hours of anything ---- */

#define PSANDBOXES_DIR 40
#define STEPS          20000

struct hours {
    struct world w;
    bool known[PSANDBOXES_DIR];
    int64_t retry_ms[3]; /* nothing of that image before */
    char image_id[3][16];
    int starts, loads, ends, again; /* again: runs in used containers */
};

static int64_t *retry_of(struct hours *h, const char *language)
{
    return &h->retry_ms[pool_image_of(h->w.pool, language) - h->w.pool->images];
}

/* Containers come back from runs: then those that were told to go do not count. */
static uint64_t memory_used(const struct hours *h)
{
    uint64_t used = 0;

    for (struct child *c = NULL; (c = children_next(h->w.children, c));)
        if (!c->claimed && !(h->w.settings.reuse && c->state == CHILD_ENDED))
            used += c->preload_asked || c->tier == ENGINE_TIER_PRELOADED ? 96 * WORLD_MIB
                                                                         : 16 * WORLD_MIB;
    return used;
}

static void check_start(struct hours *h, const struct pool_action *action)
{
    size_t starting = 0, young = 0, callers = h->w.waiting;

    for (struct child *c = NULL; (c = children_next(h->w.children, c));) {
        starting += c->state == CHILD_STARTING;
        callers += c->state == CHILD_STARTING && c->claimed;
        young += c->state == CHILD_RUNNING && h->w.now - c->since_ms < POOL_YOUNG_MS;
    }
    assert_true(starting < h->w.settings.starts_max);
    assert_true(h->w.engine_ok);
    assert_true(young == 0 || callers > 0);
    assert_true(h->w.now >= *retry_of(h, action->runner->language));
    assert_ptr_equal(action->runner, world_runner(&h->w, action->runner->language));
}

static void check_child(const struct hours *h, const struct pool_action *action)
{
    assert_false(action->child->claimed);
    assert_true(child_is_warm(action->child));
    if (action->what == POOL_END)
        return;
    assert_true((h->w.idle || action->child->sandbox_dir[0]) && h->w.engine_ok);
    assert_int_equal(action->child->state, CHILD_WAITING);
    assert_ptr_equal(pool_image_of(h->w.pool, action->child->language),
                     pool_image_of(h->w.pool, "python"));
    assert_false(action->child->preload_asked);
}

static void carry_out(struct hours *h)
{
    struct pool_action action;

    for (int n = 0; world_ask(&h->w, &action); n++) {
        const bool start = action.what == POOL_START_ON_SANDBOX ||
                           action.what == POOL_START_ON_WARM_DIR;
        assert_true(n < 1000);
        if (start)
            check_start(h, &action);
        else
            check_child(h, &action);
        h->starts += start;
        h->loads += action.what == POOL_PRELOAD;
        h->ends += action.what == POOL_END;
        world_do(&h->w, &action);
        assert_true(h->w.settings.reuse || memory_used(h) <= h->w.settings.memory_bytes);
    }
    assert_true(memory_used(h) <= h->w.settings.memory_bytes);
    assert_true(h->w.again < 0 || h->w.again > h->w.now);
}

/* Some supervisor for which is says so; NULL: there is none. */
static struct child *any_child(struct world *w, bool (*is)(const struct child *))
{
    struct child *found = NULL;
    unsigned n = 0;

    for (struct child *c = NULL; (c = children_next(w->children, c));)
        if (is(c) && chance(++n) == 0)
            found = c;
    return found;
}

static bool is_starting(const struct child *c)
{
    return c->state == CHILD_STARTING;
}

static bool is_running(const struct child *c)
{
    return c->state == CHILD_RUNNING;
}

static bool is_loading(const struct child *c)
{
    return c->state == CHILD_WAITING && c->preload_asked;
}

static bool is_unclaimed(const struct child *c)
{
    return !c->claimed && (c->state == CHILD_WAITING || c->state == CHILD_STARTING);
}

static bool is_wiping(const struct child *c)
{
    return c->state == CHILD_WIPING;
}

static bool is_ended(const struct child *c)
{
    return c->state == CHILD_ENDED;
}

static void a_call_comes(struct hours *h)
{
    static const char *const languages[] = {"bash", "perl", "python", "typescript"};
    const size_t i = chance(PSANDBOXES_DIR);
    json_auto_t *imports = chance(2) ? json_pack("[s]", "pandas") : NULL;
    char sandbox_dir[16];

    if (h->w.running >= 16)
        return;
    snprintf(sandbox_dir, sizeof(sandbox_dir), "dir-%zu", i);
    struct pool_want want = world_want(&h->w, languages[chance(4)], sandbox_dir, h->known[i]);
    want.imports = imports;
    want.network = chance(10) == 0;
    const bool may = pool_may_start(h->w.pool, h->w.children);
    if (!may && !pool_choose(h->w.pool, h->w.children, &want))
        return; /* it waits for its turn to start */
    struct child *c = world_claim(&h->w, &want);
    assert_string_equal(c->image_id, want.runner->image_id);
    assert_string_equal(c->language, want.runner->language);
    assert_string_equal(c->sandbox_dir, sandbox_dir);
    h->known[i] = true;
    h->again += c->runs > 0;
    if (c->state == CHILD_WAITING || c->state == CHILD_WIPING)
        world_run(&h->w, c);
}

static void a_start_is_done(struct hours *h)
{
    struct child *c = any_child(&h->w, is_starting);

    if (c && c->claimed) {
        world_run(&h->w, c);
    } else if (c) {
        c->state = CHILD_WAITING;
        c->tier = ENGINE_TIER_STARTED;
    }
}

static void a_run_is_over(struct hours *h)
{
    struct child *c = any_child(&h->w, is_running);

    if (c && chance(4))
        world_keep(&h->w, c);
    else if (c)
        world_end(&h->w, c);
}

static void a_wipe_is_done(struct hours *h)
{
    struct child *c = any_child(&h->w, is_wiping);

    if (c && !chance(5))
        c->state = CHILD_ENDED; /* doubt */
    else if (c)
        c->state = CHILD_WAITING;
}

static void libraries_are_there(struct hours *h)
{
    struct child *c = any_child(&h->w, is_loading);

    if (c)
        c->tier = ENGINE_TIER_PRELOADED;
}

static void a_supervisor_dies(struct hours *h)
{
    struct child *c = any_child(&h->w, is_unclaimed);

    if (!c || chance(20))
        return;
    if (pool_image_of(h->w.pool, c->language)->retry_ms <= h->w.now) /* else it has one cause */
        *retry_of(h, c->language) = h->w.now + 1000;                 /* at least */
    pool_note_failed_start(h->w.pool, c->language, h->w.now);
    children_remove(h->w.children, c);
}

static void an_ended_child_is_removed(struct hours *h)
{
    struct child *c = any_child(&h->w, is_ended);

    if (c)
        children_remove(h->w.children, c);
}

static void an_image_changes(struct hours *h)
{
    const size_t i = chance(3);

    if (chance(40))
        return;
    snprintf(h->image_id[i], sizeof(h->image_id[i]), "sha256:%u", chance(1000000));
    for (size_t j = 0; j < h->w.runners.n; j++) /* perl is of the same image as python */
        if ((j > 1 ? j - 1 : j) == i)
            h->w.items[j].image_id = h->image_id[i];
}

static void the_engine_comes_and_goes(struct hours *h)
{
    if (chance(h->w.engine_ok ? 60 : 5) == 0)
        h->w.engine_ok = !h->w.engine_ok;
}

static void the_machine_turns(struct hours *h)
{
    h->w.idle = chance(2);
    h->w.waiting = chance(4) == 0;
}

static void (*const events[])(struct hours *) = {
    a_call_comes,
    a_call_comes,
    a_call_comes,
    a_start_is_done,
    a_start_is_done,
    a_start_is_done,
    a_run_is_over,
    a_run_is_over,
    a_wipe_is_done,
    a_wipe_is_done,
    libraries_are_there,
    a_supervisor_dies,
    an_ended_child_is_removed,
    an_image_changes,
    the_machine_turns,
    the_engine_comes_and_goes,
};

/* Left alone for long enough, everything is as the settings say. */
static void comes_to_rest(struct hours *h)
{
    h->w.engine_ok = h->w.idle = true;
    h->w.waiting = 0;
    for (struct child *c; (c = any_child(&h->w, is_running));)
        world_end(&h->w, c);
    for (int minute = 0; minute < 20; minute++) {
        for (int i = 0; i < 100; i++) {
            a_start_is_done(h);
            a_run_is_over(h);
            a_wipe_is_done(h);
            libraries_are_there(h);
            an_ended_child_is_removed(h);
            carry_out(h);
        }
        h->w.now += 60000;
        carry_out(h);
    }
    for (size_t i = 0; i < h->w.settings.n; i++) {
        const struct pool_language *wanted = &h->w.settings.items[i];
        assert_int_equal(world_on_warm_dirs(&h->w, wanted->language),
                         h->w.settings.automatic && wanted->n > 2 ? 2 : wanted->n);
    }
    for (struct child *c = NULL; (c = children_next(h->w.children, c));)
        assert_true(c->warm_dir[0]); /* a conversation without a call has none */
}

static void hours_with(uint64_t memory, bool automatic, bool reuse, uint64_t first_seed)
{
    struct hours *h = mem_alloc(sizeof *h);

    seed = first_seed;
    world_open(&h->w);
    h->w.settings.memory_bytes = memory;
    h->w.settings.automatic = automatic;
    h->w.settings.items[0].n = automatic ? 5 : 2;
    h->w.settings.reuse = reuse;
    world_begin(&h->w);
    for (int step = 0; step < STEPS; step++) {
        h->w.now += chance(20) ? chance(40) : chance(4000);
        events[chance(ARRAY_LEN(events))](h);
        carry_out(h);
        if (step % 5000 == 4999)
            comes_to_rest(h);
    }
    assert_true(h->starts > (reuse ? 50 : 500) && h->ends > 50 && h->loads > 0);
    assert_true(reuse ? h->again > 50 : h->again == 0);
    world_close(&h->w);
    free(h);
}

static void promises_hold_whatever_happens(void **state)
{
    (void)state;
    hours_with(1024 * WORLD_MIB, false, false, 88172645463325252ull);
    hours_with(1024 * WORLD_MIB, false, true, 88172645463325252ull);
    hours_with(1024 * WORLD_MIB, true, true, 1234567890123ull);
}

static void they_hold_with_little_memory(void **state)
{
    (void)state;
    hours_with(144 * WORLD_MIB, false, false, 99194853094755497ull);
    hours_with(144 * WORLD_MIB, true, true, 99194853094755497ull);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(promises_hold_whatever_happens),
    cmocka_unit_test(they_hold_with_little_memory),
};
UNIT_TESTS(tests)
