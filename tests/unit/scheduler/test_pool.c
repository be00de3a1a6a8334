/* Which container a run gets, and which there are to be: each rule by itself. */
#include "config.h"

#include "tests/unit/scheduler/pool_script.h"

static const char *scene_script; /* of the test that is under way */

static int open_world(void **state)
{
    static struct world world;

    world_open(&world);
    *state = &world;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    return 0;
}

/* A world in which that has happened. */
static struct world *after(void **state, const char *script)
{
    play(*state, script);
    return *state;
}

static void a_new_conversation_gets_a_spare_and_a_known_one_its_own(void **state)
{
    struct world *w = after(state, "up");
    struct child *warm_dir = world_child(w, world_runner(w, "python"), NULL, CHILD_WAITING);
    struct child *own = world_child(w, world_runner(w, "python"), "dir-1", CHILD_WAITING);
    const struct {
        const char *language, *sandbox_dir;
        bool known;
        struct child *expected;
    } cases[] = {
        {"python", "dir-2", NEW, warm_dir}, {"python", "dir-2", KNOWN, NULL},
        {"python", "dir-1", KNOWN, own},    {"python", "dir-1", NEW, own},
        {"perl", "dir-2", NEW, warm_dir},   {"perl", "dir-1", KNOWN, own},
        {"bash", "dir-2", NEW, NULL},       {"bash", "dir-1", KNOWN, NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pool_want want = world_want(w, cases[i].language, cases[i].sandbox_dir,
                                           cases[i].known);
        assert_ptr_equal(chosen(w, &want), cases[i].expected);
        want.network = true;
        assert_null(chosen(w, &want));
    }
}

static void who_cannot_serve_is_not_chosen(void **state)
{
    struct world *w = after(state, "up");
    const struct pool_want want = world_want(w, "python", "dir-1", NEW);
    struct child *c = world_child(w, want.runner, NULL, CHILD_WAITING);

    assert_ptr_equal(chosen(w, &want), c);
    c->claimed = true;
    assert_null(chosen(w, &want));
    c->claimed = false;
    c->network = true;
    assert_null(chosen(w, &want));
    c->network = false;
    c->state = CHILD_ENDED;
    assert_null(chosen(w, &want));
    c->state = CHILD_RUNNING;
    assert_null(chosen(w, &want));
    c->state = CHILD_WAITING;
    w->items[2].image_id = (char[]){"sha256:p2"};
    assert_null(chosen(w, &want));
    children_add(w->children, CHILD_JOB);
    assert_null(chosen(w, &want));
}

static void waiting_before_starting_the_right_tier_the_oldest(void **state)
{
    json_auto_t *pandas = json_pack("[s, s, i]", "os", "pandas.core", 1);
    json_auto_t *plain = json_pack("[s, s]", "json", "pandasql");
    struct world *w = after(state, "up");
    const struct pool_want want = world_want(w, "python", "dir-1", NEW);
    struct pool_want rich = want, poor = want;
    struct child *young = world_child(w, want.runner, NULL, CHILD_STARTING);
    struct child *old = world_child(w, want.runner, NULL, CHILD_STARTING);

    rich.imports = pandas;
    poor.imports = plain;
    young->born_ms += 50;
    assert_ptr_equal(chosen(w, &want), old);
    struct child *preloaded = world_child(w, want.runner, NULL, CHILD_WAITING);
    preloaded->preload_asked = true;
    preloaded->tier = ENGINE_TIER_PRELOADED;
    assert_ptr_equal(chosen(w, &poor), preloaded);
    struct child *started = world_child(w, want.runner, NULL, CHILD_WAITING);
    struct child *loading = world_child(w, want.runner, NULL, CHILD_WAITING);
    loading->preload_asked = true;
    assert_ptr_equal(chosen(w, &want), started);
    assert_ptr_equal(chosen(w, &poor), started);
    assert_ptr_equal(chosen(w, &rich), preloaded);
    preloaded->claimed = true;
    assert_ptr_equal(chosen(w, &rich), loading);
    loading->claimed = true;
    assert_ptr_equal(chosen(w, &rich), started);
    /* One on the directory itself comes before any warm_dir. */
    struct child *own = world_child(w, want.runner, "dir-1", CHILD_WAITING);
    assert_ptr_equal(chosen(w, &rich), own);
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
    struct world *w = after(state, "up");

    for (int i = 0; i < 4; i++) {
        assert_true(pool_may_start(w->pool, w->children));
        world_child(w, world_runner(w, "bash"), "sandbox_dir", CHILD_STARTING)->claimed = i % 2;
    }
    assert_false(pool_may_start(w->pool, w->children));
    children_next(w->children, NULL)->state = CHILD_RUNNING;
    assert_true(pool_may_start(w->pool, w->children));
}

static void images_that_cannot_wait_and_languages_without_one_are_left_alone(void **state)
{
    struct world *w = *state;

    w->items[3].warm = false;
    w->runners = (struct engine_runners){.items = w->items + 1, .n = 3};
    play(w, "settle:2 python=2");
}

static void nothing_is_started_beside_a_young_run_unless_a_run_is_queued(void **state)
{
    struct world *w = after(state, "rest");
    const struct pool_want want = world_want(w, "bash", "dir-1", NEW);
    struct child *c = world_claim(w, &want);

    assert_int_equal(c->state, CHILD_WAITING);
    world_run(w, c);
    w->now += POOL_YOUNG_MS - 1;
    play(w, "nothing");
    assert_int_equal(w->again, w->now + 1);
    play(w, "queued:1 next:start queued:0 nothing");
    struct child *cold = world_child(w, want.runner, "dir-9", CHILD_STARTING);
    cold->claimed = true; /* its run waits for it */
    play(w, "next:start");
    children_remove(w->children, cold);
    play(w, "nothing +1 next:start");
}

static void after_a_run_its_answer_goes_first(void **state)
{
    struct world *w = after(state, "rest run:bash:dir-1:new @0 nothing");
    struct pool_action action;

    assert_in_range(w->again - w->now, 1, ANSWERED_MS);
    assert_true(script_is_nothing_until(w, w->again));
    assert_true(world_ask(w, &action));
    assert_int_equal(action.what, POOL_START_ON_WARM_DIR);
    assert_string_equal(action.runner->language, "bash");
}

static void one_that_never_finishes_loading_delays_no_other(void **state)
{
    struct world *w = after(state, "none also:python:3 also:typescript:1 also:bash:1 settle");

    for (struct child *c = NULL; (c = children_next(w->children, c)); world_settle(w)) {
        c->state = CHILD_WAITING;
        c->tier = ENGINE_TIER_STARTED;
    }
    play(w, "settle:0"); /* one of them was told to load, and does not end */
    assert_in_range(w->again - w->now, 10000, 100000);
    assert_true(script_is_nothing_until(w, w->again));
    play(w, "next:load:python");
}

static void nothing_is_started_while_the_engine_is_in_trouble(void **state)
{
    struct world *w = *state;

    w->engine_ok = false;
    w->runners.n = 0;
    world_begin(w);
    world_child(w, &w->items[2], NULL, CHILD_WAITING);
    play(w, "settle:0"); /* and what waits may still be good */
    w->engine_ok = true;
    w->runners.n = 4;
    play(w, "settle:3");
}

static void failures_back_off_and_are_forgiven(void **state)
{
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct world *w = after(state, "only:python:2");

    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        play(w, "settle:2");
        for (struct child *c; (c = children_next(w->children, NULL));) { /* one trouble */
            children_remove(w->children, c);
            pool_note_failed_start(w->pool, "python", w->now);
        }
        assert_true(script_is_nothing_until(w, w->now + waits[i]));
    }
    w->now += 60001;
    pool_note_failed_start(w->pool, "python", w->now);
    pool_note_failed_start(w->pool, "no such language", w->now);
    play(w, "until+1000");
}

