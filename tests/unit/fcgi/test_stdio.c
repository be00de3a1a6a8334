/* sandcgi stdio as a process of its own, with a broker that answers as the test says: calls run
 * side by side, are cancelled at once, and end with their client. */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/rpc/json.h"
#include "fcgi/commands.h"
#include "fcgi/stdio/stdio_calls.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LONG_MS  30000
#define BODY_MAX (64u * 1024)

#define INITIALIZE                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{"                  \
    "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{\"roots\":{}}}}\n"
#define INITIALIZE_WITHOUT_ROOTS                                                                   \
    "{\"jsonrpc\":\"2.0\",\"id\":\"init\",\"method\":\"initialize\",\"params\":{"                  \
    "\"protocolVersion\":\"2025-03-26\",\"capabilities\":{}}}\n"
#define CALL_OF(id, arguments)                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{"                    \
    "\"name\":\"list_runs\",\"arguments\":{" arguments "}}}"
#define CALL(id) CALL_OF(id, "\"conversationId\":\"c" id "\"") "\n"
#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"
#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id    \
    "}}\n"

struct world {
    char folder[PATH_MAX];
    struct settings settings;
    struct app app;
    int broker_fd; /* listens */
    int in, out;   /* our ends of the pipes */
    pid_t pid;
    struct stdio_lines lines;
};

