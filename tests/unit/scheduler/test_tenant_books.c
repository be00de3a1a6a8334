/* What tenants have used of their limits: turns of a minute, time of a day, and clocks that jump.
 */
#include "config.h"

#include "common/rpc/json.h"
#include "common/scheduler/tenant_books.h"
#include "tests/unit/unit.h"

#define DAY_S 86400
#define NOON  (100 * DAY_S + DAY_S / 2)

struct world {
    struct tenants tenants;
    struct tenant_books *books;
    struct tenant_now now;
    int64_t retry_ms;
    struct err e;
};

static bool no_toolsets(const char *list)
{
    (void)list;
    return false;
}

static void begin(struct world *w, const char *file)
{
    char text[200];

    *w = (struct world){.now = {.mono_ms = 1000, .unix_s = NOON}};
    snprintf(text, sizeof text, "%s", file);
    tenants_init(&w->tenants);
    assert_int_equal(tenants_parse("f", text, no_toolsets, "", &w->tenants, &w->e), 0);
    w->books = tenant_books_new(&w->tenants);
}

static void end(struct world *w)
{
    tenant_books_free(w->books);
    tenants_clear(&w->tenants);
}

static bool may(struct world *w, const char *tenant)
{
    w->e = ERR_INIT;
    return tenant_books_ask(w->books, tenant, tenants_find(&w->tenants, tenant), w->now,
                            &w->retry_ms, &w->e) == 0;
}

static void runs_of_a_minute_come_back_one_by_one(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[alice]\nruns_per_minute = 3\n");
    for (int i = 0; i < 3; i++)
        assert_true(may(&w, "alice"));
    assert_false(may(&w, "alice"));
    assert_int_equal(w.e.kind, ERR_BUSY);
    assert_contains(w.e.text, "runs_per_minute");
    assert_contains(w.e.text, "the limit is 3 in a minute");
    assert_contains(w.e.text, "1970-04-11T12:00:20Z");
    assert_int_equal(w.retry_ms, 20000);
    assert_true(may(&w, "bob"));
    w.now.mono_ms += 19999;
    assert_false(may(&w, "alice"));
    assert_int_equal(w.retry_ms, 1);
    w.now.mono_ms += 1;
    assert_true(may(&w, "alice"));
    assert_false(may(&w, "alice"));
    w.now.mono_ms += 3600000;
    for (int i = 0; i < 3; i++)
        assert_true(may(&w, "alice"));
    assert_false(may(&w, "alice"));
    end(&w);
}

static void the_wall_clock_does_not_matter_to_runs_of_a_minute(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[*]\nruns_per_minute = 1\n");
    assert_true(may(&w, "alice"));
    w.now.unix_s += 40 * DAY_S;
    assert_false(may(&w, "alice"));
    w.now.unix_s -= 80 * DAY_S;
    assert_false(may(&w, "alice"));
    end(&w);
}

static void time_of_a_day_is_used_up_until_midnight(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[*]\nrun_seconds_per_day = 60\n[free]\nrun_seconds_per_day = 0\n");
    tenant_books_note_run(w.books, "alice", 59999, w.now);
    assert_true(may(&w, "alice"));
    tenant_books_note_run(w.books, "alice", 2001, w.now);
    tenant_books_note_run(w.books, "free", 1000000, w.now);
    assert_false(may(&w, "alice"));
    assert_int_equal(w.e.kind, ERR_BUSY);
    assert_contains(w.e.text, "run_seconds_per_day: your programs have run for 62 s");
    assert_contains(w.e.text, "the limit is 60 s, until 1970-04-12T00:00:00Z");
    assert_int_equal(w.retry_ms, DAY_S / 2 * 1000);
    assert_true(may(&w, "bob"));
    assert_true(may(&w, "free"));
    w.now.unix_s += DAY_S / 2;
    assert_true(may(&w, "alice"));
    end(&w);
}

static bool may_in_group(struct world *w, const char *tenant, const char *section)
{
    w->e = ERR_INIT;
    return tenant_books_ask(w->books, tenant, tenants_find(&w->tenants, section), w->now,
                            &w->retry_ms, &w->e) == 0;
}

static void a_group_has_limits_for_tenants_without(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[students]\nrun_seconds_per_day = 60\nruns_per_minute = 2\n");
    assert_true(may_in_group(&w, "alice", "students"));
    assert_true(may_in_group(&w, "alice", "students"));
    assert_false(may_in_group(&w, "alice", "students"));
    assert_contains(w.e.text, "runs_per_minute");
    assert_true(may_in_group(&w, "bob", "students")); /* each tenant for itself */
    w.now.mono_ms += 10 * 60 * 1000;
    assert_true(may(&w, "carol")); /* others come and go while the program runs */
    tenant_books_note_run(w.books, "alice", 61000, w.now);
    tenant_books_note_run(w.books, "carol", 61000, w.now);
    assert_false(may_in_group(&w, "alice", "students"));
    assert_contains(w.e.text, "run_seconds_per_day: your programs have run for 61 s");
    assert_true(may(&w, "alice")); /* with a token of no group */
    assert_true(may_in_group(&w, "bob", "students"));
    json_auto_t *saved = tenant_books_encode(w.books);
    assert_non_null(json_object_get(json_object_get(saved, "ms"), "alice"));
    assert_null(json_object_get(json_object_get(saved, "ms"), "carol"));
    struct tenant_books *next = tenant_books_new(&w.tenants);
    tenant_books_merge(next, saved, w.now);
    assert_int_equal(tenant_books_ask(next, "alice", tenants_find(&w.tenants, "students"), w.now,
                                      &w.retry_ms, &w.e),
                     -1);
    tenant_books_free(next);
    w.now.unix_s += DAY_S / 2;
    assert_true(may_in_group(&w, "alice", "students"));
    end(&w);
}

