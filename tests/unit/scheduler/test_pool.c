/* Which container a run gets, and which there are to be: each rule by itself. */
#include "config.h"

#include "common/rpc/json.h"
#include "tests/unit/scheduler/pool_world.h"

/* ---- who is chosen ---- */

#define ANSWER_MS 15 /* after a run nothing starts for so long, unless a run waits */

static void a_new_conversation_gets_a_spare_and_a_known_one_its_own(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    struct child *warm_dir = world_child(&w, world_runner(&w, "python"), NULL, CHILD_WAITING);
    struct child *own = world_child(&w, world_runner(&w, "python"), "dir-1", CHILD_WAITING);
    const struct {
        const char *language, *sandbox_dir;
        bool known;
        struct child *expected;
    } cases[] = {
        {"python", "dir-2", false, warm_dir}, {"python", "dir-2", true, NULL},
        {"python", "dir-1", true, own},       {"python", "dir-1", false, own},
        {"bash", "dir-2", false, NULL},       {"bash", "dir-1", true, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pool_want want = world_want(&w, cases[i].language, cases[i].sandbox_dir,
                                           cases[i].known);
        assert_ptr_equal(pool_choose(w.pool, w.children, &want), cases[i].expected);
        want.network = true;
        assert_null(pool_choose(w.pool, w.children, &want));
    }
    world_close(&w);
}

static void who_cannot_serve_is_not_chosen(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    struct pool_want want = world_want(&w, "python", "dir-1", false);
    struct child *c = world_child(&w, want.runner, NULL, CHILD_WAITING);
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), c);
    c->claimed = true;
    assert_null(pool_choose(w.pool, w.children, &want));
    c->claimed = false;
    c->state = CHILD_ENDED;
    assert_null(pool_choose(w.pool, w.children, &want));
    c->state = CHILD_RUNNING;
    assert_null(pool_choose(w.pool, w.children, &want));
    c->state = CHILD_WAITING;
    w.items[1].image_id = (char[]){"sha256:p2"};
    assert_null(pool_choose(w.pool, w.children, &want));
    children_add(w.children, CHILD_JOB);
    assert_null(pool_choose(w.pool, w.children, &want));
    world_close(&w);
}

static void waiting_before_starting_the_right_tier_the_oldest(void **state)
{
    json_auto_t *pandas = json_pack("[s, s, i]", "os", "pandas.core", 1);
    json_auto_t *plain = json_pack("[s, s]", "json", "pandasql");
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    struct pool_want want = world_want(&w, "python", "dir-1", false);
    struct pool_want rich = want, poor = want;
    rich.imports = pandas;
    poor.imports = plain;

    struct child *young = world_child(&w, want.runner, NULL, CHILD_STARTING);
    struct child *old = world_child(&w, want.runner, NULL, CHILD_STARTING);
    young->born_ms += 50;
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), old);
    struct child *preloaded = world_child(&w, want.runner, NULL, CHILD_WAITING);
    preloaded->preload_asked = true;
    preloaded->tier = ENGINE_TIER_PRELOADED;
    assert_ptr_equal(pool_choose(w.pool, w.children, &poor), preloaded);
    struct child *started = world_child(&w, want.runner, NULL, CHILD_WAITING);
    struct child *loading = world_child(&w, want.runner, NULL, CHILD_WAITING);
    loading->preload_asked = true;
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), started);
    assert_ptr_equal(pool_choose(w.pool, w.children, &poor), started);
    assert_ptr_equal(pool_choose(w.pool, w.children, &rich), preloaded);
    preloaded->claimed = true;
    assert_ptr_equal(pool_choose(w.pool, w.children, &rich), loading);
    loading->claimed = true;
    assert_ptr_equal(pool_choose(w.pool, w.children, &rich), started);
    /* One on the directory itself comes before any warm_dir. */
    struct child *own = world_child(&w, want.runner, "dir-1", CHILD_WAITING);
    assert_ptr_equal(pool_choose(w.pool, w.children, &rich), own);
    world_close(&w);
}

static void a_program_needs_what_its_image_can_load(void **state)
{
    static const struct {
        const char *preload, *imports, *needs;
    } cases[] = {{"numpy pandas matplotlib.pyplot", "[\"matplotlib\", \"pandas\", 1]",
                  "pandas matplotlib.pyplot"},
                 {"numpy pandas", "[\"pandasql\", \"nump\"]", ""},
                 {"numpy  pandas ", "[\"numpy.linalg\"]", "numpy"},
                 {"", "[\"numpy\"]", ""},
                 {"numpy", "[]", ""}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct engine_runner runner = {.preload = (char *)(uintptr_t)cases[i].preload};
        json_auto_t *imports = json_loads(cases[i].imports, 0, NULL);
        AUTO_BUF struct buf needs = BUF_INIT(ENGINE_PRELOAD_MAX);

        assert_int_equal(pool_needs(&runner, imports, &needs), cases[i].needs[0] != '\0');
        assert_string_equal(buf_str(&needs), cases[i].needs);
    }
    assert_false(pool_needs(&(struct engine_runner){0}, NULL, NULL));
}

