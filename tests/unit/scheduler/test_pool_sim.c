/*
 * The pool over hours: whatever happens in whatever order, its promises hold; and callers that come
 * one after the other get the engine's whole speed.
 */
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
    int64_t retry_ms[3]; /* nothing of that language before */
    char image[3][16];
    int starts, loads, ends, again; /* again: runs in used containers */
};

static size_t language_index(const struct hours *h, const char *language)
{
    for (size_t i = 0; i < 3; i++)
        if (strcmp(h->w.items[i].language, language) == 0)
            return i;
    fail_msg("no language %s", language);
    return 0;
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

static void check_start(const struct hours *h, const struct pool_action *action)
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
    assert_true(h->w.now >= h->retry_ms[language_index(h, action->runner->language)]);
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
    assert_string_equal(action->child->language, "python");
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
    static const char *const languages[] = {"bash", "python", "typescript"};
    const size_t i = chance(PSANDBOXES_DIR);
    json_auto_t *imports = chance(2) ? json_pack("[s]", "pandas") : NULL;
    char sandbox_dir[16];

    if (h->w.running >= 16)
        return;
    snprintf(sandbox_dir, sizeof(sandbox_dir), "dir-%zu", i);
    struct pool_want want = world_want(&h->w, languages[chance(3)], sandbox_dir, h->known[i]);
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
    if (pool_lang_of(h->w.pool, c->language)->retry_ms <= h->w.now)    /* else it has one cause */
        h->retry_ms[language_index(h, c->language)] = h->w.now + 1000; /* at least */
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
    snprintf(h->image[i], sizeof(h->image[i]), "sha256:%u", chance(1000000));
    h->w.items[i].image_id = h->image[i];
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
    for (int minute = 0; minute < 15; minute++) {
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
        const size_t have = (size_t)world_on_warm_dirs(&h->w, wanted->language);
        assert_in_range(have, wanted->n, wanted->n + wanted->spare);
        assert_true(have == wanted->n + wanted->spare ||
                    h->w.settings.memory_bytes < 500 * WORLD_MIB);
    }
    for (struct child *c = NULL; (c = children_next(h->w.children, c));)
        assert_true(c->warm_dir[0]); /* conversations are forgotten after ten minutes */
}

static void hours_with(uint64_t memory, size_t spare, bool reuse, uint64_t first_seed)
{
    struct hours *h = mem_alloc(sizeof *h);

    seed = first_seed;
    world_open(&h->w);
    h->w.settings.memory_bytes = memory;
    h->w.settings.items[0].spare = h->w.settings.items[1].spare = spare;
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
    hours_with(1024 * WORLD_MIB, 0, false, 88172645463325252ull);
    hours_with(1024 * WORLD_MIB, 0, true, 88172645463325252ull);
    hours_with(1024 * WORLD_MIB, 3, true, 1234567890123ull);
}

static void they_hold_with_little_memory(void **state)
{
    (void)state;
    hours_with(144 * WORLD_MIB, 0, false, 99194853094755497ull);
    hours_with(144 * WORLD_MIB, 3, true, 99194853094755497ull);
}

/* ---- callers that come one after the other ---- */

/*
 * The engine: a start takes 40 ms and then 60 ms of a processor, which all starts share; the latter
 * within a third, or else all of them would march in step. Time goes in steps of 1 ms.
 */
#define FIXED_MS 40
#define CPU_MS   60
#define RUN_MS   3
#define LOOP_MS  30000
#define CALLERS  16

struct loops {
    struct world w;
    bool bare;         /* no container is warm, and starts are not bounded */
    bool one_psandbox; /* all calls are of one conversation */
    bool leaving;      /* no further calls */
    int n_callers;
    struct child *at[CALLERS]; /* whom a caller waits for, or whose program runs */
    int64_t over_ms[CALLERS];  /* when that program ends; 0: it has not begun */
    int64_t up_ms[4096];       /* by number of the child: when the first part of a start is done */
    double left[4096];         /* and what is left of the second */
    int answered, hits;
};

