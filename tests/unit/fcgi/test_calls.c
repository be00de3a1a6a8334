/* Two workers' entries, as their processes and the master see them. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/share.h"
#include "fcgi/process/calls.h"
#include "tests/unit/unit.h"

#include <pthread.h>
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

    const int64_t before = clock_mono_ms();

    assert_int_equal(calls_state(w->calls, 1, before), CALL_NONE);
    call_begin(&p);
    assert_int_equal(calls_state(w->calls, 1, before), CALL_BRIEF);
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

#define ANY_NUMBER SIZE_MAX /* of calls of one tenant, but for its share */

static void a_tenant_leaves_room_for_others(void **state)
{
    const struct world *w = *state;
    struct call_place places[N];

    for (size_t i = 0; i < N; i++) {
        places[i] = place(w, i);
        places[i].max = 3;
        call_begin(&places[i]); /* the others' calls count; the own does not */
    }
    assert_int_equal(call_admit(&places[0], "alice", ANY_NUMBER), CALL_HAS_NO_ROOM); /* 3 others */
    call_end(&places[3]);
    assert_int_equal(call_admit(&places[0], "alice", ANY_NUMBER), CALL_HAS_ROOM);
    assert_int_equal(call_admit(&places[1], "alice", ANY_NUMBER), CALL_HAS_ROOM);
    assert_int_equal(call_admit(&places[2], "dave", ANY_NUMBER), CALL_HAS_ROOM);
    places[2].max = 2;
    call_end(&places[1]);
    /* one of two: four times the one that is left */
    assert_int_equal(call_admit(&places[2], "alice", ANY_NUMBER), CALL_HAS_ROOM);
    calls_clear(w->calls, 0);
    calls_clear(w->calls, 2);
}

/* A tenant has n calls; what the next one may do. */
static enum call_room after(size_t n, size_t max, size_t most)
{
    struct calls *calls = calls_new(n + 1);
    struct call_place p = {.calls = calls, .n = n + 1, .max = max, .wake_fd = -1};

    atomic_store(&calls->n_used, n + 1);
    for (; p.i < n; p.i++) {
        call_begin(&p);
        atomic_store(&calls->entries[p.i].tenant, share_key("alice"));
    }
    call_begin(&p);
    enum call_room room = call_admit(&p, "alice", most);
    calls_free(calls, n + 1);
    return room;
}

static void above_its_share_a_tenant_may_still_end_something(void **state)
{
    (void)state;
    assert_int_equal(after(79, 100, ANY_NUMBER), CALL_HAS_ROOM);
    assert_int_equal(after(80, 100, ANY_NUMBER), CALL_MAY_FREE);
    assert_int_equal(after(83, 100, ANY_NUMBER), CALL_MAY_FREE);
    assert_int_equal(after(84, 100, ANY_NUMBER), CALL_HAS_NO_ROOM); /* 68 of 16 that are left */
    assert_int_equal(after(4, 5, ANY_NUMBER), CALL_MAY_FREE);
    assert_int_equal(after(5, 5, ANY_NUMBER), CALL_HAS_NO_ROOM);
}

static void what_nginx_lets_a_tenant_have_counts_too(void **state)
{
    (void)state;
    assert_int_equal(after(31, 2048, 32), CALL_HAS_ROOM);
    assert_int_equal(after(32, 2048, 32), CALL_MAY_FREE);
    assert_int_equal(after(32 + CALL_RESERVE - 1, 2048, 32), CALL_MAY_FREE);
    assert_int_equal(after(32 + CALL_RESERVE, 2048, 32), CALL_HAS_NO_ROOM);
}

static void behind_the_workers_in_use_no_call_counts(void **state)
{
    const struct world *w = *state;
    const struct call_place first = place(w, 0);

    for (size_t i = 1; i < N; i++) {
        const struct call_place other = place(w, i);
        call_begin(&other);
    }
    assert_int_equal(call_admit(&first, "alice", ANY_NUMBER), CALL_HAS_NO_ROOM);
    atomic_store(&w->calls->n_used, 2);
    assert_int_equal(call_admit(&first, "alice", ANY_NUMBER), CALL_HAS_ROOM);
    atomic_store(&w->calls->n_used, SIZE_MAX); /* a worker went mad */
    assert_int_equal(call_admit(&first, "alice", ANY_NUMBER), CALL_HAS_NO_ROOM);
}

#define AT_ONCE 8
#define ROUNDS  2000

struct caller {
    struct call_place place;
    pthread_barrier_t *together;
    enum call_room rooms[ROUNDS];
};

static void *call_often(void *ctx)
{
    struct caller *c = ctx;

    for (int i = 0; i < ROUNDS; i++) {
        call_begin(&c->place);
        pthread_barrier_wait(c->together);
        c->rooms[i] = call_admit(&c->place, "alice", 1);
        pthread_barrier_wait(c->together);
        call_end(&c->place);
    }
    return NULL;
}

static void of_calls_that_come_at_once_no_more_than_the_bound_pass(void **state)
{
    static struct caller callers[AT_ONCE];
    struct calls *calls = calls_new(AT_ONCE);
    pthread_t threads[AT_ONCE];
    pthread_barrier_t together;

    (void)state;
    atomic_store(&calls->n_used, AT_ONCE);
    pthread_barrier_init(&together, NULL, AT_ONCE);
    for (size_t i = 0; i < AT_ONCE; i++) {
        callers[i] = (struct caller){
            .place = {.calls = calls, .i = i, .n = AT_ONCE, .max = 2048, .wake_fd = -1},
            .together = &together};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (size_t i = 0; i < AT_ONCE; i++)
        pthread_join(threads[i], NULL);
    size_t all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = 0;
        for (size_t i = 0; i < AT_ONCE; i++)
            n += callers[i].rooms[round] == CALL_HAS_ROOM;
        assert_true(n <= 1);
        all += n;
    }
    assert_true(all > ROUNDS / 2); /* in some, all wait for each other's turns */
    pthread_barrier_destroy(&together);
    calls_free(calls, AT_ONCE);
}

static void without_a_master_nothing_is_counted(void **state)
{
    static const struct call_place none = {.calls = NULL};

    (void)state;
    call_begin(&none);
    assert_int_equal(call_admit(&none, "alice", ANY_NUMBER), CALL_HAS_ROOM);
    call_end(&none);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_call_becomes_long, setup, teardown),
    cmocka_unit_test_setup_teardown(the_master_is_woken_once_and_only_if_it_wants_to_be, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_tenant_leaves_room_for_others, setup, teardown),
    cmocka_unit_test(above_its_share_a_tenant_may_still_end_something),
    cmocka_unit_test(what_nginx_lets_a_tenant_have_counts_too),
    cmocka_unit_test_setup_teardown(behind_the_workers_in_use_no_call_counts, setup, teardown),
    cmocka_unit_test(of_calls_that_come_at_once_no_more_than_the_bound_pass),
    cmocka_unit_test(without_a_master_nothing_is_counted),
};
UNIT_TESTS(tests)
