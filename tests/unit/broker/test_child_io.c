/* What children send becomes events; what they are sent arrives; a failure leaves nothing behind.
 * No sleeps: both ends are here. */
#include "config.h"

#include "common/broker/child_io.h"
#include "common/broker/spawn.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    struct loop loop;
    struct child_io io;
    struct children *children;
    int fds; /* open before */
};

static int setup(void **state)
{
    static struct world w;
    struct err e = ERR_INIT;

    w = (struct world){.children = children_new(), .fds = unit_count_fds()};
    assert_works(loop_init(&w.loop, NULL, &e), e);
    w.io = (struct child_io){.loop = &w.loop};
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (struct child *c; (c = children_next(w->children, NULL));) {
        child_io_close(&w->io, c);
        children_remove(w->children, c);
    }
    loop_clear(&w->loop);
    children_free(w->children);
    assert_int_equal(unit_count_fds(), w->fds);
    return 0;
}

/* A child with a channel; its end. */
static int add(struct world *w, enum child_kind kind, struct child **out)
{
    struct err e = ERR_INIT;
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *out = children_add(w->children, kind);
    assert_works(child_io_open(&w->io, *out, pair[0], &e), e);
    return pair[1];
}

static void say(int fd, const char *text)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_loads(text, 0, NULL);

    assert_non_null(message);
    assert_works(wire_send(fd, message, -1, &e), e);
}

static void expect(struct world *w, const struct child *child, enum child_event_kind kind)
{
    struct child_event event;

    assert_true(child_io_next(&w->io, &event));
    assert_ptr_equal(event.child, child);
    assert_int_equal(event.kind, kind);
}

static void expect_none(struct world *w)
{
    struct child_event event;

    assert_false(child_io_next(&w->io, &event));
}

static void dispatch(struct world *w)
{
    struct err e = ERR_INIT;

    assert_true(loop_dispatch(&w->loop, &e) >= 0);
}

static void messages_become_events_in_their_order(void **state)
{
    struct world *w = *state;
    struct child_event event;
    struct child *c;
    AUTO_FD int theirs = add(w, CHILD_SUPERVISOR, &c);

    say(theirs, "{\"is\":\"waiting\",\"tier\":\"preloaded\",\"memoryBytes\":77}");
    say(theirs, "{\"is\":\"running\"}");
    say(theirs, "{\"is\":\"nonsense\"}"); /* of another version: skipped */
    say(theirs, "{}");
    say(theirs, "{\"is\":\"started\"}");
    say(theirs, "{\"is\":\"ended\"}");
    expect_none(w); /* the loop has not told of it */
    dispatch(w);
    assert_true(child_io_next(&w->io, &event));
    assert_int_equal(event.kind, CHILD_READY);
    assert_int_equal(event.tier, ENGINE_TIER_PRELOADED);
    assert_int_equal(event.memory_bytes, 77);
    expect(w, c, CHILD_TOOK_RUN);
    expect(w, c, CHILD_STARTED);
    expect(w, c, CHILD_HAS_ENDED);
    expect_none(w);
    dispatch(w);
    expect_none(w);
}

static void a_message_in_pieces_is_one_event(void **state)
{
    static const char bytes[] = "\0\0\0\x0e{\"is\":\"ended\"}";
    struct world *w = *state;
    struct child *c;
    AUTO_FD int theirs = add(w, CHILD_SUPERVISOR, &c);

    for (size_t i = 0; i < sizeof bytes - 1; i++) {
        dispatch(w);
        expect_none(w);
        assert_int_equal(write(theirs, bytes + i, 1), 1);
    }
    dispatch(w);
    expect(w, c, CHILD_HAS_ENDED);
}

static void an_end_comes_after_what_was_said_and_closes_the_channel(void **state)
{
    struct world *w = *state;
    struct child *c;
    int theirs = add(w, CHILD_SUPERVISOR, &c);

    say(theirs, "{\"is\":\"ended\"}");
    close(theirs);
    dispatch(w);
    expect(w, c, CHILD_HAS_ENDED);
    expect(w, c, CHILD_LEFT);
    assert_null(c->link);
    expect_none(w);
}

static void nonsense_on_a_channel_ends_it(void **state)
{
    struct world *w = *state;
    struct child *c;
    AUTO_FD int theirs = add(w, CHILD_SUPERVISOR, &c);

    assert_int_equal(write(theirs, "\xff\xff\xff\xff{", 5), 5);
    dispatch(w);
    expect(w, c, CHILD_LEFT);
}