static void a_clock_that_is_set_back_gives_no_time_back(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[*]\nrun_seconds_per_day = 60\n");
    tenant_books_note_run(w.books, "alice", 60000, w.now);
    w.now.unix_s -= 3 * DAY_S;
    assert_false(may(&w, "alice"));
    assert_true(w.retry_ms <= (int64_t)DAY_S * 1000);
    w.now.unix_s += DAY_S;
    assert_true(may(&w, "alice"));
    end(&w);
}

static void a_clock_that_goes_back_over_midnight_and_on_again_counts_on(void **state)
{
    struct world w;

    (void)state;
    for (int restarts = 0; restarts < 2; restarts++) {
        begin(&w, "[*]\nrun_seconds_per_day = 60\n");
        w.now.unix_s = 100 * DAY_S + 600;
        tenant_books_note_run(w.books, "alice", 60000, w.now);
        w.now.unix_s -= 1200;
        assert_false(may(&w, "alice"));
        tenant_books_note_run(w.books, "bob", 1000, w.now);
        if (restarts) { /* while the clock is behind */
            json_auto_t *saved = tenant_books_encode(w.books);
            tenant_books_free(w.books);
            w.books = tenant_books_new(&w.tenants);
            tenant_books_merge(w.books, saved, w.now);
            assert_false(may(&w, "alice"));
        }
        w.now.unix_s += 1200;
        assert_false(may(&w, "alice"));
        assert_contains(w.e.text, "run for 60 s");
        assert_true(may(&w, "bob"));
        w.now.unix_s += DAY_S;
        assert_true(may(&w, "alice"));
        end(&w);
    }
}

static void time_survives_a_restart_and_another_broker(void **state)
{
    struct world w;

    (void)state;
    begin(&w, "[*]\nrun_seconds_per_day = 60\n");
    assert_false(tenant_books_changed(w.books));
    tenant_books_note_run(w.books, "alice", 40000, w.now);
    assert_true(tenant_books_changed(w.books));
    json_auto_t *saved = tenant_books_encode(w.books);
    tenant_books_saved(w.books);
    assert_false(tenant_books_changed(w.books));
    /* The next one knows it, adds its own, and takes in what both have added meanwhile. */
    struct tenant_books *next = tenant_books_new(&w.tenants);
    tenant_books_merge(next, saved, w.now);
    assert_false(tenant_books_changed(next));
    tenant_books_note_run(next, "alice", 15000, w.now);
    tenant_books_note_run(w.books, "alice", 5000, w.now);
    json_auto_t *later = tenant_books_encode(w.books);
    tenant_books_merge(next, later, w.now);
    assert_int_equal(tenant_books_ask(next, "alice", tenants_find(&w.tenants, "alice"), w.now,
                                      &w.retry_ms, &w.e),
                     -1);
    assert_contains(w.e.text, "run for 60 s");
    json_auto_t *both = tenant_books_encode(next);
    assert_int_equal(json_get_integer(json_object_get(both, "ms"), "alice", 0), 60000);
    /* What was saved on an earlier day counts no more; with a clock behind it, it does. */
    tenant_books_free(next);
    next = tenant_books_new(&w.tenants);
    w.now.unix_s += DAY_S;
    tenant_books_merge(next, both, w.now);
    assert_int_equal(tenant_books_ask(next, "alice", tenants_find(&w.tenants, "alice"), w.now,
                                      &w.retry_ms, &w.e),
                     0);
    w.now.unix_s -= 2 * DAY_S;
    tenant_books_merge(next, both, w.now);
    assert_int_equal(tenant_books_ask(next, "alice", tenants_find(&w.tenants, "alice"), w.now,
                                      &w.retry_ms, &w.e),
                     -1);
    tenant_books_free(next);
    end(&w);
}

static void a_saved_file_that_makes_no_sense_says_nothing(void **state)
{
    static const char *const texts[] = {"[]",
                                        "{}",
                                        "{\"day\":\"x\",\"ms\":3}",
                                        "{\"day\":100,\"ms\":{\"alice\":-5}}",
                                        "{\"day\":100,\"ms\":{\"alice\":\"60000\"}}",
                                        "{\"day\":100,\"ms\":{\"alice\":9223372036854775807}}",
                                        "{\"day\":100,\"later\":[]}",
                                        "{\"day\":100,\"later\":{\"day\":101,\"ms\":[1]}}"};
    struct world w;

    (void)state;
    begin(&w, "[*]\nrun_seconds_per_day = 60\n");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_auto_t *saved = json_loads(texts[i], 0, NULL);
        tenant_books_merge(w.books, saved, w.now);
        assert_true(may(&w, "alice"));
    }
    tenant_books_merge(w.books, NULL, w.now);
    assert_true(may(&w, "alice"));
    end(&w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(runs_of_a_minute_come_back_one_by_one),
    cmocka_unit_test(the_wall_clock_does_not_matter_to_runs_of_a_minute),
    cmocka_unit_test(time_of_a_day_is_used_up_until_midnight),
    cmocka_unit_test(a_group_has_limits_for_tenants_without),
    cmocka_unit_test(a_clock_that_is_set_back_gives_no_time_back),
    cmocka_unit_test(a_clock_that_goes_back_over_midnight_and_on_again_counts_on),
    cmocka_unit_test(time_survives_a_restart_and_another_broker),
    cmocka_unit_test(a_saved_file_that_makes_no_sense_says_nothing),
};
UNIT_TESTS(tests)
