/* Connections that wait for a run: live output, several polls, slow ones, many, those of another
 * tenant; and a main process that dies meanwhile. */
#include "config.h"

#include "common/base/sock.h"
#include "common/jobs/job.h"
#include "common/supervisor/waiters.h"
#include "tests/unit/supervisor/supervisor_world.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define WORLD(w)                                                                                   \
    struct world w;                                                                                \
    world_open(&(w), *state)

static json_t *poll_for(int64_t wait_ms, int64_t since)
{
    return json_pack("{s:I, s:I}", "waitMs", (json_int_t)wait_ms, "sinceByte", (json_int_t)since);
}

/* Live messages up to the last one: texts of that stream one after another; *out_skipped. */
static json_t *follow(int fd, const char *stream, struct buf *out, json_int_t *out_skipped)
{
    for (;;) {
        json_auto_t *message = world_hear(fd);
        assert_non_null(message);
        const json_t *live = json_object_get(message, "live");
        if (!live) {
            close(fd);
            return json_incref(json_object_get(message, "result")); /* the message goes */
        }
        const json_t *text = json_object_get(live, stream);
        buf_add(out, json_string_value(text), json_string_length(text));
        *out_skipped += json_get_integer(live, "skipped", 0);
    }
}

static void output_is_told_line_by_line(void **state)
{
    static const char code[] = "out one\nerr two\nsleep 300\nraw three\nsleep 500\nout four";
    WORLD(w);
    int client = world_cold(&w, code, json_pack("{s:b}", "live", 1));
    static const char *const parts[][2] = {
        {"stdout", "one\n"}, {"stderr", "two\n"}, {"stdout", "three"}, {"stdout", "four\n"}};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        json_auto_t *message = world_hear(client);
        const json_t *live = json_object_get(message, "live");
        world_expect_text(live, parts[i][0], parts[i][1]);
    }
    json_auto_t *result = world_result(client, "ok");
    world_expect_text(result, "output", "one\ntwo\nthreefour\n");
    world_expect_end(&w, WORLD_LONG);
}

static void output_of_any_bytes_is_told_as_valid_text(void **state)
{
    WORLD(w);
    AUTO_BUF struct buf text = BUF_INIT(4096);
    json_int_t skipped = 0;
    int client = world_cold(&w, "bytes 61ff00621b5b310a\nbytes e2\nsleep 400\nbytes 82ac0a",
                            json_pack("{s:b}", "live", 1));
    json_auto_t *result = follow(client, "stdout", &text, &skipped);
    static const char expected[] = "a\xEF\xBF\xBD\0b\033[1\n\xE2\x82\xAC\n";

    assert_int_equal(text.len, sizeof expected - 1);
    assert_memory_equal(text.data, expected, text.len);
    world_expect_text(result, "status", "ok");
    world_expect_end(&w, WORLD_LONG);
}

static void who_is_far_behind_is_told_how_much_it_missed(void **state)
{
    WORLD(w);
    AUTO_BUF struct buf text = BUF_INIT(64 * 1024 * 1024);
    json_int_t skipped = 0;
    w.tells_leaks = true;
    int client = world_cold(&w, "flood 4096\nout the end", json_pack("{s:b}", "live", 1));
    json_auto_t *result = follow(client, "stdout", &text, &skipped);

    world_expect_text(result, "status", "ok");
    assert_int_equal((json_int_t)text.len + skipped, 4096 * 1024 + 8);
    assert_true(skipped > 0);
    world_expect_end(&w, WORLD_LONG);
}

static void polls_get_what_is_new_for_them(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "out first\nawait\nout second\nawait", NULL);
    world_expect_is(&w, "running", NULL);
    json_auto_t *a = world_result(world_hand(&w, "get_run", poll_for(WORLD_LONG, 0)), "running");
    world_expect_text(a, "newOutput", "first\n");
    assert_int_equal(json_get_integer(a, "nextByte", -1), 6);
    int at_six = world_hand(&w, "get_run", poll_for(WORLD_LONG, 6));
    int at_two = world_hand(&w, "get_run", poll_for(WORLD_LONG, 2));
    int at_end = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    int beyond = world_hand(&w, "get_run", poll_for(WORLD_LONG, 999));
    int live_beyond = world_hand(
        &w, "get_run",
        json_pack("{s:i, s:i, s:b}", "waitMs", WORLD_LONG, "sinceByte", 999, "live", 1));
    json_decref(world_result(world_hand(&w, "get_run", NULL), "running")); /* behind the others */
    fake_container->goes++;
    json_auto_t *b = world_result(at_two, "running");
    world_expect_text(b, "newOutput", "rst\n");
    json_auto_t *c = world_result(at_six, "running");
    world_expect_text(c, "newOutput", "second\n");
    fake_container->goes++;
    json_auto_t *d = world_result(at_end, "ok");
    world_expect_text(d, "stdout", "first\nsecond\n");
    assert_null(json_object_get(d, "newOutput"));
    json_auto_t *f = world_result(beyond, "ok");
    world_expect_text(f, "newOutput", "");
    assert_int_equal(json_get_integer(f, "nextByte", -1), 13);
    AUTO_BUF struct buf text = BUF_INIT(4096);
    json_int_t skipped = 0;
    json_decref(follow(live_beyond, "stdout", &text, &skipped));
    assert_string_equal(buf_str(&text), "second\n"); /* from now on */
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
}