static void another_image_or_an_hour_replaces_what_waits(void **state)
{
    struct world *w = after(state, "rest");

    w->items[0].image_id = (char[]){"sha256:b2"};
    play(w, "settle:2 ended=1 rest"); /* one goes, one comes */
    for (struct child *c = NULL; (c = children_next(w->children, c));)
        if (strcmp(c->language, "bash") == 0)
            assert_string_equal(c->image_id, "sha256:b2");
    play(w, "until+900000 until+2700000 settle:8 ended=4");
}

/* Its claim was noted by the broker before. */
static void an_adopted_runs_conversation_gets_a_container(void **state)
{
    struct world *w = after(state, "rest");
    struct child *c = world_child(w, world_runner(w, "python"), "dir-1", CHILD_RUNNING);

    c->claimed = true;
    world_run(w, c);
    world_end(w, c);
    play(w, "+20 rest dir-1=1");
}

static void runs_with_network_leave_no_trace(void **state)
{
    struct world *w = after(state, "rest");
    struct pool_want want = world_want(w, "bash", "dir-1", NEW);

    want.network = true;
    world_end(w, run_what(w, &want));
    play(w, "+1000 settle:0");
}

static void the_conversation_used_longest_ago_makes_room(void **state)
{
    static const char *const turns[] = {
        "run:bash:a:known rest +10000 rest bash=1 a=1 b=0 c=0 d=0 e=0 f=0",
        "run:bash:b:known rest +10000 rest bash=1 a=1 b=1 c=0 d=0 e=0 f=0",
        "run:bash:c:known rest +10000 rest bash=1 a=1 b=1 c=1 d=0 e=0 f=0",
        "run:bash:d:known rest +10000 rest bash=1 a=0 b=1 c=1 d=1 e=0 f=0",
        "run:bash:b:known rest +10000 rest bash=1 a=0 b=1 c=1 d=1 e=0 f=0",
        "run:bash:e:known rest +10000 rest bash=1 a=0 b=1 c=0 d=1 e=1 f=0",
        "run:bash:f:known rest +10000 rest bash=1 a=0 b=1 c=0 d=0 e=1 f=1",
    };
    struct world *w = after(state, "memory:4 only:bash:1"); /* one bash, three conversations */

    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        play(w, turns[i]);
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
    struct world *w = *state;

    w->settings.memory_bytes = 4 * (each + POOL_BESIDE_BYTES);
    play(w, "only:bash:8 rest bash=2"); /* by what such a one is taken to use */
    for (int i = 0; i < 2; i++) {
        say_memory(w, "bash", each, 0);
        world_rest(w);
    }
    play(w, "bash=4");
    json_auto_t *status = pool_status(w->pool, w->children, w->now);
    assert_int_equal(json_get_integer(status, "usedBytes", 0), w->settings.memory_bytes);
}

