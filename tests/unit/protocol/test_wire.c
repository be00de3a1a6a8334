/* The run protocol's messages, and the locks that tell living runs from
 * orphans. */
#include "config.h"

#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct run_text args[] = {{"one", 3}, {"two words", 9}};
static const struct run_env env[] = {{"A", "1"}, {"B", "x=y"}};
static const struct run_request request = {.tenant = "t",
                                           .conversation = "c",
                                           .language = "python",
                                           .code = {"print(1)\0#", 10},
                                           .input = {"in", 2},
                                           .network = NETWORK_PUBLIC,
                                           .single_use = true,
                                           .timeout_ms = 1500,
                                           .keep_bytes = 7,
                                           .args = args,
                                           .n_args = 2,
                                           .env = env,
                                           .n_env = 2};

static void a_request_survives_the_wire(void **state)
{
    struct err e = ERR_INIT;
    struct run_request back;
    struct run_options options;
    int pair[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    json_auto_t *imports = json_pack("[s]", "numpy");
    const struct run_options asked = {
        .wait_ms = 50000, .detach = true, .cancel_on_disconnect = true, .imports = imports};
    json_auto_t *head_out = wire_run_head_new(&request, &asked);
    json_auto_t *body_out = wire_run_body_new(&request);
    AUTO_BUF struct buf frame = BUF_INIT(WIRE_MESSAGE_MAX);
    assert_int_equal(wire_post(pair[0], head_out, -1, &e), 0);
    assert_int_equal(wire_frame(body_out, &frame, &e), 0);
    assert_int_equal(write(pair[0], frame.data, frame.len), frame.len);
    json_auto_t *head = wire_recv(pair[1], NULL, deadline_in_ms(1000), &e);
    json_auto_t *body = wire_recv(pair[1], NULL, deadline_in_ms(1000), &e);
    assert_non_null(head);
    assert_non_null(body);
    assert_int_equal(wire_run_head_decode(head, &back, &options, &e), 0);
    assert_int_equal(wire_run_body_decode(body, &back, &e), 0);
    assert_int_equal(options.wait_ms, 50000);
    assert_true(options.detach && options.cancel_on_disconnect && !options.background &&
                !options.live);
    assert_true(json_equal(options.imports, imports));
    assert_string_equal(back.tenant, "t");
    assert_int_equal(back.code.len, 10);
    assert_memory_equal(back.code.data, "print(1)\0#", 10);
    assert_int_equal(back.network, NETWORK_PUBLIC);
    assert_true(back.single_use);
    assert_int_equal(back.timeout_ms, 1500);
    assert_int_equal(back.keep_bytes, 7);
    assert_int_equal(back.n_args, 2);
    assert_string_equal(back.args[1].data, "two words");
    assert_string_equal(back.env[1].value, "x=y");
    wire_run_decoded_clear(&back);
    close(pair[0]);
    close(pair[1]);
}

static void requests_that_lack_or_bend_something_are_refused(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\"}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"imports\":"
        "\"a\"}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"imports\":["
        "1]"
        "}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"waitMs\":-"
        "1}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":1}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"timeoutMs\":"
        "-"
        "1}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"args\":[1]}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"args\":["
        "\"a\\u0000b\"]}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"env\":[[\"A="
        "B\",\"\"]]}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"env\":[["
        "\"A\"]"
        "]}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\",\"code\":\"\",\"env\":["
        "\"A\"]"
        "}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        struct run_request back;
        struct run_options options;
        json_auto_t *object = json_parse(bad[i], strlen(bad[i]), 8, &e);
        assert_non_null(object);
        /* One object is looked at as both messages. */
        int taken = wire_run_head_decode(object, &back, &options, &e);
        if (taken == 0)
            taken = wire_run_body_decode(object, &back, &e);
        assert_int_equal(taken, -1);
        assert_int_equal(e.kind, ERR_INVALID);
        wire_run_decoded_clear(&back);
    }
}

static void errors_keep_their_kind_on_the_wire(void **state)
{
    struct err e = ERR_INIT;
    (void)state;
    err_set(&e, ERR_BUSY, "16 programs are running");
    json_auto_t *reply = wire_error_new(&e);
    const json_t *error = json_object_get(reply, "error");
    assert_int_equal(err_kind_parse(json_get_string(error, "kind")), ERR_BUSY);
    assert_string_equal(json_get_string(error, "text"), "16 programs are running");
}

static void errors_keep_their_errno_on_the_wire(void **state)
{
    struct err e = ERR_INIT, back = ERR_INIT;
    (void)state;
    errno = ENOSPC;
    err_errno(&e, "cannot write");
    json_auto_t *reply = wire_error_new(&e);
    assert_int_equal(wire_error_take(json_object_get(reply, "error"), &back), -1);
    assert_int_equal(back.kind, ERR_IO);
    assert_int_equal(back.sys, ENOSPC);
    assert_string_equal(back.text, e.text);
}

static void a_run_is_alive_exactly_as_long_as_its_supervisor(void **state)
{
    struct err e = ERR_INIT;
    char dir[] = "/tmp/test-runlock-XXXXXX";
    char path[64];
    int pipe_fds[2];
    char ready;
    (void)state;
    assert_non_null(mkdtemp(dir));
    int root = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(root, ".runs", 0700), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int lock = run_lock_take(root, "abcdef", &e);
        _exit(lock >= 0 && write(pipe_fds[1], "x", 1) == 1 && pause());
    }
    assert_int_equal(read(pipe_fds[0], &ready, 1), 1);
    assert_true(run_lock_reap(root, "abcdef"));
    assert_int_equal(run_lock_take(root, "abcdef", &e), -1); /* the id is taken */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_false(run_lock_reap(root, "abcdef"));
    assert_int_equal(faccessat(root, ".runs/abcdef", F_OK, 0), -1); /* swept away with the answer */
    assert_false(run_lock_reap(root, "../.runs/abcdef"));
    assert_false(run_lock_reap(root, ""));
    unlinkat(root, ".runs", AT_REMOVEDIR);
    snprintf(path, sizeof path, "%s", dir);
    rmdir(path);
    close(root);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void every_operation_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (enum broker_op op = OP_UNKNOWN + 1; op < OP_COUNT; op++) {
        json_auto_t *head = op_head_new(op, "{}");
        assert_true(*op_name(op));
        assert_int_equal(op_of(head), op);
    }
    json_auto_t *other = json_pack("{s:s}", "op", "no_such_thing");
    json_auto_t *empty = json_pack("{s:s}", "op", "");
    json_auto_t *number = json_pack("{s:i}", "op", OP_RUN);
    assert_int_equal(op_of(other), OP_UNKNOWN);
    assert_int_equal(op_of(empty), OP_UNKNOWN);
    assert_int_equal(op_of(number), OP_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_survives_the_wire),
        cmocka_unit_test(requests_that_lack_or_bend_something_are_refused),
        cmocka_unit_test(errors_keep_their_kind_on_the_wire),
        cmocka_unit_test(errors_keep_their_errno_on_the_wire),
        cmocka_unit_test(every_operation_has_a_name_of_its_own),
        cmocka_unit_test(a_run_is_alive_exactly_as_long_as_its_supervisor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
