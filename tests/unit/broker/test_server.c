/* The broker's main process: what it takes in, to whom it gives it, and what it survives. */
#include "config.h"

#include "tests/unit/broker/broker_world.h"

#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/protocol/client_runs.h"
#include "common/sandbox/state/state.h"

#include <dirent.h>
#include <errno.h>

static const struct run_options plain = {0};

static int setup(void **state)
{
    static struct broker_world w;
    bw_open(&w);
    *state = &w;
    return 0;
}

static void expect_text(const json_t *object, const char *name, const char *text)
{
    assert_non_null(object);
    assert_string_equal(json_get_string(object, name), text);
}

/* ---- runs ---- */

static void a_run_is_answered(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    bw_start_broker(w);
    struct run_request r = bw_request("t", "c", "out hello");
    json_auto_t *result = broker_run(&w->client, &r, NULL, &e);
    expect_text(result, "stdout", "hello");
    assert_false(json_get_bool(result, "prestarted", 1));
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

static void a_worker_that_may_not_connect_hands_a_connection_over(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;

    bw_start_broker(w);
    client_connect_over(w->conns[OP_FROM_CALLS][1]);
    struct run_request r = bw_request("t", "c", "out hello");
    json_auto_t *result = broker_run(&w->client, &r, NULL, &e);
    client_connect_over(-1);
    expect_text(result, "stdout", "hello");
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

/* A worker that is taken over may hand over anything. */
static void what_is_no_connection_is_refused(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    int ends[2];

    bw_start_broker(w);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    AUTO_FD int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO_FD int file = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int *fd = (int[]){ends[0], ends[1], tcp, file, w->listen_fd, -1};; fd++) {
        assert_works(sock_send_message(w->conns[OP_FROM_CALLS][1], "x", 1, *fd, &e), e);
        if (*fd < 0)
            break;
    }
    client_connect_over(w->conns[OP_FROM_CALLS][1]);
    for (int i = 0; i < 600; i++) /* more than the pair keeps */
        assert_works(broker_ping(&w->client, &e), e);
    client_connect_over(-1);
    assert_works(broker_ping(&w->client, &e), e);
    close(ends[0]);
    close(ends[1]);
    bw_close(w);
}

static void what_cannot_be_run_is_told_at_once(void **state)
{
    struct broker_world *w = *state;
    struct err e;
    bw_start_broker(w);
    struct run_request r = bw_request("t", "c", "out x");
    r.language = "cobol";
    e = ERR_INIT;
    assert_null(broker_run(&w->client, &r, NULL, &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_contains(e.text, "bash, python");
    r = bw_request("t", "bad\nname", "out x");
    assert_null(broker_run(&w->client, &r, NULL, &e));
    assert_int_equal(e.kind, ERR_INVALID);
    bw_close(w);
}

static void a_body_larger_than_any_buffer_arrives(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    size_t len = 3u * 1024 * 1024;
    AUTO_FREE char *code = mem_alloc(len + 1);
    memset(code, 'x', len);
    memcpy(code, "out ", 4);
    bw_start_broker(w);
    struct run_request r = bw_request("t", "c", code);
    json_auto_t *result = broker_run(&w->client, &r, NULL, &e);
    assert_non_null(result);
    assert_int_equal(json_string_length(json_object_get(result, "stdout")), len - 4);
    bw_close(w);
}

static void runs_wait_their_turn_and_the_rest_is_busy(void **state)
{
    struct broker_world *w = *state;
    int fds[7];
    w->config.limits.max_runs = 2;
    w->config.limits.queue = 3;
    bw_start_broker(w);
    for (int i = 0; i < 6; i++) {
        fds[i] = bw_send_run(w, "t", "c", i == 0 ? "hold 0" : i == 1 ? "hold 1" : "out x", plain);
        if (i < 2)
            bw_wait_for(w, "running", i + 1);
        else if (i < 5)
            bw_wait_for(w, "queued", i - 1);
    }
    for (int i = 2; i < 5; i++) {
        json_auto_t *word = bw_hear(fds[i]);
        assert_int_equal(json_get_integer(json_object_get(word, "queued"), "position", 0), i - 1);
    }
    json_auto_t *busy = bw_hear(fds[5]);
    const json_t *error = json_object_get(busy, "error");
    expect_text(error, "kind", "busy");
    assert_true(json_get_integer(error, "retryAfterMs", 0) > 0);
    assert_int_equal(json_get_integer(error, "position", 0), 3);
    close(fds[5]);
    poll(NULL, 0, 120); /* they have waited longer than 100 ms */
    bw_let_go(w, "0");
    bw_let_go(w, "1");
    for (int i = 0; i < 5; i++) {
        json_auto_t *result = bw_result(fds[i]);
        expect_text(result, "status", "ok");
        assert_true(json_get_integer(result, "queueMs", -1) >= (i < 2 ? 0 : 100));
    }
    bw_close(w);
}

static void a_caller_that_leaves_the_queue_is_forgotten_unless_it_detached(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.max_runs = 1;
    bw_start_broker(w);
    int first = bw_send_run(w, "t", "c", "hold first", plain);
    bw_wait_for(w, "running", 1);
    int leaves = bw_send_run(w, "t", "leaves", "sleep 10000", plain);
    int detached = bw_send_run(w, "t", "detached", "out x", (struct run_options){.detach = true});
    bw_wait_for(w, "queued", 2);
    close(leaves);
    close(detached);
    bw_wait_for(w, "queued", 1);
    bw_let_go(w, "first");
    json_auto_t *result = bw_result(first);
    expect_text(result, "status", "ok");
    bw_wait_for(w, "queued", 0);
    bw_wait_for(w, "running", 0);
    json_auto_t *status = bw_status(w);
    assert_int_equal(json_get_integer(status, "coldRuns", 0), 2);
    bw_close(w);
}

static void patience_in_the_line_ends_with_busy(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.max_runs = 1;
    bw_start_broker(w);
    int first = bw_send_run(w, "t", "c", "hold first", plain);
    bw_wait_for(w, "running", 1);
    int second = bw_send_run(w, "t", "c", "out x", (struct run_options){.wait_ms = 200});
    json_auto_t *word = bw_hear(second);
    assert_non_null(json_object_get(word, "queued"));
    bw_expect_error(second, ERR_BUSY, "try again");
    bw_wait_for(w, "queued", 0);
    bw_let_go(w, "first");
    json_auto_t *result = bw_result(first);
    expect_text(result, "status", "ok");
    bw_close(w);
}

/* TERM has been sent before: URG finds a broker that waits for its runs. */
static void an_end_that_does_not_wait_ends_what_runs_and_refuses_what_waits(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.max_runs = 1;
    bw_start_broker(w);
    int runs = bw_send_run(w, "t", "c", "sleep 60000", plain);
    bw_wait_for(w, "running", 1);
    int waits = bw_send_run(w, "t", "c", "sleep 60000", plain);
    bw_wait_for(w, "queued", 1);
    kill(w->pid, SIGTERM);
    struct pollfd p = {.fd = runs, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 200), 0);
    kill(w->pid, SIGURG);
    json_auto_t *result = bw_result(runs);
    expect_text(result, "status", "cancelled");
    json_auto_t *word = bw_hear(waits);
    assert_non_null(json_object_get(word, "queued"));
    bw_expect_error(waits, ERR_BUSY, "the server is stopping");
    bw_close(w);
}

/* ---- waiting containers ---- */

/* On a slow machine calls come faster than containers start, so that more are kept for a while. */
static void wait_for_pool(struct broker_world *w, size_t least)
{
    struct deadline d = deadline_in_ms(20000);
    while (bw_waiting(w) < least) {
        assert_false(deadline_passed(d));
        poll(NULL, 0, 10);
    }
}

static void use_pool(struct broker_world *w, size_t n)
{
    w->config.pool.n = 1;
    w->config.pool.items[0] = (struct pool_language){.language = "bash", .n = n};
}

static void runs_that_come_at_once_get_waiting_containers_of_their_own(void **state)
{
    struct broker_world *w = *state;
    int fds[2];
    json_int_t pids[2];
    use_pool(w, 2);
    bw_start_broker(w);
    wait_for_pool(w, 2);
    for (int i = 0; i < 2; i++)
        fds[i] = bw_send_run(w, "t", i ? "one" : "two", "sleep 100", plain);
    for (int i = 0; i < 2; i++) {
        json_auto_t *result = bw_result(fds[i]);
        assert_true(json_get_bool(result, "prestarted", 0));
        pids[i] = json_get_integer(result, "pid", 0);
    }
    assert_int_not_equal(pids[0], pids[1]);
    wait_for_pool(w, 2);
    bw_close(w);
}

static void a_waiting_supervisor_that_is_killed_harms_no_run(void **state)
{
    struct broker_world *w = *state;
    use_pool(w, 1);
    bw_start_broker(w);
    wait_for_pool(w, 1);
    /* It dies with the run in its hands, unread: another one gets it. */
    AUTO_FREE char *marker = mem_printf("%s/crash-once", w->root);
    close(open(marker, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out again", plain));
    expect_text(result, "stdout", "again");
    assert_int_equal(access(marker, F_OK), -1);
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

static void a_supervisor_that_dies_with_its_run_ends_the_connection(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    bw_start_broker(w);
    struct run_request r = bw_request("t", "c", "crash");
    assert_null(broker_run(&w->client, &r, NULL, &e));
    assert_int_equal(e.kind, ERR_LOST);
    bw_wait_for(w, "running", 0);
    json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out next", plain));
    expect_text(result, "stdout", "next");
    bw_close(w);
}

/* ---- runs that go on ---- */

/* Whose run id a test has no other way to know: the pool's list has it before the claim. */
static char *waiting_run_id(struct broker_world *w)
{
    json_auto_t *status = bw_status(w);
    const json_t *first = json_array_get(
        json_object_get(json_object_get(status, "pool"), "waiting"), 0);
    const char *id = json_get_string(first, "runId");
    assert_non_null(id);
    return mem_strdup(id);
}

static int send_head(struct broker_world *w, json_t *take_head)
{
    struct err e = ERR_INIT;
    json_auto_t *head = take_head;
    int fd = sock_connect_unix(w->socket, &e);
    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, -1, &e), e);
    return fd;
}

static json_t *about_run(const char *op, const char *tenant, const char *run_id)
{
    return json_pack("{s:s, s:s, s:s}", "op", op, "tenant", tenant, "runId", run_id);
}

static void a_look_is_handed_to_the_runs_supervisor(void **state)
{
    struct broker_world *w = *state;
    use_pool(w, 1);
    bw_start_broker(w);
    wait_for_pool(w, 1);
    AUTO_FREE char *id = waiting_run_id(w);
    int run = bw_send_run(w, "t", "c", "hold run", plain);
    bw_wait_for(w, "running", 1);
    int look = send_head(w, about_run("get_run", "t", id));
    bw_wait_for(w, "running", 1); /* it has been handed over */
    bw_let_go(w, "run");
    json_auto_t *seen = bw_result(look);
    expect_text(seen, "runId", id);
    json_auto_t *result = bw_result(run);
    assert_true(json_equal(seen, result));
    bw_close(w);
}

static void a_run_is_cancelled_by_its_tenant_only(void **state)
{
    struct broker_world *w = *state;
    use_pool(w, 1);
    bw_start_broker(w);
    wait_for_pool(w, 1);
    AUTO_FREE char *id = waiting_run_id(w);
    int run = bw_send_run(w, "t", "c", "sleep 15000", plain);
    bw_wait_for(w, "running", 1);
    bw_expect_error(send_head(w, about_run("cancel_run", "other", id)), ERR_NOT_FOUND, "runId");
    json_auto_t *seen = bw_result(send_head(w, about_run("cancel_run", "t", id)));
    expect_text(seen, "status", "cancelled");
    json_auto_t *result = bw_result(run);
    expect_text(result, "status", "cancelled");
    bw_close(w);
}

static void runs_survive_the_main_process_and_come_back_to_the_next(void **state)
{
    struct broker_world *w = *state;
    w->config.limits.max_runs = 2;
    use_pool(w, 1);
    bw_start_broker(w);
    wait_for_pool(w, 1);
    AUTO_FREE char *id = waiting_run_id(w);
    int warm = bw_send_run(w, "t", "c", "hold warm", plain);
    int cold = bw_send_run(w, "t", "d", "hold cold", plain);
    bw_wait_until_held(w, "warm");
    bw_wait_until_held(w, "cold");
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    bw_start_broker(w);
    bw_wait_for(w, "running", 2); /* they have their places, */
    int look = send_head(w, about_run("get_run", "t", id));
    bw_wait_for(w, "running", 2);
    bw_let_go(w, "warm");
    bw_let_go(w, "cold");
    json_auto_t *seen = bw_result(look); /* can be asked, */
    expect_text(seen, "runId", id);
    json_auto_t *one = bw_result(warm); /* and answer */
    json_auto_t *two = bw_result(cold);
    expect_text(one, "status", "ok");
    expect_text(two, "status", "ok");
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

static void a_relieved_main_process_leaves_its_runs_once_nothing_waits(void **state)
{
    struct broker_world *w = *state;

    w->config.limits.max_runs = 1;
    bw_start_broker(w);
    int one = bw_send_run(w, "t", "c", "hold one", plain);
    bw_wait_until_held(w, "one");
    int two = bw_send_run(w, "t", "d", "hold two", plain);
    bw_wait_for(w, "queued", 1);
    kill(w->pid, SIGHUP);
    bw_let_go(w, "one");
    json_auto_t *first = bw_result(one);
    expect_text(first, "status", "ok");
    bw_wait_until_held(w, "two"); /* it had been accepted, so it has begun */
    assert_int_equal(waitpid(w->pid, NULL, 0), w->pid);
    bw_start_broker(w);
    bw_wait_for(w, "running", 1);
    bw_let_go(w, "two");
    json_auto_t *second = bw_result(two);
    expect_text(second, "status", "ok");
    bw_wait_for(w, "running", 0);
    bw_close(w);
}

/* ---- runs in a container that has served one ---- */

static void begin_reuse(struct broker_world *w)
{
    use_pool(w, 1);
    w->config.pool.reuse = true;
    bw_start_broker(w);
    wait_for_pool(w, 1);
}

/* Waits until the container that has served so many runs waits again; the id of its next run. */
static char *wait_for_served(struct broker_world *w, json_int_t runs)
{
    struct deadline d = deadline_in_ms(20000);

    for (;; poll(NULL, 0, 10)) {
        json_auto_t *status = bw_status(w);
        const json_t *list = json_object_get(json_object_get(status, "pool"), "waiting");
        size_t i;
        const json_t *row;

        json_array_foreach(list, i, row)
        {
            if (json_get_integer(row, "runs", -1) == runs &&
                strcmp(json_get_string(row, "tier"), "started") == 0)
                return mem_strdup(json_get_string(row, "runId"));
        }
        assert_false(deadline_passed(d));
    }
}

static json_t *run_of(struct broker_world *w, const char *conversation, const char *code)
{
    return bw_result(bw_send_run(w, "t", conversation, code, plain));
}

static void runs_of_a_conversation_get_the_same_supervisor_and_ids_of_their_own(void **state)
{
    struct broker_world *w = *state;
    begin_reuse(w);
    json_auto_t *first = run_of(w, "c", "out 1");
    AUTO_FREE char *second_id = wait_for_served(w, 1);
    assert_string_not_equal(second_id, json_get_string(first, "runId"));
    json_auto_t *other = run_of(w, "d", "out x");
    assert_int_not_equal(json_get_integer(other, "pid", 0), json_get_integer(first, "pid", 0));
    json_auto_t *second = run_of(w, "c", "out 2");
    assert_int_equal(json_get_integer(second, "pid", 0), json_get_integer(first, "pid", 0));
    expect_text(second, "stdout", "2");
    expect_text(second, "runId", second_id);
    AUTO_FREE char *third_id = wait_for_served(w, 2);
    int run = bw_send_run(w, "t", "c", "sleep 15000", plain);
    bw_wait_for(w, "running", 1);
    bw_expect_error(send_head(w, about_run("cancel_run", "t", second_id)), ERR_NOT_FOUND, "runId");
    json_auto_t *seen = bw_result(send_head(w, about_run("cancel_run", "t", third_id)));
    expect_text(seen, "status", "cancelled");
    json_auto_t *third = bw_result(run);
    expect_text(third, "runId", third_id);
    json_auto_t *status = bw_status(w);
    assert_int_equal(json_get_integer(status, "reusedRuns", -1), 2);
    bw_close(w);
}

static void calls_without_a_pause_wait_for_the_wipe(void **state)
{
    struct broker_world *w = *state;
    begin_reuse(w);
    json_auto_t *first = run_of(w, "c", "out 1");
    for (int i = 0; i < 20; i++) {
        json_auto_t *next = run_of(w, "c", "out 2");
        assert_int_equal(json_get_integer(next, "pid", 0), json_get_integer(first, "pid", 0));
    }
    bw_close(w);
}

static void doubt_is_counted_and_the_next_run_is_another_supervisors(void **state)
{
    struct broker_world *w = *state;
    struct deadline d = deadline_in_ms(20000);
    json_int_t doubted = 0;
    begin_reuse(w);
    json_auto_t *first = run_of(w, "c", "doubt");
    for (; doubted == 0; poll(NULL, 0, 10)) {
        json_auto_t *status = bw_status(w);
        doubted = json_get_integer(json_object_get(status, "pool"), "doubted", -1);
        assert_false(deadline_passed(d));
    }
    assert_int_equal(doubted, 1);
    json_auto_t *next = run_of(w, "c", "out 2");
    assert_int_not_equal(json_get_integer(next, "pid", 0), json_get_integer(first, "pid", 0));
    bw_close(w);
}

static void a_second_run_survives_the_main_process_by_its_own_id(void **state)
{
    struct broker_world *w = *state;
    begin_reuse(w);
    json_auto_t *first = run_of(w, "c", "out 1");
    AUTO_FREE char *id = wait_for_served(w, 1);
    int run = bw_send_run(w, "t", "c", "hold run", plain);
    bw_wait_until_held(w, "run");
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    bw_start_broker(w);
    bw_wait_for(w, "running", 1);
    int look = send_head(w, about_run("get_run", "t", id));
    bw_wait_for(w, "running", 1);
    bw_let_go(w, "run");
    json_auto_t *seen = bw_result(look);
    expect_text(seen, "runId", id);
    json_auto_t *second = bw_result(run);
    expect_text(second, "runId", id);
    assert_int_equal(json_get_integer(second, "pid", 0), json_get_integer(first, "pid", 0));
    bw_wait_for(w, "running", 0);
    json_auto_t *next = run_of(w, "c", "out 3"); /* what it was made of is not known any more */
    assert_int_not_equal(json_get_integer(next, "pid", 0), json_get_integer(first, "pid", 0));
    bw_close(w);
}

/* ---- hostile or clumsy peers ---- */

static size_t count_warnings(const char *words)
{
    char lines[LOG_RECENT][LOG_RECENT_MAX];
    size_t n = log_recent(lines), found = 0;

    for (size_t i = 0; i < n; i++)
        found += strstr(lines[i], words) != NULL;
    return found;
}

static void many_silent_connections_delay_no_call(void **state)
{
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    int silent[300], half[20];
    log_share();
    bw_start_broker(w);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        silent[i] = sock_connect_unix(w->socket, &e);
        assert_true(silent[i] >= 0);
        if (i % 64 == 0) {
            json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out x", plain));
            assert_non_null(result);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(half); i++) {
        half[i] = sock_connect_unix(w->socket, &e);
        assert_int_equal(write(half[i], "\0\0\0\40{\"op\"", 9), 9);
    }
    json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out still", plain));
    expect_text(result, "stdout", "still");
    assert_in_range(count_warnings("a connection to the broker is closed: "), 1, 2);
    log_unshare();
    for (size_t i = 0; i < ARRAY_LEN(silent); i++)
        close(silent[i]);
    for (size_t i = 0; i < ARRAY_LEN(half); i++)
        close(half[i]);
    bw_close(w);
}

static void pending_conns_that_are_none_end_their_connection(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"\0\0\x40\1{", 5},                 /* over the bound */
        {"\xff\xff\xff\xff", 4},            /* far over */
        {"\0\0\0\2[]", 6},                  /* no object */
        {"\0\0\0\5{\"op\"", 9},             /* no JSON */
        {"\0\0\0\2{}", 6},                  /* no operation */
        {"\0\0\0\13{\"op\":\"nix\"}", 15},  /* an unknown one */
        {"\0\0\0\14{\"op\":\"run\"} ", 16}, /* nothing in it */
        {"\0\0\0\15{\"op\":\"adopt\"}", 17},
        {"\0\0\0\17{\"op\":\"get_run\"}", 19},
    };
    struct broker_world *w = *state;
    struct err e = ERR_INIT;
    bw_start_broker(w);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_FD int fd = sock_connect_unix(w->socket, &e);
        assert_int_equal(write(fd, bad[i].bytes, bad[i].len), bad[i].len);
        json_auto_t *message = bw_hear(fd);
        if (message)
            assert_non_null(json_object_get(message, "error"));
    }
    json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out x", plain));
    assert_non_null(result);
    bw_close(w);
}

static void strangers_are_refused(void **state)
{
    struct broker_world *w = *state;
    if (geteuid() != 0) {
        close(w->listen_fd);
        fake_engine_stop(w->engine);
        skip();
    }
    assert_int_equal(chmod(w->folder, 0711), 0);
    assert_int_equal(chmod(w->socket, 0666), 0);
    bw_start_broker(w);
    json_auto_t *result = bw_result(bw_send_run(w, "t", "c", "out x", plain));
    assert_non_null(result);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = ERR_INIT;
        bool answered = true;
        if (setgid(65534) == 0 && setuid(65534) == 0)
            answered = broker_ping(&w->client, &e) == 0;
        _exit(answered);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    bw_close(w);
}

static enum err_kind ask_as(struct broker_world *w, enum op_sender sender, enum broker_op op)
{
    struct err e = ERR_INIT;
    AUTO_FD int fd = sock_connect_over(w->conns[sender][1], &e);
    json_auto_t *head = op_head_new(op, "{s:s, s:s, s:s, s:s}", "tenant", "t", "conversationId",
                                    "c", "runId", "none", "sandboxId", "none");

    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, -1, &e), e);
    json_auto_t *answer = bw_hear(fd);
    const json_t *error = json_object_get(answer, "error");
    return error ? err_kind_parse(json_get_string(error, "kind")) : ERR_NONE;
}