static void who_uses_more_than_all_may_goes_and_does_not_come_back(void **state)
{
    struct world *w = after(state, "memory:2:1 only:python:2 rest +1000 rest loaded:warm=1");

    say_memory(w, "python", WORLD_MIB, 2 * POOL_PRELOADED_BYTES); /* an image with much to load */
    play(w, "rest +2000 rest +2000 rest loaded:warm=0 python=2");
}

static void a_new_conversation_gets_libraries_unless_they_are_the_last(void **state)
{
    struct world *w = after(state, "reuse only:python:4 rest +1000 rest");
    const struct pool_want fresh = world_want(w, "python", "a", NEW);

    for (int left = 3; left > 0; left--) {
        assert_int_equal(chosen(w, &fresh)->tier,
                         left > 1 ? ENGINE_TIER_PRELOADED : ENGINE_TIER_STARTED);
        world_claim(w, &fresh);
    }
}

static void a_used_container_is_its_conversations_next_one_in_all_languages(void **state)
{
    struct world *w = after(state, "reuse rest");
    struct child *c = kept(w, run(w, "python", "dir-1", NEW));

    assert_ptr_equal(chosen_for(w, "python", "dir-1", KNOWN), c); /* while it is wiped, too */
    assert_ptr_equal(chosen_for(w, "perl", "dir-1", KNOWN), c);
    assert_null(chosen_for(w, "python", "dir-2", KNOWN));
    assert_null(chosen_for(w, "bash", "dir-1", KNOWN)); /* of another image */
    play(w, "rest dir-1=1");                            /* and no other was made */
    for (int i = 0; i < 20; i++) {
        assert_ptr_equal(kept(w, run(w, i % 2 ? "python" : "perl", "dir-1", KNOWN)), c);
        play(w, "rest dir-1=1");
    }
    assert_int_equal(c->runs, 21);
}