static void a_poll_that_does_not_wait_is_answered_at_once(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "sleep 60000", NULL);
    world_expect_is(&w, "running", NULL);
    json_decref(world_result(world_hand(&w, "get_run", NULL), "running"));
    json_auto_t *r = world_result(world_hand(&w, "get_run", poll_for(0, 5)), "running");
    world_expect_text(r, "newOutput", "");
    assert_int_equal(json_get_integer(r, "nextByte", -1), 0);
    world_say_cancel(client);
    json_decref(world_result(client, "cancelled"));
    world_expect_end(&w, WORLD_LONG);
}

static void a_waiter_that_does_not_read_delays_no_other(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "flood 20000\nawait\nout done", NULL);
    world_expect_is(&w, "running", NULL);
    int deaf = world_hand(&w, "get_run", json_pack("{s:i, s:b}", "waitMs", WORLD_LONG, "live", 1));
    fake_container->goes++;
    json_decref(world_result(client, "ok")); /* the deaf one has taken nothing */
    world_expect_is(&w, "ended", NULL);
    close(deaf);
    world_expect_end(&w, WORLD_LONG);
}

static void a_slow_waiter_goes_on_where_it_stopped(void **state)
{
    WORLD(w);
    json_int_t got = 0;
    int client = world_cold(&w, "flood 200\nsleep 60000", NULL);
    world_expect_is(&w, "running", NULL);
    int slow = world_hand(&w, "get_run", json_pack("{s:i, s:b}", "waitMs", 60000, "live", 1));
    usleep(500 * 1000); /* its first batch fills what the socket holds */
    while (got < 200 * 1024) {
        json_auto_t *message = world_hear(slow);
        const json_t *live = json_object_get(message, "live");
        got += (json_int_t)json_string_length(json_object_get(live, "stdout")) +
               json_get_integer(live, "skipped", 0);
        assert_int_equal(json_get_integer(message, "nextByte", -1), got);
    }
    world_say_cancel(client);
    json_decref(world_result(client, "cancelled"));
    json_decref(world_result(slow, "cancelled"));
    world_expect_end(&w, WORLD_LONG);
}

static void who_never_reads_is_dropped(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "flood 2000", NULL);
    int deaf = world_hand(&w, "get_run", json_pack("{s:i, s:b}", "waitMs", WORLD_LONG, "live", 1));
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, 60000);
    close(deaf);
}

/* They are told apart from those of a message before by coming with its first byte. */
static void descriptors_go_with_an_answer_that_has_nothing_before_it(void **state)
{
    static const int little = 4096;
    AUTO_FREE char *long_text = mem_alloc(1 << 20);
    struct loop loop = LOOP_INIT;
    struct err e = ERR_INIT;

    (void)state;
    assert_works(loop_init(&loop, NULL, &e), e);
    memset(long_text, 'x', (1 << 20) - 1);
    for (int behind = 0; behind <= 1; behind++) {
        struct waiters rs;
        int pair[2];
        AUTO_FDS struct fds given = FDS_INIT(1), came = FDS_INIT(1);
        json_auto_t *before = json_pack("{s:s}", "live", long_text);
        json_auto_t *last = json_pack("{s:{}}", "result");

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
        waiters_init(&rs, &loop, NULL);
        fds_add(&given, open("/dev/null", O_RDONLY | O_CLOEXEC));
        struct waiter *r = waiters_add(&rs, pair[1], WAITER_CALLER);
        if (behind)
            waiter_send(r, before);
        waiter_answer_with_fds(r, last, &given);
        assert_int_equal(given.n, behind);
        if (!behind) {
            json_auto_t *got = world_hear_with_fds(pair[0], &came);
            assert_non_null(got);
            assert_int_equal(came.n, 1);
        }
        waiters_clear(&rs);
        close(pair[0]);
    }
    loop_clear(&loop);
}

