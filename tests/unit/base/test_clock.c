#include "config.h"

#include "common/base/clock.h"
#include "tests/unit/unit.h"

#include <time.h>

static void the_monotonic_clock_never_goes_back(void **state)
{
    (void)state;
    int64_t before = clock_mono_us();
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_mono_us();
        assert_true(now >= before);
        before = now;
    }
    assert_true(clock_mono_ms() >= before / 1000);
    assert_true(clock_unix_s() > 1500000000);
}

static void never_does_not_pass_and_polls_without_end(void **state)
{
    (void)state;
    assert_false(deadline_passed(DEADLINE_NEVER));
    assert_int_equal(deadline_poll_ms(DEADLINE_NEVER), -1);
}

static void a_deadline_passes_when_its_time_has_come(void **state)
{
    (void)state;
    struct deadline d = deadline_in_ms(20000);
    assert_false(deadline_passed(d));
    int left = deadline_poll_ms(d);
    assert_true(left > 0 && left <= 20000);
    d = deadline_in_ms(20);
    nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    assert_true(deadline_passed(d));
    assert_int_equal(deadline_poll_ms(d), 0);
}

static void a_negative_time_from_now_is_past_and_not_never(void **state)
{
    (void)state;
    assert_true(deadline_passed(deadline_in_ms(-5)));
    assert_true(deadline_passed(deadline_in_ms(INT64_MIN)));
    assert_true(deadline_passed(deadline_in_ms(0)));
}

static void far_deadlines_are_clamped_and_do_not_overflow(void **state)
{
    (void)state;
    struct deadline far = deadline_in_ms(INT64_MAX);
    assert_false(deadline_passed(far));
    assert_int_equal(deadline_poll_ms(far), INT_MAX);
}

static void the_earlier_of_two_is_the_minimum(void **state)
{
    (void)state;
    struct deadline a = {.at_ms = 5}, b = {.at_ms = 9};
    assert_int_equal(deadline_min(a, b).at_ms, 5);
    assert_int_equal(deadline_min(b, a).at_ms, 5);
    assert_int_equal(deadline_min(DEADLINE_NEVER, b).at_ms, 9);
    assert_int_equal(deadline_min(b, DEADLINE_NEVER).at_ms, 9);
    assert_true(deadline_min(DEADLINE_NEVER, DEADLINE_NEVER).at_ms < 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_monotonic_clock_never_goes_back),
    cmocka_unit_test(never_does_not_pass_and_polls_without_end),
    cmocka_unit_test(a_deadline_passes_when_its_time_has_come),
    cmocka_unit_test(a_negative_time_from_now_is_past_and_not_never),
    cmocka_unit_test(far_deadlines_are_clamped_and_do_not_overflow),
    cmocka_unit_test(the_earlier_of_two_is_the_minimum),
};
UNIT_TESTS(tests)