static void each_sender_asks_for_what_is_its_own_alone(void **state)
{
    struct broker_world *w = *state;

    bw_start_broker(w);
    for (enum broker_op op = OP_UNKNOWN + 1; op < OP_COUNT; op++) {
        assert_true(op_may_come_from(op, OP_FROM_OWN));
        for (enum op_sender s = OP_FROM_CALLS; s < OP_SENDERS; s++)
            if (!op_may_come_from(op, s))
                assert_int_equal(ask_as(w, s, op), ERR_DENIED);
    }
    assert_int_equal(ask_as(w, OP_FROM_METRICS, OP_DELETE_CONVERSATION), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_METRICS, OP_GET_RUN), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_METRICS, OP_STATUS), ERR_NONE);
    assert_int_equal(ask_as(w, OP_FROM_HUB, OP_DELETE_CONVERSATION), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_HUB, OP_RUN), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_HUB, OP_GET_RUN), ERR_NOT_FOUND);
    assert_int_equal(ask_as(w, OP_FROM_CALLS, OP_ADOPT), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_CALLS, OP_EXCHANGE_CONVERSATION), ERR_DENIED);
    assert_int_equal(ask_as(w, OP_FROM_CALLS, OP_DELETE_CONVERSATION), ERR_NOT_FOUND);
    bw_close(w);
}

