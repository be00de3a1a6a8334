/* Programs on a machine with 4 GiB, each of which may take 1: which begin when. */
#include "config.h"

#include "common/base/auto.h"
#include "common/scheduler/memory_room.h"
#include "tests/unit/unit.h"

#define MIB       1048576ull
#define STEP_MS   50
#define RESERVE   (256 * MIB)
#define AVAILABLE (3700 * MIB) /* of 4 GiB, beside the server and waiting containers */
#define PROGRAMS  16

struct crowd {
    uint64_t takes;              /* bytes, of each program */
    int64_t grows_ms, whole_ms;  /* until it has them, and until it ends */
    int64_t begun_ms[PROGRAMS];  /* 0: it waits */
    size_t running, most, ended; /* most: at the same time */
    int64_t all_begun_ms;
    uint64_t least; /* that was available */
};

static uint64_t taken(const struct crowd *c, size_t i, int64_t now_ms)
{
    const int64_t age = now_ms - c->begun_ms[i];

    if (c->begun_ms[i] == 0 || age >= c->whole_ms)
        return 0;
    return age >= c->grows_ms ? c->takes : c->takes * (uint64_t)age / (uint64_t)c->grows_ms;
}

/* What is available now; young, running and ended are counted on the way. */
static uint64_t count(struct crowd *c, int64_t now_ms, struct memory_programs *out)
{
    uint64_t available = AVAILABLE;

    *out = (struct memory_programs){0};
    c->ended = 0;
    for (size_t i = 0; i < PROGRAMS; i++) {
        const int64_t age = now_ms - c->begun_ms[i];

        available -= taken(c, i, now_ms) < available ? taken(c, i, now_ms) : available;
        c->ended += c->begun_ms[i] > 0 && age >= c->whole_ms;
        out->running += c->begun_ms[i] > 0 && age < c->whole_ms;
        out->young += c->begun_ms[i] > 0 && age < c->whole_ms && age < MEMORY_YOUNG_MS;
    }
    return available;
}

static void begin_those_that_fit(struct crowd *c, const struct memory_room *room,
                                 struct memory_programs p, int64_t now_ms)
{
    for (size_t i = 0; i < PROGRAMS; i++) {
        if (c->begun_ms[i] > 0 || !memory_room_fits(room, p))
            continue;
        c->begun_ms[i] = now_ms;
        c->all_begun_ms = now_ms - 1000;
        p.running++;
        p.young++;
    }
    c->most = p.running > c->most ? p.running : c->most;
}

/* All come at 1000 ms. */
static void play(struct crowd *c)
{
    struct memory_room room = {.limit = 1024 * MIB, .reserve = RESERVE};
    struct memory_programs p;

    c->least = AVAILABLE;
    for (int64_t now_ms = 1000; c->ended < PROGRAMS; now_ms += STEP_MS) {
        const uint64_t available = count(c, now_ms, &p);

        assert_true(now_ms < 10000000);
        c->least = available < c->least ? available : c->least;
        if (memory_room_is_stale(&room, now_ms))
            memory_room_look(&room, available, now_ms);
        begin_those_that_fit(c, &room, p, now_ms);
    }
}

static void small_programs_run_at_once(void **state)
{
    struct crowd c = {.takes = 20 * MIB, .grows_ms = 100, .whole_ms = 60000};

    (void)state;
    play(&c);
    assert_int_equal(c.most, PROGRAMS);
    assert_true(c.all_begun_ms <= 3000);
}

static void programs_that_take_their_limit_are_queued_and_the_machine_keeps_memory(void **state)
{
    static const int64_t grows_ms[] = {50, 300, 1000, 3000, 20000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(grows_ms); i++) {
        struct crowd c = {.takes = 1024 * MIB, .grows_ms = grows_ms[i], .whole_ms = 30000};

        play(&c);
        assert_int_equal(c.most, 3);
        assert_true(c.least >= RESERVE);
    }
}

static void programs_of_a_middle_size_use_what_there_is(void **state)
{
    struct crowd c = {.takes = 300 * MIB, .grows_ms = 400, .whole_ms = 20000};

    (void)state;
    play(&c);
    assert_true(c.most >= 7);
    assert_true(c.least >= RESERVE);
}

static void short_programs_never_wait_for_long(void **state)
{
    struct crowd c = {.takes = 80 * MIB, .grows_ms = 50, .whole_ms = 100};

    (void)state;
    play(&c);
    assert_true(c.all_begun_ms <= 1000);
}

static void the_only_program_fits_whatever_is_free(void **state)
{
    struct memory_room room = {.limit = 1024 * MIB, .reserve = RESERVE};

    (void)state;
    memory_room_look(&room, 0, 1000);
    assert_true(memory_room_fits(&room, (struct memory_programs){0}));
    assert_false(memory_room_fits(&room, (struct memory_programs){.running = 1}));
    memory_room_look(&room, RESERVE + 2048 * MIB, 1100);
    assert_true(memory_room_fits(&room, (struct memory_programs){.running = 1, .young = 1}));
    assert_false(memory_room_fits(&room, (struct memory_programs){.running = 2, .young = 2}));
}

static void what_was_long_ago_says_nothing_of_now(void **state)
{
    struct memory_room room = {.limit = 1024 * MIB, .reserve = RESERVE};
    const struct memory_programs rest = {.running = 5};

    (void)state;
    memory_room_look(&room, 2000 * MIB, 1000);
    assert_false(memory_room_fits(&room, rest));
    memory_room_look(&room, 2000 * MIB, 60000);
    assert_false(memory_room_fits(&room, rest));
    memory_room_look(&room, 2000 * MIB, 60000 + MEMORY_LOOK_MS);
    assert_true(memory_room_fits(&room, rest));
    memory_room_look(&room, 1900 * MIB, 60100 + MEMORY_LOOK_MS);
    assert_false(memory_room_fits(&room, rest));
}

static void without_a_reserve_nothing_is_looked_at(void **state)
{
    const struct memory_room room = {.limit = 1024 * MIB};

    (void)state;
    assert_false(memory_room_is_stale(&room, 1000));
    assert_true(memory_room_fits(&room, (struct memory_programs){.running = 99, .young = 99}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(small_programs_run_at_once),
    cmocka_unit_test(programs_that_take_their_limit_are_queued_and_the_machine_keeps_memory),
    cmocka_unit_test(programs_of_a_middle_size_use_what_there_is),
    cmocka_unit_test(short_programs_never_wait_for_long),
    cmocka_unit_test(the_only_program_fits_whatever_is_free),
    cmocka_unit_test(what_was_long_ago_says_nothing_of_now),
    cmocka_unit_test(without_a_reserve_nothing_is_looked_at),
};
UNIT_TESTS(tests)