static int setup(void **state)
{
    struct world *w = mem_alloc(sizeof *w);
    struct err e = ERR_INIT;
    int in[2], out[2];

    unit_make_folder(w->folder);
    AUTO_FREE char *broker = mem_printf("%s/broker.sock", w->folder);
    setenv("SANDCGI_BROKER", broker, 1);
    setenv("SANDBOX_ROOT", w->folder, 1);
    setenv("TOOLS", "all", 1); /* list_runs, copy_file */
    setenv("SANDCGI_MAX_BODY", "64k", 1);
    setenv("SANDBOX_FILE_MAX", "16k", 1);
    setenv("FILE_SECRET", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5", 1);
    setenv("PUBLIC_BASE_URL", "http://localhost", 1);
    assert_works(settings_load(&w->settings, NULL, &e), e);
    assert_works(app_init(&w->app, &w->settings, false, NULL, &e), e);
    assert_works(w->broker_fd = sock_listen(broker, NULL, &e), e);
    assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    w->pid = fork();
    if (w->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(in[1]);
        close(out[0]);
        close(w->broker_fd);
        if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
            _exit(99);
        close(in[0]);
        close(out[1]);
        exit(stdio_serve(&w->app, -1, &e) < 0); /* where a sanitizer tells leaks */
    }
    close(in[0]);
    close(out[1]);
    w->in = in[1];
    w->out = out[0];
    stdio_lines_init(&w->lines, STDIO_ANSWER_MAX);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    if (w->pid > 0) {
        kill(w->pid, SIGKILL);
        waitpid(w->pid, NULL, 0);
    }
    auto_close_fd(&w->in);
    auto_close_fd(&w->out);
    auto_close_fd(&w->broker_fd);
    stdio_lines_clear(&w->lines);
    app_clear(&w->app);
    settings_clear(&w->settings);
    unit_remove_tree(w->folder);
    free(w);
    return 0;
}

/* ---- the client's side ---- */

static void say(const struct world *w, const char *text)
{
    struct err e = ERR_INIT;

    assert_works(fdio_write_all(w->in, text, strlen(text), &e), e);
}

static void wait_for(int fd, short events, const char *what)
{
    struct pollfd p = {.fd = fd, .events = events};

    if (poll(&p, 1, LONG_MS) != 1)
        fail_msg("nothing within %d ms: %s", LONG_MS, what);
}

/* The next message; NULL: the end of the output. */
static json_t *hear(struct world *w)
{
    struct err e = ERR_INIT;
    const char *line;
    size_t len;

    while (stdio_lines_next(&w->lines, &line, &len) <= 0) {
        wait_for(w->out, POLLIN, "a message");
        if (stdio_lines_read(&w->lines, w->out) <= 0)
            return NULL;
    }
    json_t *message = json_parse(line, len, JSON_MAX_DEPTH, &e);
    assert_works(message ? 0 : -1, e);
    return message;
}

/* The next message answers this request. Returns the text of the answer. */
static char *answer_to(struct world *w, const char *id)
{
    json_auto_t *message = hear(w);
    assert_non_null(message);
    char *text = json_dumps(message, JSON_COMPACT | JSON_SORT_KEYS);
    AUTO_FREE char *named = mem_printf("\"id\":%s,", id);
    assert_contains(text, named);
    return text;
}

static void assert_answer(struct world *w, const char *id, const char *part)
{
    AUTO_FREE char *text = answer_to(w, id);

    assert_contains(text, part);
}

/* ---- the broker's side ---- */

struct at_broker {
    int fd;
    char conversation[32];
};

static struct at_broker take_call(const struct world *w)
{
    AUTO_BUF struct buf head = BUF_INIT(BODY_MAX);
    struct at_broker call;
    struct err e = ERR_INIT;

    wait_for(w->broker_fd, POLLIN, "a call at the broker");
    call.fd = accept4(w->broker_fd, NULL, NULL, SOCK_CLOEXEC);
    assert_true(call.fd >= 0);
    assert_works(sock_recv_message(call.fd, &head, NULL, deadline_in_ms(LONG_MS), &e), e);
    json_auto_t *parsed = json_parse(head.data, head.len, JSON_MAX_DEPTH, &e);
    const char *conversation = json_get_string(parsed, "conversationId");
    snprintf(call.conversation, sizeof call.conversation, "%s", conversation ? conversation : "");
    return call;
}

static void reply(struct at_broker *call, const char *text)
{
    struct err e = ERR_INIT;

    assert_works(sock_send_message(call->fd, text, strlen(text), -1, &e), e);
    auto_close_fd(&call->fd);
}

static void assert_hung_up(struct at_broker *call)
{
    char byte;

    wait_for(call->fd, POLLIN, "the caller hangs up");
    assert_int_equal(read(call->fd, &byte, 1), 0);
    auto_close_fd(&call->fd);
}

#define NO_RUNS "{\"result\":{\"runs\":[]}}"

/* ---- tests ---- */

static void what_comes_together_is_served_in_order_and_a_ping_passes_a_call(void **state)
{
    struct world *w = *state;

    say(w, INITIALIZE CALL("1") PING("2") "\n");
    assert_answer(w, "\"init\"", "2025-03-26");
    assert_answer(w, "2", "{}");
    struct at_broker call = take_call(w);
    say(w, PING("3") "\n");
    assert_answer(w, "3", "{}");
    reply(&call, NO_RUNS);
    assert_answer(w, "1", "runs");
}

static void answers_come_in_any_order_one_for_each(void **state)
{
    struct world *w = *state;
    struct at_broker calls[8];

    for (int i = 0; i < 8; i++) {
        AUTO_FREE char *line = mem_printf(CALL_OF("%d", "\"conversationId\":\"c%d\"") "\n", i, i);
        say(w, line);
    }
    for (int i = 0; i < 8; i++)
        calls[i] = take_call(w);
    for (int i = 7; i >= 0; i--) {
        reply(&calls[i], NO_RUNS);
        assert_answer(w, calls[i].conversation + 1, "runs");
    }
    close(TAKE_FD(w->in));
    assert_null(hear(w));
}

static void a_cancelled_call_ends_at_once_and_is_not_answered(void **state)
{
    struct world *w = *state;

    say(w, CALL("1"));
    struct at_broker first = take_call(w);
    say(w, CALL("2"));
    struct at_broker second = take_call(w);
    say(w, CANCEL("7") CANCEL("null") CANCEL("1"));
    assert_hung_up(&first);
    reply(&second, NO_RUNS);
    assert_answer(w, "2", "runs");
    close(TAKE_FD(w->in));
    assert_null(hear(w));
}

static void an_id_is_taken_while_its_request_is_served(void **state)
{
    struct world *w = *state;

    say(w, CALL("1"));
    struct at_broker call = take_call(w);
    say(w, CALL("1"));
    assert_answer(w, "1", "-32600");
    for (int i = 0; i < 100; i++) { /* at once, while the call's process may still be there */
        reply(&call, NO_RUNS);
        assert_answer(w, "1", "runs");
        say(w, CALL("1"));
        call = take_call(w);
    }
    say(w, CANCEL("1") CALL("1"));
    assert_hung_up(&call);
    call = take_call(w);
    reply(&call, NO_RUNS);
    assert_answer(w, "1", "runs");
}

static void a_flood_is_refused_and_hides_no_cancellation(void **state)
{
    struct world *w = *state;
    struct at_broker calls[STDIO_CALLS_MAX];
    int first = -1;

    for (int i = 0; i < STDIO_CALLS_MAX + 100; i++) {
        AUTO_FREE char *line = mem_printf(CALL_OF("%d", "\"conversationId\":\"c%d\"") "\n", i, i);
        say(w, line);
    }
    say(w, CANCEL("0"));
    for (int i = 0; i < STDIO_CALLS_MAX; i++) {
        calls[i] = take_call(w);
        first = strcmp(calls[i].conversation, "c0") == 0 ? i : first;
    }
    assert_hung_up(&calls[first]);
    for (int i = 0; i < 100; i++) {
        AUTO_FREE char *id = mem_printf("%d", STDIO_CALLS_MAX + i);
        assert_answer(w, id, "too many calls at once");
    }
    for (int i = 0; i < STDIO_CALLS_MAX; i++)
        if (i != first) {
            reply(&calls[i], NO_RUNS);
            assert_answer(w, calls[i].conversation + 1, "runs");
        }
}

/* 16 times the longest line, as it lies in memory: each comma is a value. */
static void requests_take_bounded_memory(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf line = BUF_INIT(BODY_MAX);

    say(w, CALL("1"));
    struct at_broker call = take_call(w);
    buf_add_str(&line, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
                       "\"name\":\"list_runs\",\"arguments\":{\"x\":[0");
    for (int i = 0; i < 10000; i++)
        buf_add_str(&line, ",0");
    buf_add_str(&line, "]}}}\n");
    say(w, buf_str(&line));
    assert_answer(w, "2", "too many calls at once");
    reply(&call, NO_RUNS);
    assert_answer(w, "1", "runs");
}

static void a_long_answer_arrives_whole_however_late_it_is_read(void **state)
{
    struct world *w = *state;
    AUTO_BUF struct buf long_one = BUF_INIT(8u << 20);

    say(w, CALL("1") CALL("2"));
    struct at_broker first = take_call(w), second = take_call(w);
    buf_add_str(&long_one, "{\"result\":{\"runs\":[{\"runId\":\"");
    for (int i = 0; i < 3 << 20; i++)
        buf_add_char(&long_one, (char)('a' + i % 26));
    buf_add_str(&long_one, "\"}]}}");
    reply(&first, buf_str(&long_one));
    reply(&second, NO_RUNS);
    size_t seen = 0;
    for (int i = 0; i < 2; i++) {
        json_auto_t *message = hear(w);
        AUTO_FREE char *text = json_dumps(message, JSON_COMPACT);
        seen += strlen(text);
        assert_null(json_object_get(message, "error"));
    }
    assert_true(seen > 3u << 20);
}

static void a_batch_is_one_answer_and_what_it_sets_stays(void **state)
{
    struct world *w = *state;

    say(w, INITIALIZE);
    assert_answer(w, "\"init\"", "2025-03-26");
    say(w, "[" CALL_OF("1", "\"conversationId\":\"c1\"") "," PING("2") "]\n" PING("3") "\n");
    assert_answer(w, "3", "{}");
    struct at_broker call = take_call(w);
    reply(&call, NO_RUNS);
    json_auto_t *both = hear(w);
    assert_int_equal(json_array_size(both), 2);
}

static void a_lost_call_is_answered(void **state)
{
    struct world *w = *state;
    pid_t pid;
    struct err e = ERR_INIT;

    say(w, CALL("1"));
    struct at_broker call = take_call(w);
    assert_works(sock_peer(call.fd, NULL, &pid, &e), e);
    assert_int_not_equal(pid, w->pid);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_answer(w, "1", "-32603");
    assert_hung_up(&call);
}

static void calls_end_with_their_server(void **state)
{
    struct world *w = *state;

    say(w, CALL("1") CALL("2"));
    struct at_broker first = take_call(w), second = take_call(w);
    kill(w->pid, SIGKILL);
    waitpid(w->pid, NULL, 0);
    w->pid = 0;
    assert_hung_up(&first);
    assert_hung_up(&second);
}

static void calls_outlive_the_input_but_not_the_output(void **state)
{
    struct world *w = *state;
    int status;

    say(w, CALL("1") CALL("2"));
    struct at_broker first = take_call(w), second = take_call(w);
    close(TAKE_FD(w->in));
    reply(&first, NO_RUNS);
    AUTO_FREE char *id = mem_strdup(first.conversation + 1);
    assert_answer(w, id, "runs");
    close(TAKE_FD(w->out));
    assert_hung_up(&second);
    assert_int_equal(waitpid(w->pid, &status, 0), w->pid);
    w->pid = 0;
    assert_int_equal(status, 0);
}

/* copy_file asks for the client's roots. */
static void a_response_reaches_the_call_that_asked(void **state)
{
    static const char copy[] =
        "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
        "\"name\":\"copy_file\",\"arguments\":{\"conversationId\":\"c\","
        "\"local_src_file\":\"/absent/%d\"}}}\n";
    struct world *w = *state;

    say(w, INITIALIZE);
    assert_answer(w, "\"init\"", "2025-03-26");
    json_t *questions[2];
    for (int i = 0; i < 2; i++) {
        AUTO_FREE char *line = mem_printf(copy, i, i);
        say(w, line);
        questions[i] = hear(w);
        assert_string_equal(json_get_string(questions[i], "method"), "roots/list");
    }
    for (int i = 1; i >= 0; i--) {
        AUTO_FREE char *response = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{"
                                              "\"roots\":[{\"uri\":\"file:///absent\"}]}}\n",
                                              json_get_string(questions[i], "id"));
        AUTO_FREE char *id = mem_printf("%d", i);
        say(w, response);
        assert_answer(w, id, "/absent");
        json_decref(questions[i]);
    }
    AUTO_FREE char *line = mem_printf(copy, 2, 2);
    say(w, line);
    json_decref(hear(w));
    close(TAKE_FD(w->in)); /* no response will come */
    assert_answer(w, "2", "\"isError\":true");
    assert_null(hear(w));
}

static void a_client_without_roots_is_not_asked_for_them(void **state)
{
    struct world *w = *state;

    say(w, INITIALIZE_WITHOUT_ROOTS);
    assert_answer(w, "\"init\"", "2025-03-26");
    say(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{"
           "\"name\":\"copy_file\",\"arguments\":{\"conversationId\":\"c\","
           "\"local_src_file\":\"/a\"}}}\n");
    assert_answer(w, "1", "no directory of this machine may be used");
}

/* ---- lines ---- */

static void lines_are_found_however_they_come_and_long_ones_are_left_out(void **state)
{
    static const char text[] = "ab\n\nabcdefgh\nabcd\nabcdefghij";
    struct stdio_lines l;
    const char *line;
    size_t len;

    (void)state;
    for (size_t chunk = 1; chunk <= sizeof text; chunk++) {
        AUTO_BUF struct buf found = BUF_INIT(1000);
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        stdio_lines_init(&l, 4);
        for (size_t at = 0; at < sizeof text - 1; at += chunk) {
            size_t n = sizeof text - 1 - at < chunk ? sizeof text - 1 - at : chunk;
            assert_int_equal(write(ends[1], text + at, n), n);
            assert_int_equal(stdio_lines_read(&l, ends[0]), n);
            for (int whole; (whole = stdio_lines_next(&l, &line, &len)) != 0;)
                buf_addf(&found, "%.*s|", whole > 0 ? (int)len : 4, whole > 0 ? line : "long");
        }
        close(ends[1]);
        assert_int_equal(stdio_lines_read(&l, ends[0]), 0);
        assert_string_equal(buf_str(&found), "ab||long|abcd|long|");
        stdio_lines_clear(&l);
        close(ends[0]);
    }
}

#define served(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static const struct CMUnitTest tests[] = {
    served(what_comes_together_is_served_in_order_and_a_ping_passes_a_call),
    served(answers_come_in_any_order_one_for_each),
    served(a_cancelled_call_ends_at_once_and_is_not_answered),
    served(an_id_is_taken_while_its_request_is_served),
    served(a_flood_is_refused_and_hides_no_cancellation),
    served(requests_take_bounded_memory),
    served(a_long_answer_arrives_whole_however_late_it_is_read),
    served(a_batch_is_one_answer_and_what_it_sets_stays),
    served(a_lost_call_is_answered),
    served(calls_end_with_their_server),
    served(calls_outlive_the_input_but_not_the_output),
    served(a_response_reaches_the_call_that_asked),
    served(a_client_without_roots_is_not_asked_for_them),
    cmocka_unit_test(lines_are_found_however_they_come_and_long_ones_are_left_out),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