static void starts_for_runs_are_bounded_too(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    for (int i = 0; i < 4; i++) {
        assert_true(pool_may_start(w.pool, w.children));
        world_child(&w, world_runner(&w, "bash"), "sandbox_dir", CHILD_STARTING)->claimed = i % 2;
    }
    assert_false(pool_may_start(w.pool, w.children));
    children_next(w.children, NULL)->state = CHILD_RUNNING;
    assert_true(pool_may_start(w.pool, w.children));
    world_close(&w);
}

/* ---- what there is to be ---- */

static void the_shelves_are_filled_in_turn_and_some_loaded(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    assert_int_equal(world_settle(&w), 4); /* as many as may start at once */
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2);
    assert_int_equal(world_on_warm_dirs(&w, "typescript"), 1);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1);
    world_catch_up(&w);
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_PRELOAD);
    assert_string_equal(action.child->language, "python");
    world_do(&w, &action);
    assert_false(world_ask(&w, &action)); /* one at a time, and one stays without */
    world_catch_up(&w);
    assert_false(world_ask(&w, &action));
    assert_true(w.again > w.now); /* containers grow old */
    world_close(&w);
}

static void nothing_waits_where_nothing_is_to_wait(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.n = 0;
    world_begin(&w);
    assert_false(world_ask(&w, &action));
    assert_int_equal(w.again, -1);
    struct pool_want want = world_want(&w, "python", "sandbox_dir", false);
    world_run(&w, world_claim(&w, &want));
    world_end(&w, children_next(w.children, NULL));
    assert_false(world_ask(&w, &action));
    world_close(&w);
}

static void images_that_cannot_wait_and_languages_without_one_are_left_alone(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.items[2].warm = false;
    w.runners = (struct engine_runners){.items = w.items + 1, .n = 2};
    world_begin(&w);
    assert_int_equal(world_settle(&w), 2);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2);
    world_close(&w);
}

static void nothing_is_started_beside_a_young_run_unless_a_run_is_queued(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", false);
    struct child *run = world_claim(&w, &want);
    assert_int_equal(run->state, CHILD_WAITING);
    world_run(&w, run);
    w.now += POOL_YOUNG_MS - 1;
    assert_false(world_ask(&w, &action));
    assert_int_equal(w.again, w.now + 1);
    w.waiting = 1;
    assert_true(world_ask(&w, &action));
    w.waiting = 0;
    assert_false(world_ask(&w, &action));
    struct child *cold = world_child(&w, want.runner, "dir-9", CHILD_STARTING);
    cold->claimed = true; /* its run waits for it */
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_START_ON_WARM_DIR);
    children_remove(w.children, cold);
    w.now += 1;
    assert_true(world_ask(&w, &action));
    world_close(&w);
}

static void a_run_that_is_old_delays_no_container(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    struct pool_want python = world_want(&w, "python", "dir-1", false);
    world_run(&w, world_claim(&w, &python));
    w.now += POOL_YOUNG_MS;
    struct pool_want bash = world_want(&w, "bash", "dir-2", false);
    struct child *brief = world_claim(&w, &bash);
    world_run(&w, brief);
    w.now += 3;
    world_end(&w, brief);
    w.now += ANSWER_MS;
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_START_ON_WARM_DIR);
    world_close(&w);
}

static void after_a_run_its_answer_goes_first(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", false);
    struct child *run = world_claim(&w, &want);
    world_run(&w, run);
    w.now += 3;
    world_end(&w, run);
    assert_false(world_ask(&w, &action));
    assert_int_equal(w.again, w.now + ANSWER_MS);
    w.now += ANSWER_MS;
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_START_ON_WARM_DIR);
    assert_string_equal(action.runner->language, "bash");
    world_close(&w);
}

static void libraries_are_loaded_only_while_the_machine_is_idle(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.idle = false;
    world_begin(&w);
    world_rest(&w);
    assert_int_equal(
        world_count(&w, (struct world_filter){.state = -1, .tier = ENGINE_TIER_PRELOADED}), 0);
    assert_int_equal(w.again, w.now + 1000);
    w.idle = true;
    world_rest(&w);
    assert_int_equal(
        world_count(&w, (struct world_filter){.state = -1, .tier = ENGINE_TIER_PRELOADED}), 1);
    world_close(&w);
}

/* While a run goes on, or waits, libraries are loaded at a pace. */
static void libraries_are_loaded_fast_only_when_there_is_no_run(void **state)
{
    for (int runs = 0; runs < 3; runs++) {
        struct pool_action action;
        struct world w;

        (void)state;
        world_open(&w);
        w.idle = false;
        world_begin(&w);
        world_rest(&w);
        w.idle = true;
        w.waiting = runs == 1;
        if (runs == 2) {
            struct pool_want want = world_want(&w, "bash", "dir-1", false);
            world_run(&w, world_claim(&w, &want));
            w.now += 1000;
            w.idle = false;
            world_rest(&w);
            w.idle = true;
        }
        assert_true(world_ask(&w, &action));
        assert_int_equal(action.what, POOL_PRELOAD);
        assert_int_equal(action.fast, runs == 0);
        world_close(&w);
    }
}