static void a_run_that_wants_one_for_itself_gets_an_unused_one(void **state)
{
    struct world *w = after(state, "reuse rest serve:bash:dir-1:new rest");
    struct pool_want want = world_want(w, "bash", "dir-1", KNOWN);

    want.single_use = true;
    assert_null(chosen(w, &want));
    struct child *fresh = world_child(w, want.runner, "dir-1", CHILD_WAITING);
    assert_ptr_equal(run_what(w, &want), fresh);
    w->now += 1000;
    assert_false(world_keep(w, fresh));
    play(w, "rest dir-1=1"); /* the kept one */
}

static void one_that_waits_comes_before_one_that_is_wiped(void **state)
{
    struct world *w = after(state, "reuse rest");
    struct child *c = kept(w, run(w, "bash", "dir-1", NEW));
    struct child *starting = world_child(w, world_runner(w, "bash"), "dir-1", CHILD_STARTING);

    assert_ptr_equal(chosen_for(w, "bash", "dir-1", KNOWN), c);
    starting->state = CHILD_WAITING;
    assert_ptr_equal(chosen_for(w, "bash", "dir-1", KNOWN), starting);
}

static void while_a_program_runs_no_next_container_is_made(void **state)
{
    for (int reuse = 0; reuse <= 1; reuse++) {
        struct world *w = after(state, reuse ? "reuse rest" : "rest");
        struct child *c = run(w, "bash", "dir-1", NEW);
        w->now += 1000;
        pool_note_end(w->pool, c, w->now); /* an earlier one's */
        play(w, reuse ? "+1000 rest dir-1=0" : "+1000 rest dir-1=1");
        world_close(w);
        open_world(state);
    }
}

static void a_second_call_at_once_gets_a_container_for_a_while(void **state)
{
    struct world *w = after(state, "reuse rest serve:bash:dir-1:new rest");
    const struct pool_want want = world_want(w, "bash", "dir-1", KNOWN);
    struct child *one = world_claim(w, &want), *two = world_claim(w, &want);

    assert_ptr_not_equal(one, two);
    world_run(w, one);
    world_run(w, two);
    play(w, "+1000 rest dir-1=0");
    assert_true(world_keep(w, one) && world_keep(w, two));
    play(w, "rest dir-1=2 +20000 rest dir-1=1");
}

static void what_may_not_be_used_again_is_not(void **state)
{
    struct world *w = after(state, "reuse rest");
    struct child *c = kept(w, run(w, "bash", "dir-1", NEW));

    assert_true(pool_may_reuse(w->pool, c, w->now));
    assert_true(pool_may_reuse(w->pool, c, c->born_ms + 3599999));
    assert_false(pool_may_reuse(w->pool, c, c->born_ms + 3600000));
    c->runs = 999;
    assert_false(pool_may_reuse(w->pool, c, w->now));
    c->runs = 998;
    assert_true(pool_may_reuse(w->pool, c, w->now));
    c->network = true;
    assert_false(pool_may_reuse(w->pool, c, w->now));
    c->network = false;
    c->single_use = true;
    assert_false(pool_may_reuse(w->pool, c, w->now));
    c->single_use = false;
    snprintf(c->language, sizeof c->language, "lua");
    assert_false(pool_may_reuse(w->pool, c, w->now));
    snprintf(c->language, sizeof c->language, "bash");
    free(c->image_id);
    c->image_id = NULL; /* an adopted one */
    assert_false(pool_may_reuse(w->pool, c, w->now));
    world_close(w);
    open_world(state); /* SANDBOX_REUSE=never */
    world_begin(*state);
    c = world_child(w, world_runner(w, "bash"), "dir-1", CHILD_RUNNING);
    assert_false(pool_may_reuse(w->pool, c, w->now));
}