static void too_many_waiters_are_told_to_come_again(void **state)
{
    int polls[32];
    WORLD(w);
    int client = world_cold(&w, "sleep 60000", NULL);
    world_expect_is(&w, "running", NULL);
    for (int i = 0; i < 31; i++) /* the caller is one of them */
        polls[i] = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    int more = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    world_expect_error(more, ERR_BUSY, "too many");
    world_say_cancel(client);
    for (int i = 0; i < 31; i++)
        json_decref(world_result(polls[i], "cancelled"));
    json_decref(world_result(client, "cancelled"));
    world_expect_end(&w, WORLD_LONG);
}

static void a_waiter_that_sends_nonsense_is_dropped(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "await\nout x", NULL);
    world_expect_is(&w, "running", NULL);
    int odd = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    assert_int_equal(write(odd, "\xFF\xFF\xFF\xFF", 4), 4);
    assert_null(world_hear(odd));
    close(odd);
    fake_container->goes++;
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
}

static void another_tenant_learns_nothing(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "await", NULL);
    world_expect_is(&w, "running", NULL);
    for (int i = 0; i < 2; i++) {
        int other = world_hand(&w, i ? "cancel_run" : "get_run",
                               json_pack("{s:s}", "tenant", "bob"));
        world_expect_error(other, ERR_NOT_FOUND, WIRE_NO_SUCH_RUN);
    }
    fake_container->goes++;
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
}

static void a_poll_that_meets_the_end_is_answered(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "out x", NULL);
    world_expect_is(&w, "running", NULL);
    world_expect_is(&w, "ended", NULL);
    /* The main process has not read the end yet: the supervisor finds this in the channel while it
     * cleans up, or the channel refuses it. */
    int pair[2];
    struct err e = ERR_INIT;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    json_auto_t *message = json_pack("{s:s, s:{s:s, s:s, s:s}}", "do", "hand", "head", "op",
                                     "get_run", "tenant", "ann", "runId", WORLD_RUN_ID);
    bool taken = wire_post(w.channel, message, pair[1], &e) == 0;
    close(pair[1]);
    if (taken)
        json_decref(world_result(pair[0], "ok"));
    else
        close(pair[0]);
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
}

/* ---- without a main process ---- */

struct broker_address {
    char dir[PATH_MAX], path[PATH_MAX + 8];
    int listener;
};

static void address_open(struct broker_address *h)
{
    struct err e = ERR_INIT;

    unit_make_folder(h->dir);
    snprintf(h->path, sizeof h->path, "%s/broker", h->dir);
    h->listener = sock_listen(h->path, NULL, &e);
    assert_true(h->listener >= 0);
}

static int address_accept(struct broker_address *h)
{
    struct deadline end = deadline_in_ms(WORLD_LONG);
    int fd;

    while ((fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC)) < 0 && !deadline_passed(end))
        usleep(5000);
    assert_true(fd >= 0);
    return fd;
}

static void address_close(struct broker_address *h)
{
    auto_close_fd(&h->listener);
    unlink(h->path);
    rmdir(h->dir);
}

static void the_next_main_process_is_offered_the_run(void **state)
{
    static const char lasts[] = "out one\nsleep 60000";
    WORLD(w);
    struct broker_address h;
    struct err e = ERR_INIT;
    json_t *head;
    int theirs;
    address_open(&h);
    int ask = world_ask(lasts, NULL, &head, &theirs);
    close(ask);
    close(theirs);
    w.config.path = h.path;
    w.client = sock_connect_unix(h.path, &e);
    w.start.call.connection = address_accept(&h);
    w.head = head;
    world_send_body(w.client, lasts);
    world_go(&w);
    world_expect_is(&w, "running", NULL);
    for (int deaths = 0; deaths < 2; deaths++) {
        auto_close_fd(&w.channel); /* the main process dies, */
        w.channel = address_accept(&h);
        json_auto_t *adopt = world_hear(w.channel);
        world_expect_text(adopt, "op", "adopt");
        world_expect_text(adopt, "runId", WORLD_RUN_ID);
        world_expect_text(adopt, "tenant", "ann");
        world_expect_text(adopt, "conversationId", "chat");
        world_expect_text(adopt, "language", "python");
        world_expect_text(adopt, "call", "run");
    }
    int poll = world_hand(&w, "get_run", json_pack("{s:i}", "waitMs", WORLD_LONG));
    world_say_cancel(w.client);
    json_auto_t *result = world_result(poll, "cancelled");
    world_expect_text(result, "stdout", "one\n");
    json_decref(world_result(w.client, "cancelled"));
    world_expect_is(&w, "ended", NULL);
    world_expect_end(&w, WORLD_LONG);
    address_close(&h);
}