static void one_that_never_finishes_loading_delays_no_other(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.items[0].n = 3;
    world_begin(&w);
    world_settle(&w);
    for (struct child *c = NULL; (c = children_next(w.children, c)); world_settle(&w)) {
        c->state = CHILD_WAITING;
        c->tier = ENGINE_TIER_STARTED;
    }
    assert_int_equal(world_settle(&w), 0); /* one of them was told to load, and does not end */
    assert_int_equal(w.again, w.now + 60000);
    w.now += 59999;
    assert_false(world_ask(&w, &action));
    w.now++;
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_PRELOAD);
    world_close(&w);
}

static void nothing_is_started_while_the_engine_is_in_trouble(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.engine_ok = false;
    w.runners.n = 0;
    world_begin(&w);
    world_child(&w, &w.items[1], NULL, CHILD_WAITING);
    assert_int_equal(world_settle(&w), 0); /* and what waits may still be good */
    w.engine_ok = true;
    w.runners.n = 3;
    assert_int_equal(world_settle(&w), 3);
    world_close(&w);
}

static void failures_back_off_and_are_forgiven(void **state)
{
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.n = 1;
    world_begin(&w);
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        assert_int_equal(world_settle(&w), 2);
        for (struct child *c; (c = children_next(w.children, NULL));) { /* one trouble */
            children_remove(w.children, c);
            pool_note_failed_start(w.pool, "python", w.now);
        }
        assert_int_equal(world_settle(&w), 0);
        assert_int_equal(w.again, w.now + waits[i]);
        w.now += waits[i] - 1;
        assert_int_equal(world_settle(&w), 0);
        w.now++;
    }
    w.now += 60001;
    pool_note_failed_start(w.pool, "python", w.now);
    pool_note_failed_start(w.pool, "no such language", w.now);
    assert_int_equal(world_settle(&w), 0);
    assert_int_equal(w.again, w.now + 1000);
    world_close(&w);
}

static void another_image_or_an_hour_replaces_what_waits(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    w.items[0].image_id = (char[]){"sha256:b2"};
    assert_int_equal(world_settle(&w), 2); /* one goes, one comes */
    assert_int_equal(world_count(&w, (struct world_filter){.state = CHILD_ENDED, .tier = -1}), 1);
    world_rest(&w);
    for (struct child *c = NULL; (c = children_next(w.children, c));)
        if (strcmp(c->language, "bash") == 0)
            assert_string_equal(c->image_id, "sha256:b2");
    w.now += 3600000 - 1;
    assert_int_equal(world_settle(&w), 0);
    assert_int_equal(w.again, w.now + 1);
    w.now++;
    assert_int_equal(world_settle(&w), 4 + 4);
    assert_int_equal(world_count(&w, (struct world_filter){.state = CHILD_ENDED, .tier = -1}), 4);
    world_close(&w);
}

/* ---- conversations ---- */

/* One run from its claim to its answer, 5 ms later, and that on its way. */
static void run_once(struct world *w, const char *language, const char *sandbox_dir, bool known)
{
    const struct pool_want want = world_want(w, language, sandbox_dir, known);
    struct child *c = world_claim(w, &want);

    world_run(w, c);
    w->now += 5;
    world_end(w, c);
    w->now += ANSWER_MS;
}

static void a_conversation_used_once_gets_its_next_when_all_is_quiet(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    run_once(&w, "bash", "dir-1", false);
    assert_int_equal(world_settle(&w), 1);
    assert_int_equal(world_on(&w, "dir-1"), 0); /* the warm_dir came first */
    world_catch_up(&w);
    assert_int_equal(world_settle(&w), 0);
    assert_int_equal(w.again, w.now - ANSWER_MS + 250);
    w.now = w.again;
    assert_int_equal(world_settle(&w), 1);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    world_close(&w);
}

/* A flood of conversations that never come back must not keep the engine busy. */
static void guesses_are_few_and_fresh(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = 4096 * WORLD_MIB;
    world_begin(&w);
    world_rest(&w);
    for (int i = 0; i < 90; i++) {
        char sandbox_dir[16];
        snprintf(sandbox_dir, sizeof(sandbox_dir), "new-%d", i);
        run_once(&w, "bash", sandbox_dir, false);
    }
    world_rest(&w);
    const int64_t used_ms = w.now - ANSWER_MS;
    const int before = world_count(&w, (struct world_filter)WORLD_ANY) -
                       world_on_warm_dirs(&w, "bash");
    for (w.now += 250; w.now - used_ms < 100000; w.now += 100)
        world_rest(&w);
    const int guessed = world_count(&w, (struct world_filter)WORLD_ANY) -
                        world_on_warm_dirs(&w, "bash") - before;
    assert_int_equal(guessed, 59);               /* the first of them are too long ago by then */
    assert_int_equal(world_on(&w, "new-89"), 1); /* the latest first */
    assert_int_equal(world_on(&w, "new-0"), 0);
    world_close(&w);
}

static void a_conversation_that_gets_a_file_gets_a_container(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    run_once(&w, "bash", "dir-1", true);
    world_rest(&w);
    pool_note_upload(w.pool, "dir-1", w.now); /* it has its own way */
    pool_note_upload(w.pool, "dir-2", w.now);
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-2"), 0); /* it may not be on disk yet */
    assert_int_equal(w.again, w.now + 250);
    w.now += 250;
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    assert_int_equal(world_on(&w, "dir-2"), 1);
    const struct pool_want want = world_want(&w, "python", "dir-2", true);
    assert_non_null(pool_choose(w.pool, w.children, &want));
    world_close(&w);
}