static void used_containers_end_with_their_time_image_and_conversation(void **state)
{
    static char image_id[] = "sha256:b2";

    for (int i = 0; i < 4; i++) {
        struct world *w = after(state, "reuse rest");
        struct child *c = kept(w, run(w, "bash", "dir-1", NEW));
        play(w, "rest dir-1=1");
        if (i == 0)
            w->now += w->settings.idle_ms; /* unused */
        else if (i == 1)
            c->born_ms -= 3600000;
        else if (i == 2)
            w->items[0].image_id = image_id;
        else
            pool_forget_sandbox(w->pool, "dir-1"); /* deleted */
        w->now += ANSWERED_MS;
        world_settle(w);
        assert_int_equal(c->state, CHILD_ENDED);
        world_close(w);
        open_world(state);
    }
}

static void no_container_ends_while_a_program_is_young(void **state)
{
    struct world *w = after(state, "reuse rest");
    struct child *c = kept(w, run(w, "bash", "dir-1", NEW));

    world_rest(w);
    world_child(w, world_runner(w, "bash"), "dir-2", CHILD_RUNNING)->claimed = true;
    pool_forget_sandbox(w->pool, "dir-1");
    w->now += POOL_YOUNG_MS - 1;
    world_settle(w);
    assert_int_not_equal(c->state, CHILD_ENDED);
    w->now += 1;
    world_settle(w);
    assert_int_equal(c->state, CHILD_ENDED);
}

static json_t *image_status(const char *image, json_t *languages, int places, int starting,
                            int preloaded)
{
    return json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:i}", "image", image, "languages", languages,
                     "places", places, "starting", starting, "started", 1, "preloaded", preloaded,
                     "oldestMs", 2005 + ANSWERED_MS);
}

static void the_status_tells_what_there_is(void **state)
{
    struct world *w = after(state, "rest +2000 run:bash:dir-1:known settle");
    json_auto_t *status = pool_status(w->pool, w->children, w->now);
    json_t *waiting = json_object_get(status, "waiting");
    json_auto_t *last = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:i}", "runId", "000000000000000000000006",
        "containerId", "000000000000000000000006", "image", "b:latest", "tier", "none", "sandbox",
        "dir-1", "ageMs", 0, "memoryBytes", (json_int_t)POOL_STARTED_BYTES, "runs", 0);
    assert_int_equal(json_array_size(waiting), 5);
    assert_true(json_equal(json_array_get(waiting, 4), last));
    assert_int_equal(json_object_del(status, "waiting"), 0);
    json_auto_t *expected = json_pack(
        "{s:I, s:I, s:i, s:i, s:i, s:b, s:i, s:[o, o, o]}", "budgetBytes",
        (json_int_t)(1024 * WORLD_MIB), "usedBytes",
        (json_int_t)(POOL_PRELOADED_BYTES + 4 * POOL_STARTED_BYTES), "startsMax", 4, "starting", 1,
        "conversations", 1, "reuse", 0, "doubted", 0, "images",
        image_status("p:latest", json_pack("[s, s]", "perl", "python"), 2, 0, 1),
        image_status("t:latest", json_pack("[s]", "typescript"), 1, 0, 0),
        image_status("b:latest", json_pack("[s]", "bash"), 1, 1, 0));
    AUTO_FREE char *text = json_dumps(status, JSON_SORT_KEYS);
    AUTO_FREE char *wanted = json_dumps(expected, JSON_SORT_KEYS);
    assert_string_equal(text, wanted);
}

/* What such a test does stands in its script. */
static int open_scene(void **state)
{
    scene_script = *state;
    return open_world(state);
}

static void scene(void **state)
{
    play(*state, scene_script);
}