static void without_any_main_process_the_caller_is_answered(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "await\nout x", NULL);
    world_expect_is(&w, "running", NULL);
    auto_close_fd(&w.channel);
    fake_container->goes++;
    json_decref(world_result(client, "ok"));
    world_expect_end(&w, WORLD_LONG);
}

/* ---- when no supervisor answers ---- */

static json_t *look(struct world *w, const char *tenant, const char *run_id, int64_t since)
{
    struct err e = ERR_INIT;
    json_auto_t *head = json_pack("{s:s, s:s}", "tenant", tenant, "runId", run_id);

    if (since >= 0)
        json_object_set_new(head, "sinceByte", json_integer(since));
    const struct job_world world = {.root = &w->f->root};
    struct job job = {.world = &world, .request = head, .caller_fd = -1, .in_fd = -1};
    json_t *result = job_get_run(&job, &e);
    if (!result)
        assert_string_equal(e.text, WIRE_NO_SUCH_RUN);
    return result;
}

static void a_kept_run_is_looked_up(void **state)
{
    WORLD(w);
    int client = world_cold(&w, "out one\nout two", json_pack("{s:b}", "background", 1));
    json_decref(world_result(client, "running"));
    world_expect_end(&w, WORLD_LONG);
    json_auto_t *whole = look(&w, "ann", WORLD_RUN_ID, -1);
    world_expect_text(whole, "status", "ok");
    assert_null(json_object_get(whole, "newOutput"));
    assert_true(json_get_integer(whole, "expiresAt", 0) > clock_unix_s());
    json_auto_t *part = look(&w, "ann", WORLD_RUN_ID, 4);
    world_expect_text(part, "newOutput", "two\n");
    json_auto_t *beyond = look(&w, "ann", WORLD_RUN_ID, 1 << 30);
    world_expect_text(beyond, "newOutput", "");
    assert_int_equal(json_get_integer(beyond, "nextByte", -1), 8);
    assert_null(look(&w, "bob", WORLD_RUN_ID, -1));
    assert_null(look(&w, "ann", "0123456789abcdef01234568", -1));
    assert_null(look(&w, "ann", "../../etc", -1));
}

static void a_supervisor_that_was_killed_leaves_a_lost_run(void **state)
{
    WORLD(w);
    int status;
    struct err e = ERR_INIT;
    int client = world_cold(&w, "sleep 60000", json_pack("{s:b}", "background", 1));
    json_decref(world_result(client, "running"));
    json_auto_t *meanwhile = look(&w, "ann", WORLD_RUN_ID, -1);
    world_expect_text(meanwhile, "status", "running");
    kill(w.pid, SIGKILL);
    assert_int_equal(waitpid(w.pid, &status, 0), w.pid);
    json_auto_t *lost = look(&w, "ann", WORLD_RUN_ID, 0);
    world_expect_text(lost, "status", "lost");
    assert_true(strlen(json_get_string(lost, "reason")) > 0);
    world_expect_text(lost, "newOutput", "");
    auto_close_fd(&w.channel);

    struct children *none = children_new();
    json_auto_t *head = json_pack("{s:s}", "tenant", "ann");
    const struct job_world world = {.root = &w.f->root, .children = none};
    struct job job = {.world = &world, .request = head, .caller_fd = -1, .in_fd = -1};
    json_auto_t *list = job_list_runs(&job, &e);
    const json_t *rows = json_object_get(list, "runs");
    assert_int_equal(json_array_size(rows), 1);
    world_expect_text(json_array_get(rows, 0), "status", "lost");
    children_free(none);
}

