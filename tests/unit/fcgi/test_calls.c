/* Two workers' entries, as their processes and the master see them. */
#include "config.h"

#include "common/base/clock.h"
#include "fcgi/process/calls.h"
#include "tests/unit/unit.h"

#include <sys/eventfd.h>
#include <unistd.h>

#define N 4

struct world {
    struct calls *calls;
    int wake_fd;
};

static int setup(void **state)
{
    static struct world w;

    w = (struct world){.calls = calls_new(N), .wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    atomic_store(&w.calls->n_used, N);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    calls_free(w->calls, N);
    close(w->wake_fd);
    return 0;
}

static struct call_place place(const struct world *w, size_t i)
{
    return (struct call_place){.calls = w->calls, .i = i, .n = N, .max = 2, .wake_fd = w->wake_fd};
}

static bool was_woken(const struct world *w)
{
    eventfd_t n;
    return eventfd_read(w->wake_fd, &n) == 0;
}

static void a_call_becomes_long(void **state)
{
    const struct world *w = *state;
    const struct call_place p = place(w, 1);

    assert_int_equal(calls_state(w->calls, 1, clock_mono_ms()), CALL_NONE);
    call_begin(&p);
    assert_int_equal(calls_state(w->calls, 1, clock_mono_ms()), CALL_BRIEF);
    assert_int_equal(calls_state(w->calls, 1, clock_mono_ms() + CALL_LONG_MS), CALL_LONG);
    assert_int_equal(calls_state(w->calls, 0, clock_mono_ms()), CALL_NONE);
    call_end(&p);
    assert_int_equal(calls_state(w->calls, 1, clock_mono_ms()), CALL_NONE);
}

static void the_master_is_woken_once_and_only_if_it_wants_to_be(void **state)
{
    const struct world *w = *state;
    const struct call_place first = place(w, 0), second = place(w, 1);

    call_begin(&first);
    assert_false(was_woken(w));
    atomic_store(&w->calls->wants_wake, true);
    call_begin(&second);
    assert_true(was_woken(w));
    call_begin(&first);
    assert_false(was_woken(w));
    atomic_store(&w->calls->wants_wake, true);
    call_end(&first);
    assert_true(was_woken(w));
}

static void a_tenant_leaves_room_for_others(void **state)
{
    const struct world *w = *state;
    struct call_place places[N];

    for (size_t i = 0; i < N; i++) {
        places[i] = place(w, i);
        places[i].max = 3;
        call_begin(&places[i]); /* the others' calls count; the own does not */
    }
    assert_false(call_admit(&places[0], "alice")); /* three others */
    call_end(&places[3]);
    assert_true(call_admit(&places[0], "alice"));
    assert_true(call_admit(&places[1], "alice"));
    assert_true(call_admit(&places[2], "dave"));
    places[2].max = 2;
    call_end(&places[1]);
    assert_true(call_admit(&places[2], "alice")); /* one of two: four times the one that is left */
    calls_clear(w->calls, 0);
    calls_clear(w->calls, 2);
}

static void behind_the_workers_in_use_no_call_counts(void **state)
{
    const struct world *w = *state;
    const struct call_place first = place(w, 0);

    for (size_t i = 1; i < N; i++) {
        const struct call_place other = place(w, i);
        call_begin(&other);
    }
    assert_false(call_admit(&first, "alice"));
    atomic_store(&w->calls->n_used, 2);
    assert_true(call_admit(&first, "alice"));
    atomic_store(&w->calls->n_used, SIZE_MAX); /* a worker went mad */
    assert_false(call_admit(&first, "alice"));
}

static void without_a_master_nothing_is_counted(void **state)
{
    static const struct call_place none = {.calls = NULL};

    (void)state;
    call_begin(&none);
    assert_true(call_admit(&none, "alice"));
    call_end(&none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_becomes_long, setup, teardown),
        cmocka_unit_test_setup_teardown(the_master_is_woken_once_and_only_if_it_wants_to_be, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_tenant_leaves_room_for_others, setup, teardown),
        cmocka_unit_test_setup_teardown(behind_the_workers_in_use_no_call_counts, setup, teardown),
        cmocka_unit_test(without_a_master_nothing_is_counted),
    };
    return RUN_TESTS(tests);
}
