/* The run queue: who gets a container when, who is refused, and what a lost supervisor means. The
 * clock moves when a test says so; the test carries the actions out. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/scheduler/run_queue.h"
#include "tests/unit/unit.h"

#include <sys/mman.h>

#define N      64
#define STARTS 4

struct world {
    struct run_queue_settings settings;
    struct run_queue *queue;
    struct pool_settings pool_settings;
    struct engine_runner bash;
    struct runners runners;
    struct queued_run runs[N];
    size_t n;
    bool exists; /* every sandbox */
    int64_t now;
    uint64_t available;       /* memory */
    struct run_action action; /* the latest */
};

static bool sandbox_exists(void *ctx, const char *sandbox_dir)
{
    assert_true(sandbox_dir[0] != '\0');
    return ((const struct world *)ctx)->exists;
}

static bool memory_available(void *ctx, uint64_t *out)
{
    *out = ((const struct world *)ctx)->available;
    return *out > 0;
}

static int setup(void **state)
{
    static struct world w;
    static char language[] = "bash", image_id[] = "sha256:1", none[] = "";

    w = (struct world){
        .settings = {.limits = {.server = 8, .queue = 8},
                     .background_max = 3,
                     .starts_max = STARTS,
                     .background_wait_ms = 5000,
                     .runners = &w.runners,
                     .sandbox_exists = sandbox_exists,
                     .memory_available = memory_available,
                     .ctx = &w},
        .pool_settings = {.items = {{"bash", 1}},
                          .n = 1,
                          .memory_bytes = 1 << 30,
                          .idle_ms = 60000,
                          .starts_max = STARTS},
        .bash = {.language = language, .image_id = image_id, .preload = none, .warm = true},
        .now = 1000};
    w.runners.list = (struct engine_runners){.items = &w.bash, .n = 1};
    *state = &w;
    return 0;
}

static void begin(struct world *w)
{
    w->settings.children = children_new();
    w->settings.pool = pool_new(&w->pool_settings, &w->runners.list);
    w->queue = run_queue_new(&w->settings);
}

static void end(struct world *w)
{
    run_queue_free(w->queue);
    pool_free(w->settings.pool);
    children_free(w->settings.children);
}

static struct queued_run *run_of(struct world *w, const char *tenant)
{
    struct queued_run *run = &w->runs[w->n];

    *run = (struct queued_run){.tenant = tenant, .conversation = "c", .language = "bash"};
    snprintf(run->sandbox_dir, sizeof run->sandbox_dir, "dir%zu", w->n++);
    return run;
}

static bool add(struct world *w, struct queued_run *run)
{
    return run_queue_add(w->queue, run, w->now, &w->action);
}

/* A run that has a place at once. */
static struct queued_run *arrive(struct world *w, const char *tenant)
{
    struct queued_run *run = run_of(w, tenant);

    assert_false(add(w, run));
    return run;
}

static bool next(struct world *w)
{
    return run_queue_next(w->queue, w->now, &w->action);
}

static void expect(struct world *w, enum run_queue_do what, const struct queued_run *run)
{
    assert_true(next(w));
    assert_int_equal(w->action.what, what);
    assert_ptr_equal(w->action.run, run);
}

static void expect_busy(const struct world *w, const struct queued_run *run)
{
    assert_int_equal(w->action.what, RUN_REFUSE);
    assert_ptr_equal(w->action.run, run);
    assert_int_equal(w->action.why.kind, ERR_BUSY);
    assert_contains(w->action.why.text, "try again");
    assert_true(w->action.retry_ms > 0);
    assert_int_equal(run->stage, RUN_OUTSIDE);
}

/* Carries out a RUN_SPAWN. */
static struct child *spawn(struct world *w)
{
    struct child *child = children_add(w->settings.children, CHILD_SUPERVISOR);

    assert_int_equal(w->action.what, RUN_SPAWN);
    run_queue_assigned(w->queue, &w->action, child, w->now);
    return child;
}