/* Children are numbered by their run id; the numbers come round. */
static size_t number_of(const struct child *c)
{
    uint64_t n = 0;

    for (const char *p = c->run_id; *p; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    return n % 4096;
}

static void engine_begins(struct loops *l, const struct child *c)
{
    l->up_ms[number_of(c)] = l->w.now + FIXED_MS;
    l->left[number_of(c)] = CPU_MS * 2 / 3 + (int)chance(CPU_MS * 2 / 3 + 1);
}

static void engine_works(struct loops *l)
{
    int sharing = 0;

    for (struct child *c = NULL; (c = children_next(l->w.children, c));)
        sharing += is_starting(c) && l->w.now >= l->up_ms[number_of(c)];
    for (struct child *c = NULL; (c = children_next(l->w.children, c));) {
        if (!is_starting(c) || l->w.now < l->up_ms[number_of(c)])
            continue;
        l->left[number_of(c)] -= 1.0 / sharing;
        if (l->left[number_of(c)] <= 0) {
            c->state = CHILD_WAITING;
            c->tier = ENGINE_TIER_STARTED;
        }
    }
}

static void call(struct loops *l, int i)
{
    char sandbox_dir[24];

    snprintf(sandbox_dir, sizeof(sandbox_dir), "%s-%d", l->one_psandbox ? "same" : "new",
             l->one_psandbox ? 0 : l->answered * CALLERS + i);
    const struct pool_want want = world_want(&l->w, "python", sandbox_dir, l->one_psandbox);
    struct child *c = l->bare ? NULL : pool_choose(l->w.pool, l->w.children, &want);
    if (!c && !l->bare && !pool_may_start(l->w.pool, l->w.children))
        return; /* asks again in a while, as a run that waits for its start */
    if (l->bare) {
        c = world_child(&l->w, want.runner, sandbox_dir, CHILD_STARTING);
        c->claimed = true;
    } else {
        c = world_claim(&l->w, &want);
    }
    if (is_starting(c) && c->born_ms == l->w.now)
        engine_begins(l, c);
    l->hits += c->state == CHILD_WAITING;
    l->at[i] = c;
}

static void caller_tick(struct loops *l, int i)
{
    if (!l->at[i] && !l->leaving)
        call(l, i);
    struct child *c = l->at[i];
    if (c && c->state == CHILD_WAITING) {
        world_run(&l->w, c);
        l->over_ms[i] = l->w.now + RUN_MS;
    }
    if (!c || !is_running(c) || l->w.now < l->over_ms[i])
        return;
    world_end(&l->w, c);
    l->at[i] = NULL;
    l->answered++;
}

static void pool_tick(struct loops *l)
{
    struct pool_action action;

    l->w.waiting = 0;
    for (int i = 0; i < l->n_callers; i++)
        l->w.waiting += !l->at[i] && !l->leaving;
    while (!l->bare && world_ask(&l->w, &action)) {
        world_do(&l->w, &action);
        if (action.what != POOL_START_ON_WARM_DIR && action.what != POOL_START_ON_SANDBOX)
            continue;
        for (struct child *c = NULL; (c = children_next(l->w.children, c));)
            if (is_starting(c) && c->born_ms == l->w.now && !c->claimed)
                engine_begins(l, c);
    }
}

static void turn(struct loops *l)
{
    l->w.now++;
    engine_works(l);
    for (struct child *c; (c = any_child(&l->w, is_ended));)
        children_remove(l->w.children, c);
    for (int i = 0; i < l->n_callers; i++)
        caller_tick(l, i);
    pool_tick(l);
}

/* Runs answered per second, after a start-up that does not count. */
static double rate_of(struct loops *l)
{
    for (int64_t until = l->w.now + 5000; l->w.now < until;)
        turn(l);
    l->answered = l->hits = 0;
    for (int64_t until = l->w.now + LOOP_MS; l->w.now < until;)
        turn(l);
    return l->answered * 1000.0 / LOOP_MS;
}

static struct loops *loops_new(int n_callers, bool bare, bool one_psandbox)
{
    struct loops *l = mem_alloc(sizeof *l);

    seed = 362436069362436069ull;
    world_open(&l->w);
    l->w.idle = false;
    l->n_callers = n_callers;
    l->bare = bare;
    l->one_psandbox = one_psandbox;
    world_begin(&l->w);
    return l;
}

static void loops_free(struct loops *l)
{
    world_close(&l->w);
    free(l);
}

static const int numbers[] = {1, 2, 4, 8, 16};

/* The most that starting a container for each call ever reaches on this engine. */
static double best_bare_rate(void)
{
    double best = 0;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct loops *l = loops_new(numbers[i], true, false);
        double rate = rate_of(l);
        if (rate > best)
            best = rate;
        loops_free(l);
    }
    return best;
}

/* The callers leave; what was added for them goes too, and their conversations are forgotten. */
static void shrinks_back(struct loops *l)
{
    l->leaving = true;
    for (int ms = 0; ms < 5000; ms++)
        turn(l);
    assert_int_equal(l->w.running, 0);
    for (int s = 0; s < 700; s++) {
        world_rest(&l->w);
        l->w.now += 1000;
    }
    world_rest(&l->w);
    assert_int_equal(world_on_warm_dirs(&l->w, "python"), 2);
    assert_int_equal(world_count(&l->w, (struct world_filter)WORLD_ANY), 4);
}

static void loops_reach_the_best_rate(bool one_psandbox)
{
    const double best = best_bare_rate();

    assert_true(best > 14);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct loops *l = loops_new(numbers[i], false, one_psandbox);
        const double rate = rate_of(l);
        print_message("%d callers, %s: %.1f of %.1f runs/s\n", numbers[i],
                      one_psandbox ? "one conversation" : "new conversations", rate, best);
        if (rate < 0.9 * best)
            fail_msg("%d callers get %.1f runs/s of %.1f", numbers[i], rate, best);
        shrinks_back(l);
        loops_free(l);
    }
}

static void new_conversations_in_a_loop_get_the_engines_speed(void **state)
{
    (void)state;
    loops_reach_the_best_rate(false);
}

static void one_conversation_in_a_loop_gets_the_engines_speed(void **state)
{
    (void)state;
    loops_reach_the_best_rate(true);
}

/* Four calls a second: a third of what the engine can start. No call should ever wait. */
static void callers_that_leave_time_are_never_missed(void **state)
{
    (void)state;
    for (int one_psandbox = 0; one_psandbox < 2; one_psandbox++) {
        struct loops *l = loops_new(0, false, one_psandbox);
        int calls = 0;
        for (int ms = 0; ms < LOOP_MS; ms++) {
            const bool calling = ms >= 5000 && ms % 250 == 0;
            l->n_callers = calling || l->at[0] ? 1 : 0;
            calls += calling;
            turn(l);
        }
        assert_true(calls > 90);
        assert_true(l->hits >= calls - 2);
        loops_free(l);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(promises_hold_whatever_happens),
    cmocka_unit_test(they_hold_with_little_memory),
    cmocka_unit_test(new_conversations_in_a_loop_get_the_engines_speed),
    cmocka_unit_test(one_conversation_in_a_loop_gets_the_engines_speed),
    cmocka_unit_test(callers_that_leave_time_are_never_missed),
};
UNIT_TESTS(tests)