static int count_open(const char *pid)
{
    AUTO_FREE char *folder = mem_printf("/proc/%s/fd", pid);
    AUTO_DIR DIR *dir = opendir(folder);
    int n = -2; /* the dots */
    while (dir && readdir(dir))
        n++;
    return n;
}

/* A child that has just been forked closes what is not its own in its first moments. */
static bool has_few_open(const char *pid)
{
    const int most = 3 + 8; /* standard ones, root, channel, caller, engine */
    struct deadline end = deadline_in_ms(20000);

    while (count_open(pid) > most) {
        if (deadline_passed(end))
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}

static void a_child_holds_no_other_connection(void **state)
{
    struct broker_world *w = *state;
    char text[256] = "";
    bw_start_broker(w);
    int longer = bw_send_run(w, "t", "one", "hold longer", plain);
    bw_wait_until_held(w, "longer");
    AUTO_FREE char *list = mem_printf("/proc/%d/task/%d/children", w->pid, w->pid);
    AUTO_FD int children = open(list, O_RDONLY | O_CLOEXEC);
    assert_true(children >= 0 && read(children, text, sizeof text - 1) > 0);
    for (char *rest = text, *pid; (pid = strsep(&rest, " "));)
        assert_true(has_few_open(pid));
    bw_let_go(w, "longer");
    json_auto_t *result = bw_result(longer);
    assert_non_null(result);
    bw_close(w);
}

/* ---- jobs that last ---- */

/* A conversation of ann with a file that no pipe holds; the link's subject of its archive; heap. */
static char *plant(struct broker_world *w, const char *conversation)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct sandbox_root root;
    struct err e = ERR_INIT;

    assert_works(sandbox_root_open(&root, w->root, "", w->config.file_secret, "", geteuid(),
                                   getegid(), 0, &e),
                 e);
    assert_works(sandbox_open(&root, "ann", conversation, &sb, &e), e);
    assert_works(state_note_use(&sb, "ann", conversation, &e), e);
    AUTO_FD int fd = openat(sb.fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    AUTO_FREE char *place = sandbox_url_path(&sb);
    char *subject = mem_printf("%s/files.tar", place);
    sandbox_root_close(&root);
    return subject;
}

/* Asks for an archive and reads nothing of it; the connection. */
static int pack_slowly(struct broker_world *w, const char *subject, const int pipe_fds[2])
{
    struct err e = ERR_INIT;
    json_auto_t *head = json_pack("{s:s, s:s}", "op", "pack", "subject", subject);
    int fd = sock_connect_unix(w->socket, &e);

    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, pipe_fds[1], &e), e);
    return fd;
}

