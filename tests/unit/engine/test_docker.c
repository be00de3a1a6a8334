/* Runs on a fake Docker engine: the order of calls, how programs end, and that no container is left
 * behind. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"
#include "tests/fakes/engine_rows.h"
#include "tests/fakes/engine_run.h"
#include "tests/fakes/fake_engine.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct taken {
    struct buf text[2];
    size_t stop_at;
};

static bool take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct taken *t = ctx;

    buf_add(&t->text[stream], data, len);
    return !t->stop_at || t->text[0].len + t->text[1].len < t->stop_at;
}

static const struct engine_spec spec1 = SPEC;

static const struct engine_command program1 = {
    .run = true, .streams = "C\0\0\0\5\0\0\0\0c", .streams_len = 10, .timeout_ms = 2500};

static bool leave(void *ctx)
{
    (void)ctx;
    return false;
}

/* Everything that a run gave. */
struct result {
    int returned;
    struct engine_outcome outcome;
    struct err e;
    struct taken taken;
    char log[4096];
    char input[256];
    size_t input_len;
    int input_end;
};

static void result_clear(struct result *r)
{
    buf_clear(&r->taken.text[0]);
    buf_clear(&r->taken.text[1]);
}

/* Runs program1 in spec on a fake engine; cancel_fd is for the program; the deadline is after ms.
 */
static struct result run(const struct fake_reply *table, const struct engine_spec *spec,
                         size_t stop_at, int cancel_fd, int ms)
{
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct result r = {.taken = {.text = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)}}};
    struct engine_attend attend = {.fd = cancel_fd, .tick = leave};
    struct deadline d = deadline_in_ms(ms);
    const struct engine_run program = {&program1, take, &r.taken, &attend, d};
    const char *input;

    r.taken.stop_at = stop_at;
    r.returned = engine->ops->start(engine, spec, NULL, d, &r.e);
    if (r.returned == 0)
        r.returned = engine_run_to_end(engine, &program, &r.outcome, &r.e);
    engine->ops->finish(engine);
    engine->ops->finish(engine);
    engine->ops->free(engine);
    usleep(20000);
    for (int i = 0; r.returned == 0 && i < 500; i++) { /* until the fake has seen its input's end */
        fake_engine_input(f, &input, &r.input_end);
        if (r.input_end)
            break;
        usleep(10000);
    }
    snprintf(r.log, sizeof r.log, "%s", fake_engine_log(f));
    r.input_len = fake_engine_input(f, &input, &r.input_end);
    memcpy(r.input, input, r.input_len < sizeof r.input ? r.input_len : sizeof r.input);
    fake_engine_stop(f);
    return r;
}

