#include "config.h"

#include "common/base/clock.h"
#include "common/sandbox/state/expiry_clock.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#define DAY  86400
#define NOW  (1000 * (int64_t)DAY)
#define MIB  (1024ull * 1024)
#define MANY 100000

/* Conversations, each last used so many seconds before NOW and of so many MiB. */
struct past {
    int64_t age_s;
    uint64_t mib;
};

static size_t plan(const struct past *past, size_t n, struct sandbox_bounds bounds,
                   struct retention_item *items, int64_t *out_next)
{
    struct retention r = {.items = items, .n = n};

    for (size_t i = 0; i < n; i++) {
        items[i] = (struct retention_item){.last_used = NOW - past[i].age_s,
                                           .bytes = past[i].mib * MIB};
        snprintf(items[i].name, sizeof items[i].name, "%zu", i);
    }
    size_t gone = retention_plan(&r, &bounds, 60, NOW);
    if (out_next)
        *out_next = retention_next_s(&r, gone, &bounds, 60, NOW);
    return gone;
}

static void without_bounds_all_stay(void **state)
{
    const struct past past[] = {{900 * DAY, 1000}, {0, 1000}};
    struct retention_item items[2];
    int64_t next;
    (void)state;
    assert_int_equal(plan(past, 2, (struct sandbox_bounds){0}, items, &next), 0);
    assert_int_equal(next, 600);
    assert_int_equal(plan(NULL, 0, (struct sandbox_bounds){.ttl_s = DAY}, items, &next), 0);
}

static void what_was_not_used_for_longer_than_its_time_goes(void **state)
{
    const struct past past[] = {{10, 0}, {31 * DAY, 0}, {30 * DAY + 60, 0}, {40 * DAY, 0}};
    const struct sandbox_bounds bounds = {.ttl_s = 30 * DAY};
    struct retention_item items[4];
    (void)state;
    assert_int_equal(plan(past, 4, bounds, items, NULL), 2);
    assert_string_equal(items[0].name, "3");
    assert_string_equal(items[1].name, "1");
}

static void above_the_total_the_oldest_go_until_the_rest_fits(void **state)
{
    const struct past past[] = {{5, 10}, {50, 10}, {20, 10}, {40, 5}};
    struct sandbox_bounds bounds = {.total_bytes = 35 * MIB};
    struct retention_item items[4];
    (void)state;
    assert_int_equal(plan(past, 4, bounds, items, NULL), 0);
    bounds.total_bytes = 34 * MIB;
    assert_int_equal(plan(past, 4, bounds, items, NULL), 1);
    assert_string_equal(items[0].name, "1");
    bounds.total_bytes = 20 * MIB;
    assert_int_equal(plan(past, 4, bounds, items, NULL), 2);
    bounds.total_bytes = 1;
    assert_int_equal(plan(past, 4, bounds, items, NULL), 4);
}

static void what_is_in_use_counts_and_another_goes_in_its_place(void **state)
{
    struct retention_item items[] = {{.name = "busy", .last_used = 1, .bytes = 10, .in_use = true},
                                     {.name = "young", .last_used = 3, .bytes = 10},
                                     {.name = "old", .last_used = 2, .bytes = 10}};
    struct retention r = {.items = items, .n = ARRAY_LEN(items)};
    (void)state;
    assert_int_equal(retention_plan(&r, &(struct sandbox_bounds){.total_bytes = 20}, 0, NOW), 1);
    r.beside_bytes = 10; /* kept results count, too */
    assert_int_equal(retention_plan(&r, &(struct sandbox_bounds){.total_bytes = 20}, 0, NOW), 2);
    assert_string_equal(items[0].name, "old");
    assert_int_equal(retention_plan(&r, &(struct sandbox_bounds){.total_bytes = 1}, 0, NOW), 2);
    assert_int_equal(retention_plan(&r, &(struct sandbox_bounds){.ttl_s = DAY}, 0, NOW), 2);
}

static void what_has_expired_does_not_count_in_the_total(void **state)
{
    const struct past past[] = {{40 * DAY, 100}, {20, 10}};
    const struct sandbox_bounds bounds = {.ttl_s = 30 * DAY, .total_bytes = 20 * MIB};
    struct retention_item items[2];
    (void)state;
    assert_int_equal(plan(past, 2, bounds, items, NULL), 1);
}