/* Those of one tenant get its share of archives, whichever conversations they are of; the others'
 * runs and jobs are served. */
#define PACKS 20 /* of one tenant that is alone */

static void slow_readers_of_one_tenant_shut_no_other_out(void **state)
{
    struct broker_world *w = *state;
    int fds[80], pipe_fds[2];
    size_t begun = 0;

    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    AUTO_FREE char *one = plant(w, "one");
    AUTO_FREE char *two = plant(w, "two");
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = pack_slowly(w, i % 2 ? one : two, pipe_fds);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        struct pollfd p = {.fd = fds[i], .events = POLLIN};
        if (i < PACKS && poll(&p, 1, 0) == 0)
            begun++;
        else
            bw_expect_error(TAKE_FD(fds[i]), ERR_BUSY, "archives are being downloaded");
    }
    assert_int_equal(begun, PACKS);
    json_auto_t *result = bw_result(bw_send_run(w, "bob", "c", "out x", plain));
    expect_text(result, "stdout", "x");
    close(pipe_fds[0]); /* they end */
    close(pipe_fds[1]);
    for (size_t i = 0; i < begun; i++)
        bw_expect_error(fds[i], ERR_CANCELLED, "closed its end");
    bw_close(w);
}

/* H-06: a worker that reads the names of mounts gets no archive of them. */
static void an_archive_needs_more_than_the_directorys_name(void **state)
{
    struct broker_world *w = *state;
    int pipe_fds[2];

    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    AUTO_FREE char *subject = plant(w, "one");
    char *token = subject + SANDBOX_NAME_LEN + 1;
    AUTO_FREE char *without = mem_printf("%.*s/files.tar", SANDBOX_NAME_LEN, subject);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    bw_expect_error(pack_slowly(w, without, pipe_fds), ERR_NOT_FOUND, "does not name an archive");
    token[0] = token[0] == 'A' ? 'B' : 'A';
    bw_expect_error(pack_slowly(w, subject, pipe_fds), ERR_NOT_FOUND, "no such sandbox");
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    bw_close(w);
}