static int count(const char *log, const char *what)
{
    int n = 0;

    for (const char *p = strstr(log, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

static void a_run_makes_five_calls_and_ends_at_the_report(void **state)
{
    static const struct fake_later stream[] = {
        {1, BYTES(STREAM_OUT STREAM_ERR STREAM_REPORT)},
        {0},
    };

    (void)state;
    assert_int_equal(sizeof REPORT - 1, 0x55);
    for (size_t chop = 0; chop < 12; chop++) {
        const struct fake_reply table[] = {
            PING,
            CREATED,
            {.match = ATTACH, .status = 101, .later = stream, .chop = chop, .hold_ms = 3000},
            STARTED,
            REMOVED,
            END,
        };
        struct result r = run(table, &spec1, 0, -1, 5000);

        if (r.returned < 0)
            fail_msg("%s", r.e.text);
        assert_int_equal(r.outcome.end, ENGINE_EXITED);
        assert_int_equal(r.outcome.exit_code, 7);
        assert_int_equal(r.outcome.cpu_us, 5);
        assert_int_equal(r.outcome.peak_memory_bytes, 6);
        assert_true(r.outcome.ended_us >= r.outcome.started_us && r.outcome.started_us > 0);
        assert_string_equal(buf_str(&r.taken.text[0]), "hi");
        assert_string_equal(buf_str(&r.taken.text[1]), "no");
        assert_string_equal(r.log, "GET /_ping\n"
                                   "POST /v1.41/containers/create?name=sandcgi-r1\n" ATTACH "\n"
                                   "POST /v1.41/containers/" ID "/start\n"
                                   "DELETE /v1.41/containers/sandcgi-r1?force=1&v=1\n");
        assert_int_equal(r.input_len, 10 + 15);
        assert_memory_equal(r.input, "C\0\0\0\5\0\0\0\1cX\0\0\0\12\0\0\0\1T3500\0", r.input_len);
        assert_int_equal(r.input_end, 1);
        result_clear(&r);
    }
}

static void a_plain_image_gets_the_code_and_the_end_of_input(void **state)
{
    static const char stream[] = "\1\0\0\0\0\0\0\2ok";
    const struct fake_reply table[] = {
        PING,
        CREATED,
        {.match = ATTACH, .status = 101, .stream = stream, .stream_len = 10, .hold_ms = 3000},
        STARTED,
        WAITED,
        {.match = "GET /v1.41/containers/" ID "/json",
         .status = 200,
         .body = "{\"State\":{\"Running\":false,\"OOMKilled\":false,\"ExitCode\":137}}"},
        REMOVED,
        END,
    };
    struct engine_spec spec = spec1;
    struct result r;

    (void)state;
    spec.protocol = 0;
    r = run(table, &spec, 0, -1, 5000);
    assert_int_equal(r.returned, 0);
    assert_int_equal(r.outcome.end, ENGINE_EXITED);
    assert_int_equal(r.outcome.exit_code, 137);
    assert_int_equal(r.outcome.signal, 0);
    assert_false(r.outcome.out_of_memory);
    assert_string_equal(buf_str(&r.taken.text[0]), "ok");
    assert_int_equal(r.input_len, 1);
    assert_int_equal(r.input_end, 1);
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);
}

/* The stream ends without a report; state_json is what inspect says then. */
static struct result run_cut_off(const char *stream, size_t len, const char *state_json)
{
    const struct fake_later later[] = {{1, stream, len}, {0}};
    const struct fake_reply table[] = {
        PING,
        CREATED,
        {.match = ATTACH, .status = 101, .later = later, .hold_ms = 1000},
        STARTED,
        WAITED,
        {.match = "GET /v1.41/containers/" ID "/json",
         .status = state_json ? 200 : 404,
         .body = state_json ? state_json : "{\"message\":\"No such container\"}"},
        REMOVED,
        END,
    };

    return run(table, &spec1, 0, -1, 5000);
}

static void an_end_without_a_report_is_what_the_engine_says(void **state)
{
    struct result r;

    (void)state;
    r = run_cut_off(BYTES(STREAM_OUT),
                    "{\"State\":{\"Running\":false,\"OOMKilled\":true,\"ExitCode\":137}}");
    assert_int_equal(r.returned, 0);
    assert_int_equal(r.outcome.end, ENGINE_EXITED);
    assert_int_equal(r.outcome.signal, SIGKILL);
    assert_int_equal(r.outcome.exit_code, -1);
    assert_true(r.outcome.out_of_memory);
    assert_string_equal(buf_str(&r.taken.text[0]), "hi");
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);

    r = run_cut_off("", 0, "{\"State\":{\"Running\":false,\"OOMKilled\":false,\"ExitCode\":137}}");
    assert_int_equal(r.outcome.end, ENGINE_KILLED);
    assert_int_equal(r.returned, 0);
    result_clear(&r);

    r = run_cut_off("", 0, NULL);
    assert_int_equal(r.outcome.end, ENGINE_KILLED);
    assert_int_equal(r.returned, 0);
    result_clear(&r);

    r = run_cut_off("\2\0\0\0\0\0\0\7no disk", 15,
                    "{\"State\":{\"Running\":false,\"OOMKilled\":false,\"ExitCode\":1}}");
    assert_int_equal(r.returned, -1);
    assert_int_equal(r.e.kind, ERR_REFUSED);
    assert_non_null(strstr(r.e.text, "no disk"));
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);
}

static void a_container_that_breaks_the_protocol_is_killed(void **state)
{
    static const char *const streams[] = {"HTTP/1.1 200 OK", "\1\0\0\0\0\0\0\7X\0\0\0\2hi"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct result r = run_cut_off(streams[i], 15, NULL);

        assert_int_equal(r.returned, 0);
        assert_int_equal(r.outcome.end, ENGINE_KILLED);
        assert_int_equal(count(r.log, "DELETE"), 1);
        assert_int_equal(count(r.log, "/wait"), 0);
        result_clear(&r);
    }
}

static void deadline_cancellation_and_output_limit_kill(void **state)
{
    static const struct fake_later stream[] = {{1, BYTES(STREAM_OUT STREAM_ERR)}, {0}};
    const struct fake_reply table[] = {
        PING,    CREATED, {.match = ATTACH, .status = 101, .later = stream, .hold_ms = 5000},
        STARTED, REMOVED, END,
    };
    struct result r;
    int pair[2];

    (void)state;
    r = run(table, &spec1, 0, -1, 3000);
    assert_int_equal(r.returned, 0);
    assert_int_equal(r.outcome.end, ENGINE_TIMED_OUT);
    assert_int_equal(r.outcome.signal, SIGKILL);
    assert_string_equal(buf_str(&r.taken.text[1]), "no");
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[1]);
    r = run(table, &spec1, 0, pair[0], 5000);
    assert_int_equal(r.outcome.end, ENGINE_CANCELLED);
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);
    close(pair[0]);

    r = run(table, &spec1, 2, -1, 5000);
    assert_int_equal(r.outcome.end, ENGINE_OUTPUT_LIMIT);
    assert_string_equal(buf_str(&r.taken.text[1]), "");
    assert_int_equal(count(r.log, "DELETE"), 1);
    result_clear(&r);
}

