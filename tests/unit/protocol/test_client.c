/* The worker's side of a call: what the broker hears when its caller cancels, leaves, or has waited
 * long enough. */
#include "config.h"

#include "tests/unit/unit.h"

#include "common/base/node.h"
#include "common/base/sock.h"
#include "common/protocol/client_runs.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 20000

struct fixture {
    char folder[PATH_MAX], path[PATH_MAX + 8];
    int listen_fd;
    pid_t broker;
    void (*be)(int listen_fd); /* what the broker does */
    int ends[2];               /* the caller's connection: ours, and its own */
    int ticks;
    struct broker_client client;
};

/* The caller goes away when everything has been sent. */
static void go_away(void *ctx)
{
    struct fixture *f = ctx;

    if (++f->ticks < 2 || f->ends[1] < 0)
        return;
    close(f->ends[1]);
    f->ends[1] = -1;
}

static void listen_silently(int listen_fd);

static int setup(void **state)
{
    static struct fixture f;
    struct err e = ERR_INIT;

    unit_make_folder(f.folder);
    snprintf(f.path, sizeof f.path, "%s/b", f.folder);
    f.listen_fd = sock_listen(
        f.path, &(struct sock_owner){.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = 0600}, &e);
    assert_true(f.listen_fd >= 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f.ends), 0);
    f.ticks = 0;
    f.be = listen_silently;
    f.client = (struct broker_client){.path = f.path,
                                      .cancel_fd = -1,
                                      .leave_fd = -1,
                                      .tick = go_away,
                                      .tick_ctx = &f,
                                      .tick_ms = 100};
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->listen_fd);
    close(f->ends[0]);
    if (f->ends[1] >= 0)
        close(f->ends[1]);
    unlink(f->path);
    rmdir(f->folder);
    return 0;
}

/* What a broker hears on one connection that it never answers: n messages, then the end. Exits with
 * their number, and 100 more when the last was {"cancel":true}. */
static void listen_silently(int listen_fd)
{
    struct err e = ERR_INIT;
    int n = 0, cancelled = 0;
    int flags = fcntl(listen_fd, F_GETFL);

    fcntl(listen_fd, F_SETFL, flags & ~O_NONBLOCK);
    int fd = accept(listen_fd, NULL, NULL);
    AUTO_BUF struct buf m = BUF_INIT(WIRE_MESSAGE_MAX);
    for (; sock_recv_message(fd, &m, NULL, deadline_in_ms(PATIENCE_MS), &e) == 0; n++)
        cancelled = strcmp(buf_str(&m), "{\"cancel\":true}") == 0;
    close(fd);
    _exit(n + (cancelled ? 100 : 0));
}

/* Begins an answer, and says no more of it until the caller has gone. */
static void stall_in_an_answer(int listen_fd)
{
    static const char half[] = "\0\0\1\0{\"result\":{\"half\":";
    struct err e = ERR_INIT;
    char rest[16];

    fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) & ~O_NONBLOCK);
    int fd = accept(listen_fd, NULL, NULL);
    json_decref(wire_recv(fd, NULL, deadline_in_ms(PATIENCE_MS), &e));
    int n = send(fd, half, sizeof half - 1, MSG_NOSIGNAL) == sizeof half - 1;
    while (read(fd, rest, sizeof rest) > 0)
        ;
    _exit(n);
}

/* Reads the request and ends without an answer, as often as it is asked. */
static void end_silently(int listen_fd)
{
    struct err e = ERR_INIT;

    fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) & ~O_NONBLOCK);
    for (int n = 1;; n++) {
        int fd = accept(listen_fd, NULL, NULL);
        json_auto_t *head = wire_recv(fd, NULL, deadline_in_ms(PATIENCE_MS), &e);
        bool last = op_of(head) == OP_PING;
        close(fd);
        if (last)
            _exit(n);
    }
}

/* Answers with ids of all kinds, and with the id that it was asked about. */
static void answer_with_ids(int listen_fd)
{
    struct err e = ERR_INIT;

    fcntl(listen_fd, F_SETFL, fcntl(listen_fd, F_GETFL) & ~O_NONBLOCK);
    AUTO_FD int fd = accept(listen_fd, NULL, NULL);
    json_auto_t *head = wire_recv(fd, NULL, deadline_in_ms(PATIENCE_MS), &e);
    json_auto_t *answer = json_pack("{s:{s:s, s:s, s:O, s:[{s:s, s:s}]}}", "result", "runId", "a",
                                    "sandboxId", "sbx_b", "asked", json_object_get(head, "runId"),
                                    "runs", "runId", "c", "conversationId", "d");
    _exit(wire_send(fd, answer, -1, &e) < 0);
}

static void start_broker(struct fixture *f)
{
    f->broker = fork();
    assert_true(f->broker >= 0);
    if (f->broker > 0)
        return;
    close(f->ends[0]); /* else the caller is still there, in us */
    close(f->ends[1]);
    f->be(f->listen_fd);
}