static struct child *warm(struct world *w)
{
    struct child *child = children_add(w->settings.children, CHILD_SUPERVISOR);

    snprintf(child->language, sizeof child->language, "bash");
    snprintf(child->warm_dir, sizeof child->warm_dir, "warm");
    child->image_id = mem_strdup(w->bash.image_id);
    child->tier = ENGINE_TIER_STARTED;
    child_set_state(child, CHILD_WAITING);
    return child;
}

/* The supervisor has taken its run; its container is up. */
static void start(struct world *w, struct child *child)
{
    assert_non_null(run_queue_taken(w->queue, child));
    child_set_state(child, CHILD_RUNNING);
}

/* And its program is over. */
static void finish(struct world *w, struct child *child)
{
    child_set_state(child, CHILD_ENDED);
    run_queue_release(w->queue, child, w->now);
    children_remove(w->settings.children, child);
}

/* ---- who gets what ---- */

static void a_run_gets_a_warm_container_or_a_new_one(void **state)
{
    struct world *w = *state;

    begin(w);
    struct child *child = warm(w);
    struct queued_run *one = arrive(w, "t"), *two = arrive(w, "t");
    assert_int_equal(run_queue_length(w->queue), 2);
    expect(w, RUN_ASSIGN, one);
    assert_ptr_equal(w->action.child, child);
    run_queue_assigned(w->queue, &w->action, child, w->now);
    assert_true(child->claimed && child->placed);
    assert_string_equal(child->tenant, "t");
    assert_string_equal(child->sandbox_dir, one->sandbox_dir);
    expect(w, RUN_SPAWN, two);
    spawn(w);
    assert_false(next(w));
    assert_int_equal(run_queue_length(w->queue), 0);
    assert_int_equal(run_queue_running(w->queue), 2);
    assert_int_equal(run_queue_tally(w->queue).warm, 1);
    assert_int_equal(run_queue_tally(w->queue).cold, 1);
    assert_true(run_queue_uses_sandbox(w->queue, one->sandbox_dir)); /* until it is taken */
    assert_ptr_equal(run_queue_taken(w->queue, child), one);
    assert_false(run_queue_uses_sandbox(w->queue, one->sandbox_dir));
    assert_null(run_queue_taken(w->queue, child));
    end(w);
}

static void a_warm_container_that_is_gone_is_passed_over(void **state)
{
    struct world *w = *state;

    begin(w);
    struct child *gone = warm(w), *other = warm(w);
    struct queued_run *run = arrive(w, "t");
    expect(w, RUN_ASSIGN, run);
    assert_ptr_equal(w->action.child, gone);
    child_set_state(gone, CHILD_ENDED); /* the hand-over failed: it is released */
    expect(w, RUN_ASSIGN, run);
    assert_ptr_equal(w->action.child, other);
    child_set_state(other, CHILD_ENDED);
    expect(w, RUN_SPAWN, run);
    end(w);
}

static void a_known_sandbox_gets_no_container_of_another_directory(void **state)
{
    struct world *w = *state;

    begin(w);
    warm(w);
    w->exists = true;
    expect(w, RUN_SPAWN, arrive(w, "t"));
    assert_true(w->action.want.known);
    end(w);
}

static void starts_are_bounded_and_go_on_when_one_is_done(void **state)
{
    struct world *w = *state;
    struct child *children[STARTS];

    begin(w);
    for (size_t i = 0; i < STARTS + 2; i++)
        arrive(w, "t");
    for (size_t i = 0; i < STARTS; i++) {
        expect(w, RUN_SPAWN, &w->runs[i]);
        children[i] = spawn(w);
    }
    assert_false(next(w));
    assert_false(next(w));
    assert_int_equal(run_queue_length(w->queue), 2);
    start(w, children[1]);
    expect(w, RUN_SPAWN, &w->runs[STARTS]);
    spawn(w);
    assert_false(next(w));
    end(w);
}