static void runs_that_go_on_are_listed_once_and_newest_first(void **state)
{
    WORLD(w);
    struct err e = ERR_INIT;
    static const char *const ids[] = {"111111111111111111111111", "222222222222222222222222",
                                      "333333333333333333333333"};
    struct children *books = children_new();
    struct run_record r = {.tenant = (char *)(uintptr_t) "ann",
                           .conversation = (char *)(uintptr_t) "chat",
                           .language = (char *)(uintptr_t) "python",
                           .created = clock_unix_s() - 100,
                           .deadline = clock_unix_s() + 100,
                           .ttl_s = 3600};

    assert_works(run_record_begin(&w.f->root, ids[0], &r, &e), e); /* kept, and in the books */
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        struct child *c = children_add(books, CHILD_SUPERVISOR);
        memcpy(c->run_id, ids[i], sizeof c->run_id);
        child_set_owner(c, i == 2 ? "bob" : "ann", "chat");
        c->claimed = true;
        child_set_state(c, CHILD_RUNNING);
    }
    json_auto_t *head = json_pack("{s:s, s:s}", "tenant", "ann", "conversationId", "chat");
    const struct job_world world = {.root = &w.f->root, .children = books};
    struct job job = {.world = &world, .request = head, .caller_fd = -1, .in_fd = -1};
    json_auto_t *list = job_list_runs(&job, &e);
    const json_t *rows = json_object_get(list, "runs");
    assert_int_equal(json_array_size(rows), 2);
    world_expect_text(json_array_get(rows, 0), "runId", ids[1]);
    world_expect_text(json_array_get(rows, 0), "status", "running");
    world_expect_text(json_array_get(rows, 1), "runId", ids[0]);
    children_free(books);
}

/* Takes the lock of a run and ends it a moment later. */
static pid_t end_late(const struct sandbox_root *root, const struct run_record *r)
{
    struct err e = ERR_INIT;
    struct output *output = output_new(0, 1);
    json_auto_t *result = json_pack("{s:s}", "status", "ok");
    AUTO_FD int lock = run_lock_take(root->fd, WORLD_RUN_ID, &e);
    pid_t pid = fork();

    if (pid == 0) {
        usleep(200000);
        _exit(run_record_end(root, WORLD_RUN_ID, r, result, output, &e) < 0);
    }
    assert_true(lock >= 0 && pid > 0);
    output_free(output);
    return pid;
}

static void a_run_that_has_answered_is_listed_with_its_end(void **state)
{
    WORLD(w);
    int status;
    struct err e = ERR_INIT;
    struct children *books = children_new();
    struct child *c = children_add(books, CHILD_SUPERVISOR);
    const struct run_record r = {.tenant = (char *)(uintptr_t) "ann",
                                 .conversation = (char *)(uintptr_t) "chat",
                                 .language = (char *)(uintptr_t) "python",
                                 .created = clock_unix_s(),
                                 .deadline = clock_unix_s() + 100,
                                 .ttl_s = 3600};

    memcpy(c->run_id, WORLD_RUN_ID, sizeof c->run_id);
    child_set_owner(c, "ann", "chat");
    c->claimed = true;
    child_set_state(c, CHILD_ENDED);
    assert_works(run_record_begin(&w.f->root, WORLD_RUN_ID, &r, &e), e);
    pid_t pid = end_late(&w.f->root, &r);
    json_auto_t *head = json_pack("{s:s}", "tenant", "ann");
    const struct job_world world = {.root = &w.f->root, .children = books};
    struct job job = {.world = &world, .request = head, .caller_fd = -1, .in_fd = -1};
    json_auto_t *list = job_list_runs(&job, &e);
    world_expect_text(json_array_get(json_object_get(list, "runs"), 0), "status", "ok");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    children_free(books);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    with_fixture(output_is_told_line_by_line),
    with_fixture(output_of_any_bytes_is_told_as_valid_text),
    with_fixture(who_is_far_behind_is_told_how_much_it_missed),
    with_fixture(polls_get_what_is_new_for_them),
    with_fixture(a_poll_that_does_not_wait_is_answered_at_once),
    with_fixture(a_waiter_that_does_not_read_delays_no_other),
    with_fixture(a_slow_waiter_goes_on_where_it_stopped),
    with_fixture(who_never_reads_is_dropped),
    with_fixture(descriptors_go_with_an_answer_that_has_nothing_before_it),
    with_fixture(too_many_waiters_are_told_to_come_again),
    with_fixture(a_waiter_that_sends_nonsense_is_dropped),
    with_fixture(another_tenant_learns_nothing),
    with_fixture(a_poll_that_meets_the_end_is_answered),
    with_fixture(the_next_main_process_is_offered_the_run),
    with_fixture(without_any_main_process_the_caller_is_answered),
    with_fixture(a_kept_run_is_looked_up),
    with_fixture(a_supervisor_that_was_killed_leaves_a_lost_run),
    with_fixture(runs_that_go_on_are_listed_once_and_newest_first),
    with_fixture(a_run_that_has_answered_is_listed_with_its_end),
};
UNIT_TESTS(tests)