static void one_that_comes_back_gets_its_next_at_once(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    run_once(&w, "bash", "dir-1", true);
    assert_int_equal(world_settle(&w), 1);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    world_catch_up(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", true);
    assert_non_null(pool_choose(w.pool, w.children, &want));
    world_close(&w);
}

/* Calls that come faster than starts add places; these lapse one by one. */
static void misses_add_places_that_lapse(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    for (int i = 0; i < 20; i++) {
        char sandbox_dir[16];
        snprintf(sandbox_dir, sizeof(sandbox_dir), "new-%d", i);
        run_once(&w, "bash", sandbox_dir, false);
        run_once(&w, "python", "known", true);
    }
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1 + 4);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2);
    assert_int_equal(world_on(&w, "known"), 1 + 4);
    w.now += 10000;
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1 + 3);
    assert_int_equal(world_on(&w, "known"), 1 + 3);
    w.now += 30000;
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1);
    assert_int_equal(world_on(&w, "known"), 1);
    world_close(&w);
}

static void runs_with_network_leave_no_trace(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", false);
    want.network = true;
    struct child *c = world_claim(&w, &want);
    world_run(&w, c);
    world_end(&w, c);
    w.now += 1000;
    assert_int_equal(world_settle(&w), 0);
    world_close(&w);
}

static void an_unused_conversation_loses_its_container(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    run_once(&w, "bash", "dir-1", true);
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    w.now += w.settings.idle_ms - ANSWER_MS - 1;
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    w.now++;
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 0);
    run_once(&w, "bash", "dir-2", true);
    pool_forget_sandbox(w.pool, "dir-2");
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-2"), 0);
    world_close(&w);
}

static void the_conversation_used_longest_ago_makes_room(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = 4 * POOL_STARTED_BYTES; /* one bash and three conversations */
    w.settings.items[0] = (struct pool_language){"bash", 1, 0};
    w.settings.n = 1;
    world_begin(&w);
    static const char *const names[] = {"a", "b", "c", "d", "b", "e", "f"};
    static const char *const left[] = {"a", "ab", "abc", "bcd", "bcd", "bde", "bef"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        run_once(&w, "bash", names[i], true);
        world_rest(&w);
        w.now += 10000; /* places added by misses lapse */
        world_rest(&w);
        for (char sandbox_dir[2] = "a"; sandbox_dir[0] <= 'f'; sandbox_dir[0]++)
            assert_int_equal(world_on(&w, sandbox_dir), strchr(left[i], sandbox_dir[0]) ? 1 : 0);
        assert_int_equal(world_on_warm_dirs(&w, "bash"), 1);
    }
    world_close(&w);
}

/* What containers of a language say that they use. */
static void say_memory(struct world *w, const char *language, uint64_t started, uint64_t preloaded)
{
    for (struct child *c = NULL; (c = children_next(w->children, c));) {
        if (strcmp(c->language, language) != 0 || c->tier == ENGINE_TIER_NONE)
            continue;
        c->memory_bytes = c->tier == ENGINE_TIER_PRELOADED ? preloaded : started;
        pool_note_warm(w->pool, c);
    }
}

static void what_they_say_that_they_use_counts(void **state)
{
    const uint64_t each = 2 * WORLD_MIB;
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = 4 * (each + POOL_BESIDE_BYTES);
    w.settings.items[0] = (struct pool_language){"bash", 8, 0};
    w.settings.n = 1;
    world_begin(&w);
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 2); /* by what such a one is taken to use */
    say_memory(&w, "bash", each, 0);
    world_rest(&w);
    say_memory(&w, "bash", each, 0);
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 4);
    json_auto_t *status = pool_status(w.pool, w.children, w.now);
    assert_int_equal(json_get_integer(status, "usedBytes", 0), w.settings.memory_bytes);
    world_close(&w);
}

static void who_uses_more_than_all_may_goes_and_does_not_come_back(void **state)
{
    const struct world_filter preloaded = {
        .state = -1, .tier = ENGINE_TIER_PRELOADED, .sandbox_dir = ""};
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = POOL_PRELOADED_BYTES + 2 * POOL_STARTED_BYTES;
    w.settings.items[0] = (struct pool_language){"python", 2, 0};
    w.settings.n = 1;
    world_begin(&w);
    world_rest(&w);
    w.now += 1000;
    world_rest(&w);
    assert_int_equal(world_count(&w, preloaded), 1);
    say_memory(&w, "python", WORLD_MIB, 2 * POOL_PRELOADED_BYTES); /* an image with much to load */
    for (int i = 0; i < 3; i++) {
        world_rest(&w);
        w.now += 2000;
    }
    assert_int_equal(world_count(&w, preloaded), 0);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2);
    world_close(&w);
}