static void a_warm_container_serves_a_run_behind_one_that_cannot_start(void **state)
{
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < STARTS; i++) {
        arrive(w, "t");
        assert_true(next(w));
        spawn(w);
    }
    struct queued_run *first = arrive(w, "t"), *second = arrive(w, "t");
    first->network = true; /* no warm one will do */
    struct child *child = warm(w);
    expect(w, RUN_ASSIGN, second);
    run_queue_assigned(w->queue, &w->action, child, w->now);
    assert_false(next(w));
    assert_int_equal(first->stage, RUN_PLACED);
    end(w);
}

static void starts_go_round_the_tenants(void **state)
{
    struct world *w = *state;
    struct queued_run *expected[6];
    struct child *child = NULL;

    w->pool_settings.starts_max = w->settings.starts_max = 1;
    begin(w);
    expected[0] = arrive(w, "a");
    expected[2] = arrive(w, "a");
    expected[4] = arrive(w, "a");
    expected[1] = arrive(w, "b");
    expected[3] = arrive(w, "b");
    expected[5] = arrive(w, "b");
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        if (child)
            start(w, child);
        expect(w, RUN_SPAWN, expected[i]);
        child = spawn(w);
        assert_false(next(w));
    }
    end(w);
}

static void a_tenant_that_is_not_alone_has_half_of_the_starts(void **state)
{
    struct world *w = *state;

    begin(w);
    expect(w, RUN_SPAWN, arrive(w, "b"));
    struct child *child = spawn(w);
    start(w, child);
    finish(w, child);
    for (size_t i = 0; i < STARTS; i++)
        arrive(w, "a");
    for (size_t i = 0; i < STARTS / 2; i++) {
        assert_true(next(w));
        spawn(w);
    }
    assert_false(next(w));
    expect(w, RUN_SPAWN, arrive(w, "b")); /* the other half is the others' */
    spawn(w);
    assert_false(next(w));
    w->now += ADMISSION_RECENT_MS; /* b has not asked for a while */
    assert_true(next(w));
    assert_string_equal(w->action.run->tenant, "a");
    end(w);
}

/* ---- who waits, and who is refused ---- */

static void without_a_place_a_run_waits_and_is_told_its_position(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    w->settings.limits.queue = 2;
    begin(w);
    expect(w, RUN_SPAWN, arrive(w, "t"));
    struct child *child = spawn(w);
    for (size_t i = 1; i <= 2; i++) {
        assert_true(add(w, run_of(w, "t")));
        assert_int_equal(w->action.what, RUN_TELL_POSITION);
        assert_int_equal(w->action.position, i);
    }
    struct queued_run *fourth = run_of(w, "t");
    assert_true(add(w, fourth));
    expect_busy(w, fourth);
    assert_int_equal(w->action.position, 2);
    assert_false(next(w));
    start(w, child);
    assert_false(next(w));
    finish(w, child);
    expect(w, RUN_SPAWN, &w->runs[1]);
    end(w);
}

/* Behind each fork of the main process a write has the run's page copied. */
static void a_turn_does_not_write_to_runs_that_wait(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    begin(w);
    arrive(w, "t");
    assert_true(next(w));
    start(w, spawn(w));
    struct queued_run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(run != MAP_FAILED);
    *run = *run_of(w, "t");
    assert_true(add(w, run));
    assert_int_equal(mprotect(run, sizeof *run, PROT_READ), 0);
    assert_false(next(w));
    assert_int_equal(mprotect(run, sizeof *run, PROT_READ | PROT_WRITE), 0);
    run_queue_drop(w->queue, run, w->now);
    assert_int_equal(munmap(run, sizeof *run), 0);
    end(w);
}

static bool add_in_background(struct world *w, const char *tenant)
{
    struct queued_run *run = run_of(w, tenant);

    run->background = true;
    bool refused = add(w, run) && w->action.what == RUN_REFUSE;
    return !refused;
}