static void a_failure_half_way_leaves_nothing(void **state)
{
    static const char message[] = "{\"message\":\"driver failed:\\nno space left\"}";
    const struct fake_reply no_start[] = {
        PING,
        CREATED,
        {.match = ATTACH, .status = 101, .stream = "", .hold_ms = 2000},
        {.match = "POST /v1.41/containers/" ID "/start", .status = 500, .body = message},
        REMOVED,
        END,
    };
    const struct fake_reply no_attach[] = {
        PING, CREATED, {.match = ATTACH, .status = 500, .body = message}, REMOVED, END};
    const struct fake_reply no_http[] = {
        PING, CREATED, {.match = ATTACH, .status = 77, .body = message}, REMOVED, END};
    const struct fake_reply no_id[] = {
        PING,
        {.match = "POST /v1.41/containers/create", .status = 201, .body = "{\"Id\":\"../x\"}"},
        REMOVED,
        END};
    const struct fake_reply no_image[] = {PING,
                                          {.match = "POST /v1.41/containers/create",
                                           .status = 404,
                                           .body = "{\"message\":\"No such image: runner-x:1\"}"},
                                          {.match = "DELETE", .status = 404},
                                          END};
    const struct fake_reply no_directory[] = {
        PING,
        {.match = "POST /v1.41/containers/create",
         .status = 400,
         .body = "{\"message\":\"invalid mount config for type \\\"bind\\\": bind source path "
                 "does not exist: /srv/x\"}"},
        {.match = "DELETE", .status = 404},
        END};
    const struct {
        const struct fake_reply *table;
        enum err_kind kind;
        const char *words;
    } cases[] = {
        {no_start, ERR_REFUSED, "driver failed: no space left"},
        {no_attach, ERR_REFUSED, "driver failed: no space left"},
        {no_http, ERR_PROTOCOL, "not HTTP"},
        {no_id, ERR_PROTOCOL, "id"},
        {no_image, ERR_NOT_FOUND, "the image runner-x:1 is missing"},
        {no_directory, ERR_NOT_FOUND, "the sandbox directory does not exist"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result r = run(cases[i].table, &spec1, 0, -1, 2000);

        assert_int_equal(r.returned, -1);
        assert_int_equal(r.e.kind, cases[i].kind);
        if (!strstr(r.e.text, cases[i].words))
            fail_msg("%s", r.e.text);
        assert_int_equal(count(r.log, "DELETE"), 1);
        result_clear(&r);
    }
}

static void a_name_in_use_is_not_removed(void **state)
{
    const struct fake_reply table[] = {
        PING,
        {.match = "POST /v1.41/containers/create",
         .status = 409,
         .body = "{\"message\":\"Conflict. The container name is in use\"}"},
        REMOVED,
        END};
    struct result r = run(table, &spec1, 0, -1, 2000);

    (void)state;
    assert_int_equal(r.returned, -1);
    assert_int_equal(count(r.log, "DELETE"), 0);
    result_clear(&r);
}

static void a_removal_that_is_refused_for_a_while_is_asked_for_again(void **state)
{
    const struct fake_reply table[] = {
        PING,
        CREATED,
        {.match = ATTACH, .status = 500, .body = "{\"message\":\"no\"}"},
        {.match = "DELETE", .status = 500, .body = "{\"message\":\"it starts\"}", .times = 40},
        REMOVED,
        END};
    struct fake_engine *f = fake_engine_start(table);
    struct engine *engine = fake_engine_connect(f);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(engine->ops->start(engine, &spec1, NULL, deadline_in_ms(2000), &e), -1);
    engine->ops->free(engine);
    assert_int_equal(count(fake_engine_log(f), "DELETE"), 41); /* more than other removals try */
    fake_engine_stop(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_run_makes_five_calls_and_ends_at_the_report),
    cmocka_unit_test(a_plain_image_gets_the_code_and_the_end_of_input),
    cmocka_unit_test(an_end_without_a_report_is_what_the_engine_says),
    cmocka_unit_test(a_container_that_breaks_the_protocol_is_killed),
    cmocka_unit_test(deadline_cancellation_and_output_limit_kill),
    cmocka_unit_test(a_failure_half_way_leaves_nothing),
    cmocka_unit_test(a_name_in_use_is_not_removed),
    cmocka_unit_test(a_removal_that_is_refused_for_a_while_is_asked_for_again),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
