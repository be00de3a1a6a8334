/* The body of a call, from a worker's request to what a supervisor has of it. */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/entry_record.h"
#include "common/protocol/run_body.h"
#include "tests/unit/unit.h"

#include <sys/socket.h>

#define LENGTH_LEN 4

static const struct run_text args[] = {{"one", 3}, {"two words", 9}};
static const struct run_env env[] = {{"A", "1"}, {"B", "x=y"}};

/* The request's body, taken apart. */
static struct run_body body_of(const struct run_request *request, const char *cwd)
{
    AUTO_BUF struct buf message = BUF_INIT(WIRE_MESSAGE_MAX);
    struct run_body body = RUN_BODY_INIT;
    struct err e = ERR_INIT;

    assert_works(run_body_write(request, cwd, &message, &e), e);
    assert_int_equal(u32_get(message.data), message.len - LENGTH_LEN);
    assert_true(run_body_begins((unsigned char *)message.data, message.len));
    buf_add(&body.message, message.data + LENGTH_LEN, message.len - LENGTH_LEN);
    assert_works(run_body_take(&body, &e), e);
    return body;
}

static char *text_of(const struct run_body *body, char tag)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);

    entry_records_join(body->message.data, body->streams_len, tag, &text);
    return buf_take(&text);
}

static void a_request_arrives_as_it_was(void **state)
{
    const struct run_request request = {.code = {"print(1)\0#", 10},
                                        .input = {"in", 2},
                                        .args = args,
                                        .n_args = 2,
                                        .env = env,
                                        .n_env = 2};
    (void)state;
    AUTO_RUN_BODY struct run_body body = body_of(&request, "/data/x");
    AUTO_FREE char *code = text_of(&body, 'C');
    AUTO_FREE char *input = text_of(&body, 'I');

    assert_true(body.has_code);
    assert_int_equal(body.code_len, 10);
    assert_memory_equal(code, "print(1)\0#", 10);
    assert_int_equal(body.input_len, 2);
    assert_string_equal(input, "in");
    assert_int_equal(body.n_args, 2);
    assert_string_equal(body.args[1], "two words");
    assert_int_equal(body.n_env, 2);
    assert_string_equal(body.env[0], "A=1");
    assert_string_equal(body.env[1], "B=x=y");
    assert_string_equal(body.cwd, "/data/x");
}

static void what_is_not_given_is_not_there(void **state)
{
    const struct run_request run = {.code = {"", 0}}, command = {.args = args, .n_args = 1};
    (void)state;
    AUTO_RUN_BODY struct run_body a = body_of(&run, NULL);
    AUTO_RUN_BODY struct run_body b = body_of(&command, NULL);

    assert_true(a.has_code && a.code_len == 0 && a.input_len == 0 && a.n_args == 0 && !a.cwd);
    assert_true(!b.has_code && b.streams_len == 0 && b.n_args == 1 && b.n_env == 0);
}

static void large_texts_come_in_parts(void **state)
{
    const size_t len = 3u << 20;
    AUTO_FREE char *text = mem_alloc(len + 1);
    const struct run_request request = {.code = {text, len}, .input = {text, len - 1}};
    (void)state;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + i % 23);
    AUTO_RUN_BODY struct run_body body = body_of(&request, NULL);
    AUTO_FREE char *code = text_of(&body, 'C');
    AUTO_FREE char *input = text_of(&body, 'I');

    assert_int_equal(body.code_len, len);
    assert_int_equal(body.input_len, len - 1);
    assert_string_equal(code, text);
    assert_memory_equal(input, text, len - 1);
}

static void what_cannot_be_sent_is_told_to_the_worker(void **state)
{
    AUTO_FREE char *large = mem_alloc(ENTRY_RECORD_MAX + 1);
    const struct run_text bad_arg[] = {{"a\0b", 3}}, large_arg[] = {{large, ENTRY_RECORD_MAX}};
    const struct run_env bad_name[] = {{"A=B", "x"}}, no_name[] = {{"", "x"}};
    const struct {
        struct run_request request;
        enum err_kind kind;
        const char *part;
    } cases[] = {
        {{.args = bad_arg, .n_args = 1}, ERR_INVALID, "args: every argument"},
        {{.args = large_arg, .n_args = 1}, ERR_LIMIT, "arguments and environment are over"},
        {{.env = bad_name, .n_env = 1}, ERR_INVALID, "environment"},
        {{.env = no_name, .n_env = 1}, ERR_INVALID, "environment"},
        {{.code = {large, ENTRY_RECORD_MAX}}, ERR_LIMIT, "code, stdin, arguments"},
    };

    (void)state;
    memset(large, 'x', ENTRY_RECORD_MAX);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        /* Room for arguments that are too long, not for that code. */
        AUTO_BUF struct buf out = BUF_INIT(cases[i].request.code.len > 0 ? ENTRY_RECORD_MAX
                                                                         : 2 * ENTRY_RECORD_MAX);
        struct err e = ERR_INIT;

        assert_fails(run_body_write(&cases[i].request, NULL, &out, &e), cases[i].kind, e);
        assert_contains(e.text, cases[i].part);
    }
}