static void
runs_in_the_background_have_a_limit_which_those_in_persistent_sandboxes_share(void **state)
{
    struct world *w = *state;

    begin(w);
    struct child *sandbox = children_add(w->settings.children, CHILD_PSANDBOX);
    child_set_owner(sandbox, "t", "c");
    sandbox->calls = json_pack("[{s:b},{s:b}]", "background", 1, "background", 0);
    assert_true(add_in_background(w, "t") && add_in_background(w, "t"));
    assert_false(add_in_background(w, "t"));
    assert_int_equal(w->action.why.kind, ERR_BUSY);
    assert_non_null(strstr(w->action.why.text, "3 runs of yours"));
    assert_true(add_in_background(w, "other"));
    arrive(w, "t");
    json_array_clear(sandbox->calls);
    assert_true(add_in_background(w, "t"));
    end(w);
}

static void with_a_limit_of_0_the_refusal_names_the_setting(void **state)
{
    struct world *w = *state;

    w->settings.background_max = 0;
    begin(w);
    assert_false(add_in_background(w, "t"));
    assert_int_equal(w->action.why.kind, ERR_DENIED);
    assert_non_null(strstr(w->action.why.text, "SANDBOX_BACKGROUND_MAX is 0"));
    end(w);
}

static void time_in_the_queue_ends_as_busy(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    begin(w);
    arrive(w, "t");
    assert_true(next(w));
    struct child *child = spawn(w);
    struct queued_run *patient = run_of(w, "t"), *hasty = run_of(w, "t"), *left = run_of(w, "t");
    hasty->wait_ms = 200;
    left->background = true; /* its default */
    assert_true(add(w, patient) && add(w, hasty) && add(w, left));
    assert_int_equal(run_queue_due(w->queue).at_ms, w->now + 200);
    w->now += 199;
    assert_false(next(w));
    w->now += 1;
    assert_true(next(w));
    expect_busy(w, hasty);
    assert_int_equal(run_queue_length(w->queue), 2);
    w->now += 4800;
    assert_true(next(w));
    expect_busy(w, left);
    assert_int_equal(run_queue_due(w->queue).at_ms, -1);
    w->now += 1000000;
    assert_false(next(w));
    start(w, child);
    finish(w, child);
    expect(w, RUN_SPAWN, patient);
    end(w);
}

static void a_run_that_can_start_starts_also_when_its_time_is_over(void **state)
{
    struct world *w = *state;

    begin(w);
    struct queued_run *run = run_of(w, "a");
    run->wait_ms = 1;
    assert_false(add(w, run));
    w->now += 50; /* the main loop was held up */
    expect(w, RUN_SPAWN, run);
    spawn(w);
    assert_false(next(w));
    end(w);
}

static void the_time_of_a_run_that_has_its_supervisor_does_not_end(void **state)
{
    struct world *w = *state;

    begin(w);
    struct queued_run *run = run_of(w, "t");
    run->wait_ms = 10;
    assert_false(add(w, run));
    assert_true(next(w));
    spawn(w);
    w->now += 1000;
    assert_int_equal(run_queue_due(w->queue).at_ms, -1);
    assert_false(next(w));
    end(w);
}

static void a_caller_that_leaves_gives_its_place_back_unless_it_detached(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    begin(w);
    struct queued_run *placed = arrive(w, "t");
    struct queued_run *detached = run_of(w, "t"), *waits = run_of(w, "t");
    detached->detach = true;
    assert_true(add(w, detached) && add(w, waits));
    assert_true(run_queue_leave(w->queue, waits, w->now));
    assert_false(run_queue_leave(w->queue, detached, w->now));
    assert_int_equal(run_queue_length(w->queue), 2);
    assert_true(run_queue_leave(w->queue, placed, w->now));
    expect(w, RUN_SPAWN, detached);
    end(w);
}