/* Puts a file whose content does not come; the connection. */
static int put_slowly(struct broker_world *w, const char *tenant, const int pipe_fds[2])
{
    struct err e = ERR_INIT;
    json_auto_t *head = json_pack("{s:s, s:s, s:s, s:s, s:i}", "op", "put", "tenant", tenant,
                                  "conversationId", "c", "name", "f", "size", 10);
    int fd = sock_connect_unix(w->socket, &e);

    assert_true(fd >= 0);
    assert_works(wire_send(fd, head, pipe_fds[0], &e), e);
    return fd;
}

static size_t count_jobs(const struct broker_world *w)
{
    char text[4096] = "";
    size_t n = 0;
    AUTO_FREE char *list = mem_printf("/proc/%d/task/%d/children", w->pid, w->pid);
    AUTO_FD int children = open(list, O_RDONLY | O_CLOEXEC);

    assert_true(children >= 0 && read(children, text, sizeof text - 1) >= 0);
    for (const char *at = text; (at = strchr(at, ' ')); at++)
        n++;
    return n;
}

/* One tenant gets its share of jobs, further ones are held or refused, and take no process; runs,
 * also its own, and the jobs of others are served. */
/* Of one tenant that is alone. */
#define BEGUN   26
#define HELD    205
#define HELPERS 2 /* which look for what has expired, and empty .trash, at times of their own */