static void the_next_look_is_when_something_expires(void **state)
{
    const struct past past[] = {{30 * DAY - 200, 0}, {0, 0}};
    struct retention_item items[2];
    int64_t next;
    (void)state;
    plan(past, 2, (struct sandbox_bounds){.ttl_s = 30 * DAY}, items, &next);
    assert_int_equal(next, 200 + 60 + 1);
    plan(past, 1, (struct sandbox_bounds){.ttl_s = 30 * DAY - 199 - 61}, items, &next);
    assert_int_equal(next, 30); /* not at once, however many are due one after the other */
    plan(past + 1, 1, (struct sandbox_bounds){.ttl_s = 2}, items, &next);
    assert_int_equal(next, 3);
    plan(past + 1, 1, (struct sandbox_bounds){.total_bytes = 1000 * MIB}, items, &next);
    assert_int_equal(next, 60);
}

/* A year of many conversations: nothing goes early, nothing stays long. */
static void a_year_of_conversations(void **state)
{
    enum { N = 500 };
    const struct sandbox_bounds bounds = {.ttl_s = 30 * DAY};
    struct retention_item items[N];
    struct retention r = {.items = items, .n = 0};
    uint64_t seed = 1;
    int64_t now = NOW;
    (void)state;
    while (now < NOW + 365 * (int64_t)DAY) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (r.n < N && seed >> 60 < 12)
            items[r.n++] = (struct retention_item){.last_used = now};
        else if (r.n > 0) /* a visitor comes back */
            items[(seed >> 20) % r.n].last_used = now;
        size_t gone = retention_plan(&r, &bounds, 60, now);
        for (size_t i = 0; i < r.n; i++)
            assert_true((i < gone) == (now - items[i].last_used > bounds.ttl_s + 60));
        memmove(items, items + gone, (r.n - gone) * sizeof *items);
        r.n -= gone;
        now += retention_next_s(&r, 0, &bounds, 60, now);
    }
}

/* Looks of every 10 minutes for some hours, with a clock that is ahead; the time judged by at last.
 */
static int64_t looks(struct expiry_clock *c, int64_t *mono_s, int64_t hours, int64_t ahead_s)
{
    int64_t now = 0;

    for (int64_t end = *mono_s + hours * 3600; *mono_s < end; *mono_s += 600)
        now = expiry_clock_look(c, 30 * DAY,
                                (struct expiry_look){*mono_s, NOW + *mono_s + ahead_s});
    return now;
}

static void a_clock_that_jumps_ahead_costs_nothing_until_it_stays(void **state)
{
    struct expiry_clock c = {0};
    int64_t mono_s = 5;
    (void)state;
    assert_int_equal(looks(&c, &mono_s, 2, 0), 0); /* nothing is known after the start */
    assert_in_range(looks(&c, &mono_s, 1, 0), NOW, NOW + 3600);
    int64_t before = mono_s;
    assert_true(looks(&c, &mono_s, 2, 40 * DAY) < NOW + before);   /* as long as it is new */
    assert_true(looks(&c, &mono_s, 3, 40 * DAY) > NOW + 39 * DAY); /* it stays: it is right */
    int64_t back = looks(&c, &mono_s, 1, 0);
    assert_true(back < NOW + mono_s); /* set back: never later than the clock */
}

static void a_jump_at_the_start_costs_nothing(void **state)
{
    struct expiry_clock c = {0};
    int64_t mono_s = 5;
    (void)state;
    assert_int_equal(looks(&c, &mono_s, 1, 40 * DAY), 0);
    int64_t later = looks(&c, &mono_s, 9, 0);
    assert_in_range(later, NOW, NOW + mono_s);
}

static void short_lives_are_not_lengthened(void **state)
{
    struct expiry_clock c = {0};
    (void)state;
    assert_int_equal(expiry_clock_look(&c, 5, (struct expiry_look){7, NOW}), NOW);
    assert_int_equal(expiry_wait_s(3600), 450);
    assert_int_equal(expiry_wait_s(DAY), 7200);
    assert_int_equal(expiry_wait_s(0), 0);
}