static void what_its_programs_want_is_loaded_for_a_conversation(void **state)
{
    json_auto_t *imports = json_pack("[s]", "numpy");
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    struct pool_want want = world_want(&w, "python", "dir-1", true);
    want.imports = imports;
    struct child *c = world_claim(&w, &want);
    world_run(&w, c);
    world_end(&w, c);
    run_once(&w, "python", "dir-2", true);
    world_rest(&w);
    w.now += 1000;
    world_rest(&w);
    const struct world_filter preloaded = {
        .state = -1, .tier = ENGINE_TIER_PRELOADED, .sandbox_dir = "dir-1"};
    assert_int_equal(world_count(&w, preloaded), 1);
    assert_int_equal(world_count(&w, (struct world_filter){.state = -1,
                                                           .tier = ENGINE_TIER_PRELOADED,
                                                           .sandbox_dir = ""}),
                     1);
    assert_int_equal(world_count(&w, (struct world_filter){.state = -1,
                                                           .tier = ENGINE_TIER_PRELOADED,
                                                           .sandbox_dir = "dir-2"}),
                     0);
    world_close(&w);
}

/* ---- spare containers, and further languages ---- */

static void spare_containers_are_made_while_the_machine_is_idle(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.items[0].spare = 3;
    w.idle = false;
    world_begin(&w);
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2);
    w.idle = true;
    w.now += 1000;
    world_settle(&w);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 2); /* libraries come first */
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 5);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1);
    assert_int_equal(world_count(&w, (struct world_filter){.state = -1,
                                                           .tier = ENGINE_TIER_PRELOADED,
                                                           .sandbox_dir = ""}),
                     4);
    w.idle = false;
    run_once(&w, "python", "dir-1", false);
    w.now += 1000;
    world_rest(&w);
    assert_int_equal(world_on_warm_dirs(&w, "python"), 4);
    world_close(&w);
}

static void a_new_conversation_gets_libraries_unless_they_are_the_last(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.reuse = true;
    w.settings.items[0].spare = 2;
    world_begin(&w);
    world_rest(&w);
    w.now += 1000;
    world_rest(&w);
    const struct pool_want fresh = world_want(&w, "python", "a", false);
    for (int left = 3; left > 0; left--) {
        const struct child *c = pool_choose(w.pool, w.children, &fresh);
        assert_int_equal(c->tier, left > 1 ? ENGINE_TIER_PRELOADED : ENGINE_TIER_STARTED);
        world_claim(&w, &fresh);
    }
    world_close(&w);
}

static void no_conversation_loses_its_container_for_a_spare_one(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = 4 * POOL_STARTED_BYTES + POOL_PRELOADED_BYTES;
    w.settings.items[0] = (struct pool_language){"bash", 1, 3};
    w.settings.n = 1;
    w.idle = false;
    world_begin(&w);
    run_once(&w, "bash", "a", true);
    world_rest(&w);
    w.now += 1000;
    w.idle = true;
    world_rest(&w);
    assert_int_equal(world_on(&w, "a"), 1);
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 3);
    world_close(&w);
}

static void a_language_that_many_take_is_there_before_it_is_asked_for(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        run_once(&w, "python", names[i], false);
    run_once(&w, "bash", "a", true);
    for (int i = 0; i < 10; i++, w.now += 1000)
        world_rest(&w);
    assert_int_equal(world_on(&w, "a"), 2);
    assert_int_equal(world_on(&w, "c"), 1); /* one of seven is no sign */
    run_once(&w, "bash", "b", true);
    run_once(&w, "python", "c", true);
    for (int i = 0; i < 10; i++, w.now += 1000)
        world_rest(&w);
    assert_int_equal(
        world_count(
            &w,
            (struct world_filter){.language = "bash", .sandbox_dir = "c", .state = -1, .tier = -1}),
        1);
    assert_int_equal(world_on(&w, "d"), 1); /* nothing ran there since */
    const struct pool_want want = world_want(&w, "bash", "c", true);
    assert_non_null(pool_choose(w.pool, w.children, &want));
    for (int i = 0; i < 70; i++, w.now += 10) {
        char name[16];
        snprintf(name, sizeof(name), "p-%d", i);
        run_once(&w, "python", name, false);
    }
    run_once(&w, "python", "e", true); /* few of these took bash */
    for (int i = 0; i < 10; i++, w.now += 1000)
        world_rest(&w);
    assert_int_equal(
        world_count(
            &w,
            (struct world_filter){.language = "bash", .sandbox_dir = "e", .state = -1, .tier = -1}),
        0);
    world_close(&w);
}

static void no_conversation_loses_its_container_for_an_expected_language(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.memory_bytes = 5 * POOL_STARTED_BYTES; /* one of each, and three conversations */
    w.settings.items[0] = (struct pool_language){"typescript", 1, 0};
    w.settings.items[1] = (struct pool_language){"bash", 1, 0};
    w.settings.n = 2;
    world_begin(&w);
    world_rest(&w);
    run_once(&w, "typescript", "a", true);
    run_once(&w, "bash", "a", true);
    world_rest(&w);
    w.now += 1000;
    run_once(&w, "typescript", "b", true); /* bash is expected, too */
    for (int i = 0; i < 30; i++, w.now += 1000)
        world_rest(&w);
    assert_int_equal(world_on(&w, "a"), 2);
    assert_int_equal(world_on(&w, "b"), 1);
    world_close(&w);
}

/* ---- containers that are used again ---- */

static void world_open_reuse(struct world *w)
{
    world_open(w);
    w->settings.reuse = true;
    world_begin(w);
    world_rest(w);
}

/* A run in what is chosen for it; its container, which is wiped then. */
static struct child *serve(struct world *w, const char *language, const char *dir, bool known)
{
    struct pool_want want = world_want(w, language, dir, known);
    struct child *c = world_claim(w, &want);

