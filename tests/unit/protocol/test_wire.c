/* The run protocol's messages, and the locks that tell living runs from
 * orphans. */
#include "config.h"

#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct run_request request = {.tenant = "t",
                                           .conversation = "c",
                                           .language = "python",
                                           .network = NETWORK_PUBLIC,
                                           .single_use = true,
                                           .timeout_ms = 1500,
                                           .keep_bytes = 7};

static void a_head_survives_the_wire(void **state)
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
    assert_int_equal(wire_post(pair[0], head_out, -1, &e), 0);
    json_auto_t *head = wire_recv(pair[1], NULL, deadline_in_ms(1000), &e);
    assert_non_null(head);
    assert_int_equal(wire_run_head_decode(head, &back, &options, &e), 0);
    assert_int_equal(options.wait_ms, 50000);
    assert_true(options.detach && options.cancel_on_disconnect && !options.background &&
                !options.live);
    assert_true(json_equal(options.imports, imports));
    assert_string_equal(back.tenant, "t");
    assert_int_equal(back.network, NETWORK_PUBLIC);
    assert_true(back.single_use);
    assert_int_equal(back.timeout_ms, 1500);
    assert_int_equal(back.keep_bytes, 7);
    close(pair[0]);
    close(pair[1]);
}

static void heads_that_lack_or_bend_something_are_refused(void **state)
{
#define RUN "{\"tenant\":\"t\",\"conversationId\":\"c\",\"language\":\"l\""
    static const char *const bad[] = {
        "{}",
        "{\"tenant\":\"t\",\"conversationId\":\"c\"}",
        "{\"tenant\":1,\"conversationId\":\"c\",\"language\":\"l\"}",
        RUN ",\"imports\":\"a\"}",
        RUN ",\"imports\":[1]}",
        RUN ",\"waitMs\":-1}",
        RUN ",\"timeoutMs\":-1}",
        RUN ",\"keepBytes\":-1}",
        RUN ",\"keepOver\":-1}",
        "{\"op\":\"exec\",\"timeoutMs\":-1}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = ERR_INIT;
        struct run_request back;
        struct run_options options;
        json_auto_t *head = json_parse(bad[i], strlen(bad[i]), 8, &e);
        assert_non_null(head);
        assert_int_equal(wire_run_head_decode(head, &back, &options, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

static json_t *names(size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string("numpy"));
    return list;
}

static void only_as_many_imports_are_sent_as_are_taken(void **state)
{
    struct err e = ERR_INIT;
    struct run_request back;
    struct run_options taken;
    (void)state;
    json_auto_t *many = names(WIRE_IMPORTS_MAX + 1);
    const struct run_options asked = {.imports = many};
    json_auto_t *head = wire_run_head_new(&request, &asked);
    assert_int_equal(wire_run_head_decode(head, &back, &taken, &e), 0);
    assert_int_equal(json_array_size(taken.imports), WIRE_IMPORTS_MAX);
    json_object_set(head, "imports", many);
    assert_int_equal(wire_run_head_decode(head, &back, &taken, &e), -1);
    assert_int_equal(e.kind, ERR_INVALID);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_head_survives_the_wire),
    cmocka_unit_test(heads_that_lack_or_bend_something_are_refused),
    cmocka_unit_test(only_as_many_imports_are_sent_as_are_taken),
    cmocka_unit_test(errors_keep_their_kind_on_the_wire),
    cmocka_unit_test(errors_keep_their_errno_on_the_wire),
    cmocka_unit_test(every_operation_has_a_name_of_its_own),
    cmocka_unit_test(a_run_is_alive_exactly_as_long_as_its_supervisor),
};
UNIT_TESTS(tests)