static void an_engine_or_an_image_that_went_refuses_those_that_wait(void **state)
{
    struct world *w = *state;

    begin(w);
    struct queued_run *one = arrive(w, "t");
    snprintf(w->runners.engine_error, sizeof w->runners.engine_error, "no engine");
    expect(w, RUN_REFUSE, one);
    assert_int_equal(w->action.why.kind, ERR_UNAVAILABLE);
    assert_int_equal(w->action.retry_ms, 0);
    w->runners.engine_error[0] = '\0';
    w->runners.list.n = 0;
    struct queued_run *two = arrive(w, "t");
    expect(w, RUN_REFUSE, two);
    assert_int_equal(w->action.why.kind, ERR_NOT_FOUND);
    assert_int_equal(run_queue_running(w->queue), 0);
    assert_true(run_queue_is_empty(w->queue));
    end(w);
}

static void a_supervisor_that_could_not_be_forked_costs_no_place(void **state)
{
    struct world *w = *state;

    begin(w);
    struct queued_run *run = arrive(w, "t");
    expect(w, RUN_SPAWN, run);
    run_queue_drop(w->queue, run, w->now);
    assert_int_equal(run_queue_running(w->queue), 0);
    assert_true(run_queue_is_empty(w->queue));
    assert_false(next(w));
    end(w);
}

/* ---- supervisors that are lost ---- */

static struct queued_run *lose(struct world *w, struct child *child, bool body_unread)
{
    struct queued_run *dropped = run_queue_child_lost(w->queue, child, body_unread, w->now);

    children_remove(w->settings.children, child);
    return dropped;
}

static void an_unread_run_gets_another_supervisor_once(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    begin(w);
    struct queued_run *run = arrive(w, "t"), *other = run_of(w, "t");
    assert_true(add(w, other));
    expect(w, RUN_SPAWN, run);
    assert_null(lose(w, spawn(w), true));
    assert_int_equal(run_queue_running(w->queue), 1); /* it has kept its place */
    expect(w, RUN_SPAWN, run);
    assert_ptr_equal(lose(w, spawn(w), true), run);
    assert_int_equal(run->stage, RUN_OUTSIDE);
    expect(w, RUN_SPAWN, other); /* and lost it */
    end(w);
}

static void a_run_whose_body_may_have_been_read_is_not_given_again(void **state)
{
    struct world *w = *state;

    begin(w);
    struct queued_run *run = arrive(w, "t");
    assert_true(next(w));
    assert_ptr_equal(lose(w, spawn(w), false), run);
    assert_int_equal(run_queue_running(w->queue), 0);
    assert_true(run_queue_is_empty(w->queue));
    end(w);
}

static void a_supervisor_that_is_lost_later_gives_its_place_back_once(void **state)
{
    struct world *w = *state;

    begin(w);
    arrive(w, "t");
    assert_true(next(w));
    struct child *child = spawn(w);
    start(w, child);
    run_queue_release(w->queue, child, w->now);
    assert_null(lose(w, child, false));
    assert_int_equal(run_queue_running(w->queue), 0);
    end(w);
}

static void a_run_of_a_broker_before_takes_a_place_without_asking(void **state)
{
    struct world *w = *state;

    w->settings.limits.server = 1;
    begin(w);
    struct child *child = children_add(w->settings.children, CHILD_SUPERVISOR);
    child_set_owner(child, "t", "c");
    run_queue_adopt(w->queue, child);
    assert_int_equal(run_queue_running(w->queue), 1);
    struct queued_run *run = run_of(w, "u");
    assert_true(add(w, run));
    assert_int_equal(w->action.what, RUN_TELL_POSITION);
    finish(w, child);
    expect(w, RUN_SPAWN, run);
    end(w);
}

static struct child *run_one(struct world *w)
{
    struct queued_run *run = arrive(w, "t");

    expect(w, RUN_SPAWN, run);
    struct child *child = spawn(w);
    child_set_state(child, CHILD_RUNNING);
    child->since_ms = w->now;
    assert_ptr_equal(run_queue_taken(w->queue, child), run);
    return child;
}