#define POOL_TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
#define SCENE(name, script)                                                                        \
    {                                                                                              \
#name, scene, open_scene, close_world, (char *)(uintptr_t)(script)                         \
    }

static const struct CMUnitTest tests[] = {
    POOL_TEST(a_new_conversation_gets_a_spare_and_a_known_one_its_own),
    POOL_TEST(who_cannot_serve_is_not_chosen),
    POOL_TEST(waiting_before_starting_the_right_tier_the_oldest),
    POOL_TEST(a_program_needs_what_its_image_can_load),
    POOL_TEST(starts_for_runs_are_bounded_too),
    POOL_TEST(images_that_cannot_wait_and_languages_without_one_are_left_alone),
    POOL_TEST(nothing_is_started_beside_a_young_run_unless_a_run_is_queued),
    POOL_TEST(after_a_run_its_answer_goes_first),
    POOL_TEST(one_that_never_finishes_loading_delays_no_other),
    POOL_TEST(nothing_is_started_while_the_engine_is_in_trouble),
    POOL_TEST(failures_back_off_and_are_forgiven),
    POOL_TEST(another_image_or_an_hour_replaces_what_waits),
    POOL_TEST(an_adopted_runs_conversation_gets_a_container),
    POOL_TEST(runs_with_network_leave_no_trace),
    POOL_TEST(the_conversation_used_longest_ago_makes_room),
    POOL_TEST(what_they_say_that_they_use_counts),
    POOL_TEST(who_uses_more_than_all_may_goes_and_does_not_come_back),
    POOL_TEST(a_new_conversation_gets_libraries_unless_they_are_the_last),
    POOL_TEST(a_used_container_is_its_conversations_next_one_in_all_languages),
    POOL_TEST(a_run_that_wants_one_for_itself_gets_an_unused_one),
    POOL_TEST(one_that_waits_comes_before_one_that_is_wiped),
    POOL_TEST(while_a_program_runs_no_next_container_is_made),
    POOL_TEST(a_second_call_at_once_gets_a_container_for_a_while),
    POOL_TEST(what_may_not_be_used_again_is_not),
    POOL_TEST(used_containers_end_with_their_time_image_and_conversation),
    POOL_TEST(no_container_ends_while_a_program_is_young),
    POOL_TEST(the_status_tells_what_there_is),
    /* As many as may start at once; they load one at a time, and one stays without; all grow old.
     */
    SCENE(the_shelves_are_filled_in_turn_and_some_loaded,
          "settle:4 python=2 typescript=1 bash=1 up next:load:python settle:1 up later"),
    SCENE(no_more_are_started_at_once_than_may_be,
          "only:bash:9 settle:4 bash=4 up settle:4 bash=8"),
    SCENE(a_run_that_is_old_delays_no_container,
          "rest begin:python:dir-1:new +young run:bash:dir-2:new next:start"),
    SCENE(nothing_waits_where_nothing_is_to_wait, "none never run:python:sandbox_dir:new nothing"),
    SCENE(libraries_are_loaded_only_while_the_machine_is_idle,
          "busy rest loaded:all=0 soon idle rest loaded:all=1"),
    /* While a run waits, or goes on, they are loaded at a pace. */
    SCENE(libraries_are_loaded_fast_only_when_there_is_no_run,
          "busy rest idle next:load:python:fast queued:1 next:load:python:paced queued:0"
          " begin:bash:dir-1:new busy +1000 rest idle next:load:python:paced"),
    SCENE(libraries_may_use_what_is_left_to_the_last_byte,
          "memory:1:1 only:python:2 rest +1000 rest loaded:warm=1"),
    SCENE(new_conversations_come_before_known_ones,
          "rest run:bash:dir-1:new next:start settle:2 bash=1 dir-1=1"),
    SCENE(the_numbers_of_an_images_languages_add_up, "also:perl:3 rest python=5 perl=5"),
    /* A file may not be on disk yet; dir-1 has its own way. */
    SCENE(a_conversation_that_gets_a_file_gets_a_container,
          "rest run:bash:dir-1:known rest upload:dir-1 upload:dir-2 rest dir-2=0 until+250"
          " rest dir-1=1 dir-2=1 chosen:python:dir-2:known"),
    SCENE(one_that_comes_back_gets_its_next_at_once,
          "rest run:bash:dir-1:known settle:1 dir-1=1 up chosen:bash:dir-1:known"),
    /* Its first run is not over, so it could not have one. */
    SCENE(a_call_beside_another_adds_no_place,
          "rest begin:bash:a:known run:bash:a:known +young rest a=1"),
    SCENE(what_makes_room_is_gone_before_another_is_started,
          "memory:2 only:bash:1 rest run:bash:a:known rest a=1 bash=1"
          " run:bash:b:known settle:1 ended=1 b=0 up settle:1 b=1"),
    SCENE(none_makes_room_for_one_that_was_used_before_it,
          "memory:3 only:bash:1 rest run:bash:a:known run:bash:b:known run:bash:c:known"
          " rest bash=1 a=0 b=1 c=1"),
    SCENE(a_conversation_that_rests_loses_its_libraries_then_its_container,
          "reuse rest serve:python:a:known:pandas +1000 rest loaded:a=1 +598999 rest loaded:a=1"
          " run:bash:b:known +1 rest a=1 loaded:a=0 +800000 run:bash:b:known rest a=1 loaded:a=0"
          " +399000 rest a=1 +1000 rest a=0 b=1"),
    SCENE(a_conversation_that_is_gone_loses_its_container,
          "run:bash:dir-2:known rest dir-2=1 forget:dir-2 rest dir-2=0"),
    SCENE(when_nobody_calls_only_those_wait_that_wait_at_once,
          "auto:python:5 rest +1000 rest python=5 run:python:a:known rest a=1 @899999 rest a=1"
          " python=4 +1 rest a=0 python=2 run:python:b:known rest +1000 rest python=4 b=1"),
    SCENE(what_its_programs_want_is_loaded_for_a_conversation,
          "run:python:dir-1:known:numpy run:python:dir-2:known rest +1000 rest"
          " loaded:dir-1=1 loaded:warm=1 loaded:dir-2=0"),
    /* Libraries come first. The conversation's is one of five. */
    SCENE(most_of_auto_are_made_while_the_machine_is_idle,
          "auto:python:5 busy rest python=2 idle +1000 settle python=2 rest python=5 loaded:warm=4"
          " busy run:python:dir-1:new +1000 rest python=4 dir-1=1"),
    SCENE(no_conversation_loses_its_container_for_one_of_these,
          "memory:4:1 auto:bash:9 busy run:bash:a:known rest idle +1000 rest a=1 bash=3"),
    /* dir-2 was used last; a program in another language takes back no wish. */
    SCENE(a_conversations_libraries_are_loaded_on_a_busy_machine_too,
          "reuse busy rest serve:python:dir-1:known:pandas serve:python:dir-2:known:pandas"
          " serve:perl:dir-3:known serve:perl:dir-2:known up @20 dir-2=1 next:load:dir-2:fast"
          " rest loaded:all=2"),
    /* Starts come before; that program has its part of the machine. */
    SCENE(its_libraries_wait_until_no_program_is_young,
          "reuse busy rest serve:python:dir-1:known:pandas up begin:bash:dir-2:new until+young"
          " settle:1 up next:load:dir-1:paced"),
    /* New conversations keep theirs. */
    SCENE(over_the_budget_the_conversation_used_longest_ago_goes_first,
          "reuse memory:4 only:bash:1 rest serve:bash:dir-0:new +100 rest serve:bash:dir-1:new"
          " +100 rest serve:bash:dir-2:new +100 rest serve:bash:dir-3:new +100 rest"
          " serve:bash:dir-4:new +100 rest serve:bash:dir-5:new +100 rest"
          " dir-0=0 dir-1=0 dir-2=0 dir-3=1 dir-4=1 dir-5=1 bash=1"),
};
UNIT_TESTS(tests)