static void a_row_may_go_between_two_events(void **state)
{
    struct world *w = *state;
    struct child *children[3];
    struct child_event event;
    int theirs[3], n = 0;

    for (int i = 0; i < 3; i++) {
        theirs[i] = add(w, CHILD_SUPERVISOR, &children[i]);
        close(theirs[i]);
    }
    dispatch(w);
    while (child_io_next(&w->io, &event)) {
        assert_int_equal(event.kind, CHILD_LEFT);
        children_remove(w->children, event.child);
        n++;
    }
    assert_int_equal(n, 3);
}

static void what_has_been_sent_can_be_read_before_the_loop_tells_of_it(void **state)
{
    struct world *w = *state;
    struct child *run, *psandbox;
    struct child_event event;
    AUTO_FD int one = add(w, CHILD_SUPERVISOR, &run);
    AUTO_FD int two = add(w, CHILD_PSANDBOX, &psandbox);

    say(one, "{\"is\":\"ended\"}");
    say(two, "{\"is\":\"ended\"}");
    assert_true(child_io_next_of(&w->io, run, &event));
    assert_int_equal(event.kind, CHILD_HAS_ENDED);
    expect_none(w);
    child_io_poll(&w->io);
    expect(w, psandbox, CHILD_HAS_ENDED);
    expect_none(w);
    assert_false(child_io_next_of(&w->io, run, &event));
}

static void a_connection_is_handed_over_with_its_head(void **state)
{
    struct world *w = *state;
    struct child *c;
    struct err e = ERR_INIT;
    AUTO_FD int theirs = add(w, CHILD_SUPERVISOR, &c);
    AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AUTO_FD int came = -1;
    json_auto_t *head = json_pack("{s:s}", "op", "run");
    const struct handed_call call = {.head = head,
                                     .connection = null,
                                     .image_id = "sha256:1",
                                     .sandbox_dir = "dir",
                                     .queue_ms = 12};

    assert_works(child_io_hand(c, &call, &e), e);
    json_auto_t *message = wire_recv(theirs, &came, deadline_in_ms(2000), &e);
    assert_non_null(message);
    assert_string_equal(json_get_string(message, "do"), "hand");
    assert_int_equal(json_get_integer(message, "queueMs", 0), 12);
    assert_string_equal(json_get_string(message, "runId"), c->run_id);
    assert_string_equal(json_get_string(message, "imageId"), "sha256:1");
    assert_true(json_equal(json_object_get(message, "head"), head));
    assert_true(came >= 0);
    auto_close_fd(&theirs);
    assert_int_equal(child_io_hand(c, &call, &e), -1);
    child_io_release(&w->io, c);
    assert_int_equal(c->state, CHILD_ENDED);
    assert_int_equal(child_io_tell(c, "preload", &e), -1);
}

/* ---- failures ---- */

static void must_not_run(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    _exit(99);
}

static void on_message(void *owner, void *item, uint32_t events)
{
    (void)owner;
    (void)item;
    (void)events;
}

/* A loop that can watch nothing any more: nothing was forked, nothing is left open. */
static void a_failed_watch_leaves_no_process_and_no_descriptor(void **state)
{
    struct world *w = *state;
    struct sandbox_root root = {.fd = -1};
    struct runners runners = {0};
    struct engine_runner runner = {
        .language = (char *)"bash", .image = (char *)"n", .image_id = (char *)"i"};
    struct spawner spawner = {
        .root = &root, .runners = &runners, .children = w->children, .io = &w->io};
    struct helper helper = HELPER_INIT(100);
    const struct helper_spawn help = {
        .role = "test", .main = must_not_run, .on_message = on_message};
    const struct supervisor_start run = {.runner = &runner};
    const struct supervisor_start sandbox = {.call = {.sandbox_dir = "d", .connection = -1}};
    struct err e = ERR_INIT;

    loop_clear(&w->loop);
    assert_int_equal(helper_start(&helper, &spawner, &help, &e), -1);
    assert_contains(e.text, "epoll_ctl");
    assert_int_equal(helper.pid, 0);
    assert_int_equal(helper.fd, -1);
    assert_null(spawn_supervisor(&spawner, CHILD_SUPERVISOR, &run, &e));
    assert_null(spawn_supervisor(&spawner, CHILD_PSANDBOX, &sandbox, &e));
    assert_int_equal(children_count(w->children, NULL, NULL), 0);
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(unit_count_fds(), w->fds);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
    CASE(messages_become_events_in_their_order),
    CASE(a_message_in_pieces_is_one_event),
    CASE(an_end_comes_after_what_was_said_and_closes_the_channel),
    CASE(nonsense_on_a_channel_ends_it),
    CASE(a_row_may_go_between_two_events),
    CASE(what_has_been_sent_can_be_read_before_the_loop_tells_of_it),
    CASE(a_connection_is_handed_over_with_its_head),
    CASE(a_failed_watch_leaves_no_process_and_no_descriptor),
};
UNIT_TESTS(tests)