static void slow_jobs_of_one_tenant_delay_no_other(void **state)
{
    struct broker_world *w = *state;
    int fds[BEGUN + HELD + 40], pipe_fds[2];
    size_t busy = 0, left = 0;

    w->config.limits.file_max = 100;
    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    size_t before = count_jobs(w);
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fds[i] = put_slowly(w, "ann", pipe_fds);
    for (size_t i = BEGUN + HELD; i < ARRAY_LEN(fds); i++, busy++)
        bw_expect_error(TAKE_FD(fds[i]), ERR_BUSY, "too many operations");
    assert_int_equal(busy, 40);
    struct pollfd first = {.fd = fds[BEGUN], .events = POLLIN};
    assert_int_equal(poll(&first, 1, 0), 0); /* it waits on: they were refused at once */
    assert_true(count_jobs(w) <= before + BEGUN + HELPERS);
    json_auto_t *own = bw_result(bw_send_run(w, "ann", "c", "out x", plain));
    expect_text(own, "stdout", "x");
    json_auto_t *list = bw_result(send_head(w, json_pack("{s:s, s:s, s:s}", "op", "list_runs",
                                                         "tenant", "bob", "conversationId", "c")));
    assert_non_null(list);
    for (size_t i = BEGUN; i < BEGUN + HELD; i++) { /* those that were held leave */
        close(TAKE_FD(fds[i]));
        left++;
    }
    for (size_t i = 0; i < left; i++) /* and make room */
        fds[BEGUN + i] = put_slowly(w, "ann", pipe_fds);
    bw_wait_for(w, "running", 0);
    struct pollfd p = {.fd = fds[BEGUN + HELD - 1], .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    for (size_t i = 0; i < BEGUN + HELD; i++)
        close(fds[i]);
    close(pipe_fds[0]); /* those that have begun end */
    close(pipe_fds[1]);
    bw_close(w);
}

/* ---- what is deleted ---- */

/* Has the process something in .trash open? */
static bool is_in_trash(const struct broker_world *w, pid_t pid)
{
    AUTO_FREE char *trash = mem_printf("%s/.trash", w->root);
    AUTO_FREE char *path = mem_printf("/proc/%d/fd", pid);
    AUTO_DIR DIR *fds = opendir(path);

    for (struct dirent *one; fds && (one = readdir(fds));) {
        char target[PATH_MAX] = "";
        if (readlinkat(dirfd(fds), one->d_name, target, sizeof target - 1) > 0 &&
            strncmp(target, trash, strlen(trash)) == 0)
            return true;
    }
    return false;
}

/* The broker's child that empties .trash; 0: there is none. */
static pid_t find_emptier(const struct broker_world *w)
{
    char text[1024] = "";
    AUTO_FREE char *list = mem_printf("/proc/%d/task/%d/children", w->pid, w->pid);
    AUTO_FD int children = open(list, O_RDONLY | O_CLOEXEC);

    assert_true(children >= 0 && read(children, text, sizeof text - 1) >= 0);
    for (char *rest = text, *one; (one = strsep(&rest, " "));) {
        uint64_t pid;
        if (parse_u64(one, 1, INT32_MAX, &pid) == 0 && is_in_trash(w, (pid_t)pid))
            return (pid_t)pid;
    }
    return 0;
}

static json_t *deletion(const char *conversation)
{
    return json_pack("{s:s, s:s, s:s}", "op", "delete_conversation", "tenant", "ann",
                     "conversationId", conversation);
}

static json_t *delete_conversation(struct broker_world *w, const char *conversation)
{
    return bw_result(send_head(w, deletion(conversation)));
}

/* Has the signal stopped it, or had it ended before? */
static bool is_stopped(pid_t pid)
{
    AUTO_FREE char *path = mem_printf("/proc/%d/stat", pid);
    struct deadline end = deadline_in_ms(20000);

    for (;; poll(NULL, 0, 1)) {
        char text[256] = "";
        AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
        const char *name_end = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strrchr(text, ')')
                                                                              : NULL;
        if (!name_end || name_end[2] == 'Z' || name_end[2] == 'X')
            return false;
        if (name_end[2] == 'T')
            return true;
        assert_false(deadline_passed(end));
    }
}

/* Held where it is: it cannot be through before it has been found. */
static pid_t stop_the_emptier(struct broker_world *w)
{
    AUTO_FREE char *folder = mem_printf("%s/.trash/much", w->root);
    struct deadline end = deadline_in_ms(60000);

    for (int round = 0; !deadline_passed(end); round++) {
        AUTO_FREE char *name = mem_printf("round %d", round);
        free(plant(w, name));
        assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
        for (int i = 0; i < 3000; i++) {
            AUTO_FREE char *path = mem_printf("%s/%d", folder, i);
            close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        }
        json_decref(delete_conversation(w, name));
        for (int tries = 0; tries < 200; tries++, poll(NULL, 0, 1)) {
            pid_t pid = find_emptier(w);
            if (pid > 0 && kill(pid, SIGSTOP) == 0 && is_stopped(pid))
                return pid;
        }
    }
    fail_msg(".trash is not emptied");
    return 0;
}

static bool has_a_signal_to_come(pid_t pid)
{
    char text[4096] = "";
    AUTO_FREE char *path = mem_printf("/proc/%d/status", pid);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    return !strstr(text, "\nShdPnd:\t0000000000000000\n");
}

static void one_process_empties_the_trash_and_delays_no_call(void **state)
{
    struct broker_world *w = *state;
    AUTO_FREE char *trash = mem_printf("%s/.trash", w->root);

    bw_start_broker(w);
    bw_wait_for(w, "running", 0);
    pid_t emptier = stop_the_emptier(w);
    for (int i = 0; i < 80; i++) { /* more than there may be jobs */
        AUTO_FREE char *name = mem_printf("c %d", i);
        free(plant(w, name));
        json_auto_t *gone = delete_conversation(w, name);
        assert_true(json_get_bool(gone, "deleted", 0));
        assert_int_equal(json_get_integer(gone, "files", 0), 1);
    }
    json_auto_t *result = bw_result(bw_send_run(w, "bob", "c", "out x", plain));
    expect_text(result, "stdout", "x");
    bw_expect_error(send_head(w, deletion("none")), ERR_NOT_FOUND, "nothing to delete");
    assert_false(has_a_signal_to_come(emptier)); /* no deletion ends it */
    kill(emptier, SIGCONT);
    struct deadline end = deadline_in_ms(120000); /* it steps back behind all others */
    while (rmdir(trash) < 0 && !deadline_passed(end))
        poll(NULL, 0, 10);
    assert_false(deadline_passed(end)); /* all of it has gone */
    bw_close(w);
}

#define CASE(f) cmocka_unit_test_setup(f, setup)
static const struct CMUnitTest tests[] = {
    CASE(a_run_is_answered),
    CASE(a_worker_that_may_not_connect_hands_a_connection_over),
    CASE(what_is_no_connection_is_refused),
    CASE(what_cannot_be_run_is_told_at_once),
    CASE(a_body_larger_than_any_buffer_arrives),
    CASE(runs_wait_their_turn_and_the_rest_is_busy),
    CASE(a_caller_that_leaves_the_queue_is_forgotten_unless_it_detached),
    CASE(patience_in_the_line_ends_with_busy),
    CASE(an_end_that_does_not_wait_ends_what_runs_and_refuses_what_waits),
    CASE(runs_that_come_at_once_get_waiting_containers_of_their_own),
    CASE(a_waiting_supervisor_that_is_killed_harms_no_run),
    CASE(a_supervisor_that_dies_with_its_run_ends_the_connection),
    CASE(a_look_is_handed_to_the_runs_supervisor),
    CASE(a_run_is_cancelled_by_its_tenant_only),
    CASE(runs_survive_the_main_process_and_come_back_to_the_next),
    CASE(a_relieved_main_process_leaves_its_runs_once_nothing_waits),
    CASE(runs_of_a_conversation_get_the_same_supervisor_and_ids_of_their_own),
    CASE(calls_without_a_pause_wait_for_the_wipe),
    CASE(doubt_is_counted_and_the_next_run_is_another_supervisors),
    CASE(a_second_run_survives_the_main_process_by_its_own_id),
    CASE(many_silent_connections_delay_no_call),
    CASE(pending_conns_that_are_none_end_their_connection),
    CASE(strangers_are_refused),
    CASE(each_sender_asks_for_what_is_its_own_alone),
    CASE(a_child_holds_no_other_connection),
    CASE(slow_readers_of_one_tenant_shut_no_other_out),
    CASE(an_archive_needs_more_than_the_directorys_name),
    CASE(slow_jobs_of_one_tenant_delay_no_other),
    CASE(one_process_empties_the_trash_and_delays_no_call),
};
UNIT_TESTS(tests)
