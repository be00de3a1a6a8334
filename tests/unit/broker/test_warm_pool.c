#include "config.h"

#include "common/broker/warm_pool.h"
#include "tests/unit/unit.h"

static void pressure_says_idle_below_ten_percent(void **state)
{
    static const struct {
        const char *text;
        int answer;
    } cases[] = {
        {"some avg10=99.00 avg60=1.00 avg300=2.00 total=1099990\nfull avg10=0.00", 1},
        {"some avg10=0.00 avg60=0.00 avg300=0.00 total=1100000\n", 0},
        {"some avg10=0.00 avg60=0.00 avg300=0.00 total=9000000\n", 0},
        {"some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n", 1},
        {"some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", 0}, /* counted anew */
        {"", -1},
        {"some avg10=0.00", -1},
        {"some avg10=0.00 total=x", -1},
        {"full avg10=0.00 total=5", -1},
        {"some total=99999999999999999999999", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cpu_pressure cpu = {.checked = true, .checked_ms = 1000, .stalled_us = 1000000};

        assert_int_equal(cpu_idle_by_pressure(&cpu, cases[i].text, 2000), cases[i].answer);
    }
    struct cpu_pressure fresh = {0};
    assert_int_equal(cpu_idle_by_pressure(&fresh, cases[3].text, 2000), 0);
}

static void counters_say_idle_when_half_of_the_time_was_unused(void **state)
{
    struct cpu_pressure cpu = {0};

    (void)state;
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1"), -1);
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  140 0 100 850 9 0 0 0 0 0\ncpu0 1"), 1);
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  190 5 100 890 9 0 0 0 0 0\ncpu0 1"), 0);
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  190 5 100 890 9 0 0 0 0 0\ncpu0 1"), -1);
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  1 5"), -1);
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu"), -1);
    assert_int_equal(cpu_idle_by_stat(&cpu, "intr 5"), -1);
    /* Counters that went backwards tell nothing. */
    assert_int_equal(cpu_idle_by_stat(&cpu, "cpu  10 5 10 89 9 0 0 0 0 0\n"), -1);
}

static void an_answer_holds_for_half_a_second(void **state)
{
    struct cpu_pressure cpu = {0};

    (void)state;
    cpu_pressure_is_idle(&cpu, 5000);
    assert_int_equal(cpu.checked_ms, 5000);
    for (int said = 0; said < 2; said++) {
        cpu.idle = said;
        assert_int_equal(cpu_pressure_is_idle(&cpu, 5499), said);
        assert_int_equal(cpu.checked_ms, 5000);
    }
    cpu_pressure_is_idle(&cpu, 5500);
    assert_int_equal(cpu.checked_ms, 5500);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pressure_says_idle_below_ten_percent),
    cmocka_unit_test(counters_say_idle_when_half_of_the_time_was_unused),
    cmocka_unit_test(an_answer_holds_for_half_a_second),
};
UNIT_TESTS(tests)