    world_run(w, c);
    w->now += 1000;
    assert_true(world_keep(w, c));
    return c;
}

static void a_used_container_is_its_conversations_next_one(void **state)
{
    struct world w;

    (void)state;
    world_open_reuse(&w);
    struct child *c = serve(&w, "bash", "dir-1", false);
    struct pool_want want = world_want(&w, "bash", "dir-1", true);
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), c); /* while it is wiped, too */
    want.sandbox_dir = "dir-2";
    assert_null(pool_choose(w.pool, w.children, &want));
    want = world_want(&w, "python", "dir-1", true);
    assert_null(pool_choose(w.pool, w.children, &want));
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1); /* and no other was made */
    for (int i = 0; i < 20; i++) {
        assert_ptr_equal(serve(&w, "bash", "dir-1", true), c);
        world_rest(&w);
        assert_int_equal(world_on(&w, "dir-1"), 1);
    }
    assert_int_equal(c->runs, 21);
    world_close(&w);
}

/* A run that imports a library, in a conversation of its own. */
static struct child *serve_with_library(struct world *w, const char *dir)
{
    json_auto_t *imports = json_pack("[s]", "pandas");
    struct pool_want want = world_want(w, "python", dir, true);
    struct child *c;

    want.imports = imports;
    c = world_claim(w, &want);
    world_run(w, c);
    w->now += 1000;
    assert_true(world_keep(w, c));
    return c;
}

static void a_conversations_libraries_are_loaded_on_a_busy_machine_too(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.reuse = true;
    w.idle = false;
    world_begin(&w);
    world_rest(&w);
    serve_with_library(&w, "dir-1");
    struct child *later = serve_with_library(&w, "dir-2");
    serve(&w, "python", "dir-3", true);
    serve(&w, "python", "dir-2", true); /* it has no import, and takes back no wish */
    while (world_catch_up(&w) > 0)
        ;
    w.now += ANSWER_MS;
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_PRELOAD);
    assert_ptr_equal(action.child, later); /* used last */
    assert_true(action.fast);
    world_rest(&w);
    assert_int_equal(
        world_count(&w, (struct world_filter){.state = -1, .tier = ENGINE_TIER_PRELOADED}), 2);
    world_close(&w);
}

static void its_libraries_wait_until_no_program_is_young(void **state)
{
    struct pool_action action;
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.reuse = true;
    w.idle = false;
    world_begin(&w);
    world_rest(&w);
    serve_with_library(&w, "dir-1");
    while (world_catch_up(&w) > 0)
        ;
    struct pool_want want = world_want(&w, "bash", "dir-2", false);
    struct child *young = world_claim(&w, &want);
    world_run(&w, young);
    assert_false(world_ask(&w, &action));
    assert_int_equal(w.again, w.now + POOL_YOUNG_MS);
    w.now += POOL_YOUNG_MS;
    assert_int_equal(world_settle(&w), 1); /* starts come before */
    world_catch_up(&w);
    assert_true(world_ask(&w, &action));
    assert_int_equal(action.what, POOL_PRELOAD);
    assert_string_equal(action.child->sandbox_dir, "dir-1");
    assert_false(action.fast); /* that program has its part of the machine */
    world_close(&w);
}

static void a_run_that_wants_one_for_itself_gets_an_unused_one(void **state)
{
    struct world w;

    (void)state;
    world_open_reuse(&w);
    serve(&w, "bash", "dir-1", false);
    world_rest(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", true);
    want.single_use = true;
    assert_null(pool_choose(w.pool, w.children, &want));
    struct child *fresh = world_child(&w, want.runner, "dir-1", CHILD_WAITING);
    assert_ptr_equal(world_claim(&w, &want), fresh);
    world_run(&w, fresh);
    w.now += 1000;
    assert_false(world_keep(&w, fresh));
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1); /* the kept one */
    world_close(&w);
}

static void one_that_waits_comes_before_one_that_is_wiped(void **state)
{
    struct world w;

    (void)state;
    world_open_reuse(&w);
    struct child *c = serve(&w, "bash", "dir-1", false);
    struct pool_want want = world_want(&w, "bash", "dir-1", true);
    struct child *starting = world_child(&w, want.runner, "dir-1", CHILD_STARTING);
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), c);
    starting->state = CHILD_WAITING;
    assert_ptr_equal(pool_choose(w.pool, w.children, &want), starting);
    world_close(&w);
}

static void while_a_program_runs_no_next_container_is_made(void **state)
{
    for (int reuse = 0; reuse <= 1; reuse++) {
        struct world w;

        (void)state;
        world_open(&w);
        w.settings.reuse = reuse;
        world_begin(&w);
        world_rest(&w);
        struct pool_want want = world_want(&w, "bash", "dir-1", false);
        struct child *c = world_claim(&w, &want);
        world_run(&w, c);
        w.now += 1000;
        pool_note_end(w.pool, c, w.now); /* an earlier one's */
        w.now += 1000;
        world_rest(&w);
        assert_int_equal(world_on(&w, "dir-1"), !reuse);
        world_close(&w);
    }
}