static void a_run_waits_while_what_is_free_would_not_hold_it(void **state)
{
    struct world *w = *state;

    w->settings.memory = (struct memory_room){.limit = 1 << 30, .reserve = 1 << 28};
    w->available = (2ull << 30) + (1 << 29);
    begin(w);
    run_one(w);
    run_one(w);
    struct queued_run *run = run_of(w, "u");
    assert_true(add(w, run));
    assert_int_equal(w->action.what, RUN_TELL_POSITION);
    assert_int_equal(run_queue_due(w->queue).at_ms, w->now + MEMORY_LOOK_MS);
    w->now += MEMORY_LOOK_MS;
    assert_false(next(w));
    w->now += MEMORY_LOOK_MS; /* those that run are no longer young, and take nothing */
    expect(w, RUN_SPAWN, run);
    spawn(w);
    w->now += MEMORY_LOOK_MS;
    w->available = 1 << 30; /* they do now */
    struct queued_run *other = run_of(w, "v");
    assert_true(add(w, other));
    w->now += MEMORY_LOOK_MS;
    assert_false(next(w));
    w->available = 5ull << 30;
    w->now += MEMORY_LOOK_MS;
    expect(w, RUN_SPAWN, other);
    end(w);
}

static void what_runs_in_persistent_sandboxes_takes_memory_too(void **state)
{
    struct world *w = *state;

    w->settings.memory = (struct memory_room){.limit = 1 << 30, .reserve = 1 << 28};
    w->available = (2ull << 30) + (1 << 29);
    begin(w);
    children_add(w->settings.children, CHILD_PSANDBOX)->n_handed = 1;
    run_one(w);
    assert_true(add(w, run_of(w, "u")));
    end(w);
}

static void memory_that_is_not_known_is_no_bound(void **state)
{
    struct world *w = *state;

    w->settings.memory = (struct memory_room){.limit = 1 << 30, .reserve = 1 << 28};
    begin(w);
    run_one(w);
    run_one(w);
    assert_int_equal(run_queue_due(w->queue).at_ms, DEADLINE_NEVER.at_ms);
    end(w);
}

#define CASE(f) cmocka_unit_test_setup(f, setup)
static const struct CMUnitTest tests[] = {
    CASE(a_run_gets_a_warm_container_or_a_new_one),
    CASE(a_warm_container_that_is_gone_is_passed_over),
    CASE(a_known_sandbox_gets_no_container_of_another_directory),
    CASE(starts_are_bounded_and_go_on_when_one_is_done),
    CASE(a_warm_container_serves_a_run_behind_one_that_cannot_start),
    CASE(starts_go_round_the_tenants),
    CASE(a_tenant_that_is_not_alone_has_half_of_the_starts),
    CASE(without_a_place_a_run_waits_and_is_told_its_position),
    CASE(a_turn_does_not_write_to_runs_that_wait),
    CASE(runs_in_the_background_have_a_limit_which_those_in_persistent_sandboxes_share),
    CASE(with_a_limit_of_0_the_refusal_names_the_setting),
    CASE(time_in_the_queue_ends_as_busy),
    CASE(a_run_that_can_start_starts_also_when_its_time_is_over),
    CASE(the_time_of_a_run_that_has_its_supervisor_does_not_end),
    CASE(a_caller_that_leaves_gives_its_place_back_unless_it_detached),
    CASE(an_engine_or_an_image_that_went_refuses_those_that_wait),
    CASE(a_supervisor_that_could_not_be_forked_costs_no_place),
    CASE(an_unread_run_gets_another_supervisor_once),
    CASE(a_run_whose_body_may_have_been_read_is_not_given_again),
    CASE(a_supervisor_that_is_lost_later_gives_its_place_back_once),
    CASE(a_run_of_a_broker_before_takes_a_place_without_asking),
    CASE(a_run_waits_while_what_is_free_would_not_hold_it),
    CASE(what_runs_in_persistent_sandboxes_takes_memory_too),
    CASE(memory_that_is_not_known_is_no_bound),
};
UNIT_TESTS(tests)