static int heard(struct fixture *f)
{
    int status;

    assert_int_equal(waitpid(f->broker, &status, 0), f->broker);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static enum err_kind run(struct fixture *f)
{
    const struct run_request request = {
        .tenant = "t", .conversation = "c", .language = "l", .code = {"x", 1}};
    struct err e = ERR_INIT;

    start_broker(f);
    assert_null(broker_run(&f->client, &request, NULL, &e));
    return e.kind;
}

static enum err_kind look(struct fixture *f)
{
    const struct broker_poll_options how = {.wait_ms = 1000};
    struct err e = ERR_INIT;

    start_broker(f);
    assert_null(broker_get_run(&f->client, "id", &how, &e));
    return e.kind;
}

/* The head, the body and the word. */
static void who_cancels_says_so(void **state)
{
    struct fixture *f = *state;

    f->client.cancel_fd = f->ends[0];
    assert_int_equal(run(f), ERR_CANCELLED);
    assert_int_equal(heard(f), 103);
}

static void who_leaves_says_nothing(void **state)
{
    struct fixture *f = *state;

    f->client.leave_fd = f->ends[0];
    assert_int_equal(run(f), ERR_CANCELLED);
    assert_int_equal(heard(f), 2);
}

static void who_only_looks_cancels_nothing(void **state)
{
    struct fixture *f = *state;

    f->client.cancel_fd = f->ends[0];
    assert_int_equal(look(f), ERR_CANCELLED);
    assert_int_equal(heard(f), 1);
}

static void a_call_with_a_limit_ends(void **state)
{
    struct fixture *f = *state;

    f->client.limit_ms = 200;
    assert_int_equal(look(f), ERR_TIMEOUT);
    assert_int_equal(heard(f), 1);
}

static void a_limit_holds_in_the_middle_of_an_answer(void **state)
{
    struct fixture *f = *state;

    f->be = stall_in_an_answer;
    f->client.limit_ms = 300;
    assert_int_equal(look(f), ERR_TIMEOUT);
    assert_int_equal(heard(f), 1);
}

static void a_caller_leaves_in_the_middle_of_an_answer(void **state)
{
    struct fixture *f = *state;

    f->be = stall_in_an_answer;
    f->client.tick_ms = 300; /* the answer has begun by then */
    f->client.cancel_fd = f->ends[0];
    assert_int_equal(look(f), ERR_CANCELLED);
    assert_int_equal(heard(f), 1);
}

/* A run's and a sandbox's supervisor, and the job of any other operation; the first two are asked
 * once more. */
static void a_call_without_an_answer_says_which_process_ended(void **state)
{
    struct fixture *f = *state;
    const struct broker_poll_options now = {0};
    struct err e = ERR_INIT;

    f->be = end_silently;
    start_broker(f);
    assert_null(broker_get_run(&f->client, "id", &now, &e));
    assert_int_equal(e.kind, ERR_LOST);
    assert_contains(e.text, "what ran is lost: its supervisor ended");
    assert_null(broker_close_psandbox(&f->client, "id", &e));
    assert_int_equal(e.kind, ERR_LOST);
    assert_contains(e.text, "what ran is lost: its supervisor ended");
    assert_int_equal(broker_ping(&f->client, &e), -1);
    assert_int_equal(e.kind, ERR_LOST);
    assert_contains(e.text, "the broker closed the connection");
    assert_int_equal(heard(f), 5);
}

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void a_call_that_lasts_is_told_once(void **state)
{
    struct fixture *f = *state;
    int told = 0;

    client_on_long_call(count, &told);
    f->client.cancel_fd = f->ends[0];
    f->ticks = -2; /* leaves after four times tick_ms */
    assert_int_equal(look(f), ERR_CANCELLED);
    client_on_long_call(NULL, NULL);
    assert_int_equal(told, 1);
}

/* By path, and over a pair whose other end is closed. */
static void a_broker_that_is_not_there_is_not_taken_for_its_engine(void **state)
{
    struct fixture *f = *state;
    struct err e = ERR_INIT;
    int pair[2];

    close(f->listen_fd);
    f->listen_fd = -1;
    assert_fails(broker_ping(&f->client, &e), ERR_AWAY, e);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    client_connect_over(pair[0]);
    assert_fails(broker_ping(&f->client, &e), ERR_AWAY, e);
    client_connect_over(-1);
    close(pair[0]);
}

static char *ids_of(struct fixture *f, const char *run_id)
{
    struct err e = ERR_INIT;

    f->be = answer_with_ids;
    start_broker(f);
    json_auto_t *result = broker_cancel_run(&f->client, run_id, &e);
    assert_non_null(result);
    assert_int_equal(heard(f), 0);
    return json_dumps(result, JSON_COMPACT | JSON_SORT_KEYS);
}

static void clients_ids_name_the_node(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *plain = ids_of(f, "n2-x");

    assert_string_equal(plain, "{\"asked\":\"n2-x\",\"runId\":\"a\","
                               "\"runs\":[{\"conversationId\":\"d\",\"runId\":\"c\"}],"
                               "\"sandboxId\":\"sbx_b\"}");
    node_set("n2");
    AUTO_FREE char *named = ids_of(f, "n2-x");
    assert_string_equal(named, "{\"asked\":\"x\",\"runId\":\"n2-a\","
                               "\"runs\":[{\"conversationId\":\"d\",\"runId\":\"n2-c\"}],"
                               "\"sandboxId\":\"n2-sbx_b\"}");
    AUTO_FREE char *foreign = ids_of(f, "n3-x");
    assert_contains(foreign, "\"asked\":\"n3-x\"");
    node_set(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(clients_ids_name_the_node),
    TEST(who_cancels_says_so),
    TEST(who_leaves_says_nothing),
    TEST(who_only_looks_cancels_nothing),
    TEST(a_call_with_a_limit_ends),
    TEST(a_limit_holds_in_the_middle_of_an_answer),
    TEST(a_caller_leaves_in_the_middle_of_an_answer),
    TEST(a_call_that_lasts_is_told_once),
    TEST(a_call_without_an_answer_says_which_process_ended),
    TEST(a_broker_that_is_not_there_is_not_taken_for_its_engine),
};
UNIT_TESTS(tests)