static void a_second_call_at_once_gets_a_container_for_a_while(void **state)
{
    struct world w;

    (void)state;
    world_open_reuse(&w);
    serve(&w, "bash", "dir-1", false);
    world_rest(&w);
    struct pool_want want = world_want(&w, "bash", "dir-1", true);
    struct child *one = world_claim(&w, &want), *two = world_claim(&w, &want);
    assert_ptr_not_equal(one, two);
    world_run(&w, one);
    world_run(&w, two);
    w.now += 1000;
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 0);
    assert_true(world_keep(&w, one) && world_keep(&w, two));
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 2);
    w.now += 20000;
    world_rest(&w);
    assert_int_equal(world_on(&w, "dir-1"), 1);
    world_close(&w);
}

static void what_may_not_be_used_again_is_not(void **state)
{
    struct world w;

    (void)state;
    world_open_reuse(&w);
    struct child *c = serve(&w, "bash", "dir-1", false);
    assert_true(pool_may_reuse(w.pool, c, w.now));
    assert_false(pool_may_reuse(w.pool, c, w.now + 3600000));
    c->runs = 999;
    assert_false(pool_may_reuse(w.pool, c, w.now));
    c->runs = 998;
    assert_true(pool_may_reuse(w.pool, c, w.now));
    c->network = true;
    assert_false(pool_may_reuse(w.pool, c, w.now));
    c->network = false;
    c->single_use = true;
    assert_false(pool_may_reuse(w.pool, c, w.now));
    c->single_use = false;
    snprintf(c->language, sizeof c->language, "lua");
    assert_false(pool_may_reuse(w.pool, c, w.now));
    snprintf(c->language, sizeof c->language, "bash");
    free(c->image_id);
    c->image_id = NULL; /* an adopted one */
    assert_false(pool_may_reuse(w.pool, c, w.now));
    world_close(&w);
    world_open(&w); /* SANDBOX_REUSE=never */
    world_begin(&w);
    c = world_child(&w, world_runner(&w, "bash"), "dir-1", CHILD_RUNNING);
    assert_false(pool_may_reuse(w.pool, c, w.now));
    world_close(&w);
}

static void used_containers_end_with_their_time_image_and_conversation(void **state)
{
    static char image_id[] = "sha256:b2";

    for (int i = 0; i < 4; i++) {
        struct world w;

        (void)state;
        world_open(&w);
        w.settings.reuse = true;
        w.settings.idle_ms = 600000;
        world_begin(&w);
        world_rest(&w);
        struct child *c = serve(&w, "bash", "dir-1", false);
        world_rest(&w);
        assert_int_equal(world_on(&w, "dir-1"), 1);
        if (i == 0)
            w.now += 600000; /* unused */
        else if (i == 1)
            c->born_ms -= 3600000;
        else if (i == 2)
            w.items[0].image_id = image_id;
        else
            pool_forget_sandbox(w.pool, "dir-1"); /* deleted */
        w.now += ANSWER_MS;
        world_settle(&w);
        assert_int_equal(c->state, CHILD_ENDED);
        world_close(&w);
    }
}

static void no_container_ends_while_a_program_is_young(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    w.settings.reuse = true;
    world_begin(&w);
    world_rest(&w);
    struct child *c = serve(&w, "bash", "dir-1", false);
    world_rest(&w);
    struct child *young = world_child(&w, world_runner(&w, "bash"), "dir-2", CHILD_RUNNING);
    young->claimed = true;
    young->since_ms = w.now;
    pool_forget_sandbox(w.pool, "dir-1");
    w.now += POOL_YOUNG_MS - 1;
    world_settle(&w);
    assert_int_not_equal(c->state, CHILD_ENDED);
    w.now += 1;
    world_settle(&w);
    assert_int_equal(c->state, CHILD_ENDED);
    world_close(&w);
}

static void over_the_budget_the_conversation_used_longest_ago_goes_first(void **state)
{
    struct world w;
    char dir[16];

    (void)state;
    world_open(&w);
    w.settings.reuse = true;
    w.settings.items[0] = (struct pool_language){"bash", 1, 0};
    w.settings.n = 1;
    w.settings.memory_bytes = 4 * POOL_STARTED_BYTES;
    world_begin(&w);
    world_rest(&w);
    for (int i = 0; i < 6; i++) {
        snprintf(dir, sizeof dir, "dir-%d", i);
        serve(&w, "bash", dir, false);
        w.now += 100;
        world_rest(&w);
    }
    for (int i = 0; i < 6; i++) {
        snprintf(dir, sizeof dir, "dir-%d", i);
        assert_int_equal(world_on(&w, dir), i >= 3);
    }
    assert_int_equal(world_on_warm_dirs(&w, "bash"), 1); /* new conversations keep theirs */
    world_close(&w);
}