#define C "C\0\0\0\5\0\0\0\0c"
#define I "I\0\0\0\5\0\0\0\0i"
#define X "X\0\0\0\4\0\0\0\0"
#define B(s)                                                                                       \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }

static void a_worker_is_not_trusted(void **state)
{
    static const struct run_text bad[] = {
        B(""),
        B("{\"code\":\"print(1)\"}"),
        B(C),   /* no start */
        B(X X), /* two of them, and bytes behind one */
        B(X "x"),
        B(I C X),                                       /* code behind the input */
        B("C\0\0\0\4\0\0\0\0" C "C\0\0\0\4\0\0\0\0" X), /* nothing again and again */
        B("I\0\0\0\4\0\0\0\0" X),
        B("C\0\0\0\5\0\0\0\7c" X), /* another command's */
        B("Z\0\0\0\4\0\0\0\0" X),  /* orders to the container */
        B("N\0\0\0\4\0\0\0\0" X),
        B("P\0\0\0\5\0\0\0\0p" X),
        B("K\0\0\0\5\0\0\0\0k" X),
        B("C\0\0\0\3\0\0\0"), /* lengths that are none */
        B("C\0\x20\0\1\0\0\0\0"),
        B("C\xff\xff\xff\xff\0\0\0\0"),
        B("X\0\0\0\7\0\0\0\0T1\0"), /* items of ours */
        B("X\0\0\0\7\0\0\0\0La\0"),
        B("X\0\0\0\6\0\0\0\0K\0"),
        B("X\0\0\0\7\0\0\0\0EA\0"), /* a variable without a value, without a name */
        B("X\0\0\0\10\0\0\0\0E=a\0"),
        B("X\0\0\0\6\0\0\0\0Aa"), /* an item without its end, without a letter */
        B("X\0\0\0\5\0\0\0\0\0"),
        B("X\0\0\0\12\0\0\0\0Da\0Db\0"), /* two directories */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        AUTO_RUN_BODY struct run_body body = RUN_BODY_INIT;
        struct err e = ERR_INIT;

        buf_add(&body.message, bad[i].data, bad[i].len);
        if (run_body_take(&body, &e) == 0)
            fail_msg("case %zu is taken", i);
        assert_int_equal(e.kind, ERR_INVALID);
    }
}

static void it_comes_over_a_socket(void **state)
{
    const struct run_request request = {.code = {"c", 1}};
    AUTO_BUF struct buf message = BUF_INIT(1024);
    AUTO_RUN_BODY struct run_body body = RUN_BODY_INIT;
    struct err e = ERR_INIT;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_works(run_body_write(&request, NULL, &message, &e), e);
    assert_int_equal(write(pair[0], message.data, message.len), message.len);
    assert_works(sock_recv_message(pair[1], &body.message, NULL, deadline_in_ms(20000), &e), e);
    assert_works(run_body_take(&body, &e), e);
    assert_int_equal(body.code_len, 1);
    close(pair[0]);
    close(pair[1]);
}

static void its_beginning_is_told_from_its_middle(void **state)
{
    static const char start[] = "\0\0\1\0C\0\0\0\5\0\0\0\0print";
    static const struct run_text other[] = {B("C\0\0\0\5\0\0\0\0print"), B("\0\0\0\5\0\0\0\0print"),
                                            B("print(1)"), B("\0\0\0\0\0\0\0\0\0\0\0\0\0"),
                                            B("\0\0\1\0{\"code\":1}")};

    (void)state;
    for (size_t len = 1; len < sizeof start; len++)
        assert_true(run_body_begins((const unsigned char *)start, len));
    assert_false(run_body_begins((const unsigned char *)start, 0));
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        assert_false(run_body_begins((const unsigned char *)other[i].data, other[i].len));
}

static void what_never_will_be_a_record_is_told_from_one_that_is_not_all_there(void **state)
{
    static const struct {
        const char *data;
        size_t len;
        ssize_t taken;
    } cases[] = {
        {"O\0\0\0", 4, 0},
        {"O\0\0\0\5\0\0\0\7", 9, 0},
        {"O\0\0\0\4\0\0\0\7", 9, 9},
        {"O\0\0\0\5\0\0\0\7x!", 11, 10},
        {"O\0\0\0\3", 5, -1},
        {"O\0\0\0\0", 5, -1},
        {"O\0\x20\0\0", 5, 0},
        {"O\0\x20\0\1", 5, -1}, /* 2 MiB are the most */
        {"O\xff\xff\xff\xff", 5, -1},
    };
    struct entry_record record;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(entry_record_take(cases[i].data, cases[i].len, &record), cases[i].taken);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_request_arrives_as_it_was),
    cmocka_unit_test(what_is_not_given_is_not_there),
    cmocka_unit_test(large_texts_come_in_parts),
    cmocka_unit_test(what_cannot_be_sent_is_told_to_the_worker),
    cmocka_unit_test(a_worker_is_not_trusted),
    cmocka_unit_test(it_comes_over_a_socket),
    cmocka_unit_test(what_never_will_be_a_record_is_told_from_one_that_is_not_all_there),
    cmocka_unit_test(its_beginning_is_told_from_its_middle),
};
UNIT_TESTS(tests)