/* Another process goes on with the looks of the one before. */
static void looks_outlive_a_process(void **state)
{
    struct fixture *f = *state;
    f->root.bounds.ttl_s = 30 * DAY;
    assert_int_equal(expiry_now(&f->root, (struct expiry_look){100, NOW}), 0);
    assert_int_equal(expiry_now(&f->root, (struct expiry_look){7299, NOW + 7199}), 0);
    assert_int_equal(expiry_now(&f->root, (struct expiry_look){7300, NOW + 40 * DAY}), NOW);
    assert_int_equal(expiry_now(&f->root, (struct expiry_look){50, NOW}), 0); /* another boot */
    AUTO_FD int fd = openat(f->root.fd, STATE_DIR "/clock", O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, "nonsense", 8), 8);
    assert_int_equal(expiry_now(&f->root, (struct expiry_look){9999, NOW}), 0);
}

static struct retention gather(struct fixture *f)
{
    struct retention r;

    assert_int_equal(retention_gather(&f->root, &r, &f->e), 0);
    return r;
}

static void a_gathering_finds_every_sandbox_and_its_last_use(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox other = SANDBOX_INIT;
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char path[100];

    assert_int_equal(sandbox_open(&f->root, "default", "other", &other, &f->e), 0);
    assert_int_equal(state_note_use(&f->sb, "default", "talk", &f->e), 0);
    snprintf(path, sizeof path, STATE_DIR "/%s.json", f->sb.name);
    assert_int_equal(utimensat(f->root.fd, path, times, 0), 0);
    AUTO_RETENTION struct retention r = gather(f);
    assert_int_equal(r.n, 2);
    assert_int_equal(retention_plan(&r, &(struct sandbox_bounds){.ttl_s = 3600}, 0, clock_unix_s()),
                     1);
    assert_string_equal(r.items[0].name, f->sb.name);
    assert_int_equal(r.items[0].last_used, 1000);
}

static void sizes_are_noted_or_counted_where_the_total_is_bounded(void **state)
{
    struct fixture *f = *state;
    struct usage u;

    fixture_plant(f, "file", "text");
    AUTO_RETENTION struct retention plain = gather(f);
    assert_int_equal(plain.items[0].bytes, 0);
    f->root.bounds.total_bytes = MIB;
    AUTO_RETENTION struct retention counted = gather(f);
    assert_in_range(counted.items[0].bytes, 1, 64 * 1024);
    assert_true(state_size(&f->root, f->sb.name, &u));
    assert_int_equal(u.files, 1);
    state_note_size(&f->root, f->sb.name, &(struct usage){.bytes = 77, .files = 3});
    AUTO_RETENTION struct retention noted = gather(f);
    assert_int_equal(noted.items[0].bytes, 77);
    assert_true(noted.items[0].in_use);
    sandbox_close(&f->sb);
    AUTO_RETENTION struct retention left = gather(f);
    assert_false(left.items[0].in_use);
}

static void a_hundred_thousand_conversations_are_gathered_and_sorted(void **state)
{
    struct fixture *f = *state;
    const struct sandbox_bounds bounds = {.ttl_s = 3600, .total_bytes = 1};

    for (int i = 0; i < MANY; i++) {
        char name[SANDBOX_NAME_LEN + 1];
        snprintf(name, sizeof name, "%064x", i);
        assert_int_equal(mkdirat(f->root.fd, name, 0755), 0);
    }
    AUTO_RETENTION struct retention r = gather(f);
    assert_int_equal(r.n, MANY + 1);
    assert_int_equal(retention_plan(&r, &bounds, 60, clock_unix_s()), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define BIG(fn)  cmocka_unit_test_setup_teardown(fn, fixture_setup_big, fixture_teardown)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_bounds_all_stay),
    cmocka_unit_test(what_was_not_used_for_longer_than_its_time_goes),
    cmocka_unit_test(above_the_total_the_oldest_go_until_the_rest_fits),
    cmocka_unit_test(what_is_in_use_counts_and_another_goes_in_its_place),
    cmocka_unit_test(what_has_expired_does_not_count_in_the_total),
    cmocka_unit_test(the_next_look_is_when_something_expires),
    cmocka_unit_test(a_year_of_conversations),
    cmocka_unit_test(a_clock_that_jumps_ahead_costs_nothing_until_it_stays),
    cmocka_unit_test(a_jump_at_the_start_costs_nothing),
    cmocka_unit_test(short_lives_are_not_lengthened),
    CASE(looks_outlive_a_process),
    CASE(a_gathering_finds_every_sandbox_and_its_last_use),
    CASE(sizes_are_noted_or_counted_where_the_total_is_bounded),
    BIG(a_hundred_thousand_conversations_are_gathered_and_sorted),
};
UNIT_TESTS(tests)
