/* The event loop: which handlers are called, also when a handler removes other watches. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/loop.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define N 3

struct bell {
    struct loop_watch watch;
    int fd;
    int rung;
};

struct world {
    struct loop loop;
    struct bell bells[N];
    struct bell *remove;   /* by the first handler */
    struct bell *dispatch; /* its handler dispatches the rest */
    uint32_t events;
};

static void on_bell(void *owner, void *item, uint32_t events)
{
    struct world *w = owner;
    struct bell *bell = item;
    struct err e = ERR_INIT;

    w->events = events;
    bell->rung++;
    if (bell == w->dispatch) {
        w->dispatch = NULL;
        assert_int_equal(loop_dispatch(&w->loop, &e), N - 1);
    }
    for (int i = 0; w->remove && i < N; i++)
        if (&w->bells[i] != bell) {
            loop_remove(&w->loop, &w->bells[i].watch);
            memset(&w->bells[i].watch, 0xff, sizeof w->bells[i].watch); /* as if it was freed */
            w->bells[i].watch.fd = -1;
        }
}

static int setup(void **state)
{
    static struct world w;
    struct err e = ERR_INIT;

    w = (struct world){.loop = LOOP_INIT};
    assert_works(loop_init(&w.loop, &w, &e), e);
    for (int i = 0; i < N; i++) {
        w.bells[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_works(
            loop_add(&w.loop, &w.bells[i].watch, w.bells[i].fd, EPOLLIN, on_bell, &w.bells[i], &e),
            e);
    }
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < N; i++) {
        loop_remove(&w->loop, &w->bells[i].watch);
        auto_close_fd(&w->bells[i].fd);
    }
    loop_clear(&w->loop);
    loop_clear(&w->loop); /* idempotent */
    return 0;
}

static void ring_all(struct world *w)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(eventfd_write(w->bells[i].fd, 1), 0);
}

static int sum(const struct world *w)
{
    return w->bells[0].rung + w->bells[1].rung + w->bells[2].rung;
}

static void handlers_of_ready_descriptors_are_called_with_their_item(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    assert_int_equal(loop_dispatch(&w->loop, &e), 0);
    assert_int_equal(eventfd_write(w->bells[1].fd, 1), 0);
    assert_int_equal(loop_wait(&w->loop, DEADLINE_NEVER, NULL, &e), 1);
    assert_int_equal(w->bells[1].rung, 1);
    assert_int_equal(sum(w), 1);
    assert_int_equal(w->events, EPOLLIN);
    ring_all(w);
    assert_int_equal(loop_dispatch(&w->loop, &e), N);
    assert_int_equal(sum(w), 1 + N);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;
    int64_t before = clock_mono_ms();

    assert_int_equal(loop_wait(&w->loop, deadline_in_ms(20), NULL, &e), 0);
    assert_true(clock_mono_ms() - before >= 20);
    assert_int_equal(loop_wait_one(&w->loop, deadline_in_ms(0), &e), 0);
}

static void a_watch_removed_by_another_handler_of_the_batch_is_not_called(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    w->remove = w->bells;
    ring_all(w);
    assert_int_equal(loop_dispatch(&w->loop, &e), 1);
    assert_int_equal(sum(w), 1);
}

static void one_event_at_a_time_is_dispatched_on_request(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    ring_all(w);
    for (int i = 1; i <= N; i++) {
        assert_int_equal(loop_wait_one(&w->loop, DEADLINE_NEVER, &e), 1);
        assert_int_equal(sum(w), i);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(w->bells[i].rung, 1);
}

static void a_handler_may_dispatch_the_rest_of_the_batch(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    ring_all(w);
    w->dispatch = &w->bells[0];
    assert_true(loop_dispatch(&w->loop, &e) >= 1);
    assert_int_equal(sum(w), N);
}

static void other_events_can_be_asked_for(void **state)
{
    struct world *w = *state;
    struct err e = ERR_INIT;

    assert_works(loop_change(&w->loop, &w->bells[0].watch, EPOLLOUT, &e), e);
    assert_int_equal(loop_dispatch(&w->loop, &e), 1);
    assert_int_equal(w->events, EPOLLOUT);
    assert_works(loop_change(&w->loop, &w->bells[0].watch, EPOLLIN, &e), e);
    assert_int_equal(loop_dispatch(&w->loop, &e), 0);
}

static void the_loops_own_descriptor_tells_that_something_is_due(void **state)
{
    struct world *w = *state;
    struct loop outer = LOOP_INIT;
    struct loop_watch watch = LOOP_WATCH_INIT;
    struct err e = ERR_INIT;

    assert_works(loop_init(&outer, w, &e), e);
    assert_works(loop_add(&outer, &watch, w->loop.fd, EPOLLIN, on_bell, &w->bells[2], &e), e);
    assert_int_equal(loop_dispatch(&outer, &e), 0);
    assert_int_equal(eventfd_write(w->bells[0].fd, 1), 0);
    assert_int_equal(loop_dispatch(&outer, &e), 1);
    assert_int_equal(w->bells[2].rung, 1);
    loop_clear(&outer);
}

static void a_descriptor_that_cannot_be_watched_is_an_error(void **state)
{
    struct world *w = *state;
    struct loop_watch watch = LOOP_WATCH_INIT;
    struct err e = ERR_INIT;
    AUTO_FD int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(loop_add(&w->loop, &watch, folder, EPOLLIN, on_bell, NULL, &e), -1);
    assert_contains(e.text, "epoll_ctl");
    assert_int_equal(watch.fd, -1);
    loop_remove(&w->loop, &watch); /* no harm */
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
    CASE(handlers_of_ready_descriptors_are_called_with_their_item),
    CASE(a_wait_ends_at_its_deadline),
    CASE(a_watch_removed_by_another_handler_of_the_batch_is_not_called),
    CASE(one_event_at_a_time_is_dispatched_on_request),
    CASE(a_handler_may_dispatch_the_rest_of_the_batch),
    CASE(other_events_can_be_asked_for),
    CASE(the_loops_own_descriptor_tells_that_something_is_due),
    CASE(a_descriptor_that_cannot_be_watched_is_an_error),
};
UNIT_TESTS(tests)