static void the_status_tells_what_there_is(void **state)
{
    struct world w;

    (void)state;
    world_open(&w);
    world_begin(&w);
    world_rest(&w);
    w.now += 2000;
    run_once(&w, "bash", "dir-1", true);
    world_settle(&w);
    json_auto_t *status = pool_status(w.pool, w.children, w.now);
    json_t *waiting = json_object_get(status, "waiting");
    json_auto_t *last = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:i}", "runId", "000000000000000000000006",
        "containerId", "000000000000000000000006", "language", "bash", "tier", "none", "sandbox",
        "dir-1", "ageMs", 0, "memoryBytes", (json_int_t)POOL_STARTED_BYTES, "runs", 0);
    assert_int_equal(json_array_size(waiting), 5);
    assert_true(json_equal(json_array_get(waiting, 4), last));
    assert_int_equal(json_object_del(status, "waiting"), 0);
    json_auto_t *expected = json_pack(
        "{s:I, s:I, s:i, s:i, s:i, s:b, s:i, s:[{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i},"
        "{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i},{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i}]}",
        "budgetBytes", (json_int_t)(1024 * WORLD_MIB), "usedBytes",
        (json_int_t)(POOL_PRELOADED_BYTES + 4 * POOL_STARTED_BYTES), "startsMax", 4, "starting", 1,
        "conversations", 1, "reuse", 0, "doubted", 0, "languages", "language", "python", "places",
        2, "spare", 0, "extra", 0, "starting", 0, "started", 1, "preloaded", 1, "oldestMs",
        2005 + ANSWER_MS, "language", "typescript", "places", 1, "spare", 0, "extra", 0, "starting",
        0, "started", 1, "preloaded", 0, "oldestMs", 2005 + ANSWER_MS, "language", "bash", "places",
        1, "spare", 0, "extra", 0, "starting", 1, "started", 1, "preloaded", 0, "oldestMs",
        2005 + ANSWER_MS);
    AUTO_FREE char *text = json_dumps(status, JSON_SORT_KEYS);
    AUTO_FREE char *wanted = json_dumps(expected, JSON_SORT_KEYS);
    assert_string_equal(text, wanted);
    world_close(&w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_new_conversation_gets_a_spare_and_a_known_one_its_own),
    cmocka_unit_test(who_cannot_serve_is_not_chosen),
    cmocka_unit_test(waiting_before_starting_the_right_tier_the_oldest),
    cmocka_unit_test(a_program_needs_what_its_image_can_load),
    cmocka_unit_test(starts_for_runs_are_bounded_too),
    cmocka_unit_test(the_shelves_are_filled_in_turn_and_some_loaded),
    cmocka_unit_test(nothing_waits_where_nothing_is_to_wait),
    cmocka_unit_test(images_that_cannot_wait_and_languages_without_one_are_left_alone),
    cmocka_unit_test(nothing_is_started_beside_a_young_run_unless_a_run_is_queued),
    cmocka_unit_test(a_run_that_is_old_delays_no_container),
    cmocka_unit_test(after_a_run_its_answer_goes_first),
    cmocka_unit_test(libraries_are_loaded_only_while_the_machine_is_idle),
    cmocka_unit_test(libraries_are_loaded_fast_only_when_there_is_no_run),
    cmocka_unit_test(one_that_never_finishes_loading_delays_no_other),
    cmocka_unit_test(nothing_is_started_while_the_engine_is_in_trouble),
    cmocka_unit_test(failures_back_off_and_are_forgiven),
    cmocka_unit_test(another_image_or_an_hour_replaces_what_waits),
    cmocka_unit_test(a_conversation_used_once_gets_its_next_when_all_is_quiet),
    cmocka_unit_test(guesses_are_few_and_fresh),
    cmocka_unit_test(a_conversation_that_gets_a_file_gets_a_container),
    cmocka_unit_test(one_that_comes_back_gets_its_next_at_once),
    cmocka_unit_test(misses_add_places_that_lapse),
    cmocka_unit_test(runs_with_network_leave_no_trace),
    cmocka_unit_test(an_unused_conversation_loses_its_container),
    cmocka_unit_test(the_conversation_used_longest_ago_makes_room),
    cmocka_unit_test(what_they_say_that_they_use_counts),
    cmocka_unit_test(who_uses_more_than_all_may_goes_and_does_not_come_back),
    cmocka_unit_test(what_its_programs_want_is_loaded_for_a_conversation),
    cmocka_unit_test(spare_containers_are_made_while_the_machine_is_idle),
    cmocka_unit_test(a_new_conversation_gets_libraries_unless_they_are_the_last),
    cmocka_unit_test(no_conversation_loses_its_container_for_a_spare_one),
    cmocka_unit_test(a_language_that_many_take_is_there_before_it_is_asked_for),
    cmocka_unit_test(no_conversation_loses_its_container_for_an_expected_language),
    cmocka_unit_test(a_used_container_is_its_conversations_next_one),
    cmocka_unit_test(a_conversations_libraries_are_loaded_on_a_busy_machine_too),
    cmocka_unit_test(its_libraries_wait_until_no_program_is_young),
    cmocka_unit_test(a_run_that_wants_one_for_itself_gets_an_unused_one),
    cmocka_unit_test(one_that_waits_comes_before_one_that_is_wiped),
    cmocka_unit_test(while_a_program_runs_no_next_container_is_made),
    cmocka_unit_test(a_second_call_at_once_gets_a_container_for_a_while),
    cmocka_unit_test(what_may_not_be_used_again_is_not),
    cmocka_unit_test(used_containers_end_with_their_time_image_and_conversation),
    cmocka_unit_test(no_container_ends_while_a_program_is_young),
    cmocka_unit_test(over_the_budget_the_conversation_used_longest_ago_goes_first),
    cmocka_unit_test(the_status_tells_what_there_is),
};
UNIT_TESTS(tests)
