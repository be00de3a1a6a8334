/* A container that stays, on a fake engine: commands go out as records, frames come back as events
 * of commands that run, and whatever else comes is the end of it. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/engine/engine.h"
#include "common/engine/entry_frame.h"
#include "common/protocol/entry_record.h"
#include "tests/fakes/engine_rows.h"
#include "tests/fakes/fake_engine.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAITS_MS 5000 /* far longer than any test */
#define PAUSE    "POST /v1.41/containers/" ID "/pause"
#define UNPAUSE  "POST /v1.41/containers/" ID "/unpause"
#define INSPECT  "GET /v1.41/containers/" ID "/json"

/* Bytes of "true" as a command. */
#define TRUE_RECORD "X\0\0\0\12\0\0\0\1Atrue\0"

static const struct engine_spec spec1 = {.image = "any:1",
                                         .psandbox = true,
                                         .helpers_path = "/srv/.helpers/1",
                                         .data_path = "/srv/x",
                                         .user = "1000:1000",
                                         .instance = "t",
                                         .run_id = "r1",
                                         .deadline_unix = 1};
static const struct engine_command true_command = {.argv = (const char *const[]){"true"},
                                                   .n_argv = 1};

struct staying {
    struct fake_reply table[10];
    struct fake_engine *fake;
    struct engine *engine;
    struct err e;
};

static void begin(struct staying *s, struct fake_reply container, const char *state)
{
    const struct fake_reply rows[] = {
        PING, CREATED, container, STARTED, REMOVED, {.match = PAUSE, .status = 204}, WAITED, END,
    };

    *s = (struct staying){0};
    memcpy(s->table, rows, sizeof rows);
    s->table[2].match = ATTACH;
    s->table[2].status = 101;
    s->table[7] = (struct fake_reply){.match = INSPECT, .status = 200, .body = state};
    s->table[8] = (struct fake_reply){.match = UNPAUSE, .status = 500, .body = "{}"};
    s->fake = fake_engine_start(s->table);
    s->engine = fake_engine_connect(s->fake);
    assert_int_equal(
        s->engine->ops->start(s->engine, &spec1, NULL, deadline_in_ms(WAITS_MS), &s->e), 0);
}

static void stop(struct staying *s)
{
    s->engine->ops->finish(s->engine);
    s->engine->ops->free(s->engine);
    fake_engine_stop(s->fake);
}

static uint32_t run_true(struct staying *s)
{
    uint32_t id;

    assert_int_equal(s->engine->ops->exec(s->engine, &true_command, &id, &s->e), 0);
    return id;
}

/* The next event that is one; -1: lost. */
static int next(struct staying *s, struct engine_event *event)
{
    struct pollfd p = {.events = POLLIN};
    int r;

    while ((r = s->engine->ops->read(s->engine, event, &s->e)) == 0 &&
           event->kind == ENGINE_EVENT_NOTHING) {
        p.fd = s->engine->ops->fd(s->engine);
        assert_int_equal(poll(&p, 1, WAITS_MS), 1);
    }
    return r;
}

static void a_command_runs_to_its_end_in_any_portions(void **state)
{
    static const struct fake_later later[] = {
        {sizeof TRUE_RECORD - 1, BYTES(STREAM_OUT STREAM_REPORT)},
        {0},
    };

    (void)state;
    for (size_t chop = 0; chop < 12; chop++) {
        struct engine_event event;
        const char *input;
        struct staying s;
        int end;

        begin(&s,
              (struct fake_reply){.stream = STREAM_STARTED,
                                  .stream_len = sizeof STREAM_STARTED - 1,
                                  .later = later,
                                  .chop = chop,
                                  .hold_ms = WAITS_MS},
              "{}");
        assert_int_equal(run_true(&s), 1);
        assert_int_equal(next(&s, &event), 0);
        assert_int_equal(event.kind, ENGINE_EVENT_TIER);
        assert_int_equal(next(&s, &event), 0);
        assert_int_equal(event.kind, ENGINE_EVENT_OUT);
        assert_int_equal(event.id, 1);
        assert_int_equal(event.len, 2);
        assert_memory_equal(event.data, "hi", 2);
        assert_int_equal(next(&s, &event), 0);
        assert_int_equal(event.kind, ENGINE_EVENT_ENDED);
        assert_int_equal(event.outcome.end, ENGINE_EXITED);
        assert_int_equal(event.outcome.exit_code, 7);
        assert_int_equal(fake_engine_input(s.fake, &input, &end), sizeof TRUE_RECORD - 1);
        assert_memory_equal(input, TRUE_RECORD, sizeof TRUE_RECORD - 1);
        assert_int_equal(s.engine->ops->waits(s.engine), POLLIN);
        /* It has ended: nothing is sent of it. */
        assert_int_equal(s.engine->ops->kill(s.engine, 1, &s.e), 0);
        assert_int_equal(s.engine->ops->control(s.engine, 1, "x", 1, &s.e), 0);
        assert_int_equal(s.engine->ops->waits(s.engine), POLLIN);
        stop(&s);
    }
}

/* A container that says text, perhaps with command 1 running: what becomes of it. */
static void check_lost(const char *text, size_t len, bool ends, const char *inspected,
                       enum err_kind kind, const char *words)
{
    struct engine_event event = {0};
    struct staying s;
    int r;

    begin(&s,
          (struct fake_reply){.stream = text, .stream_len = len, .hold_ms = ends ? 0 : WAITS_MS},
          inspected);
    run_true(&s);
    while ((r = next(&s, &event)) == 0)
        ;
    assert_int_equal(r, -1);
    if (s.e.kind != kind || !strstr(s.e.text, words))
        fail_msg("%s: %s", words, s.e.text);
    s.engine->ops->finish(s.engine);
    assert_int_equal(s.engine->ops->exec(s.engine, &true_command, &event.id, &s.e), -1);
    assert_int_equal(s.e.kind, ERR_LOST);
    assert_int_equal(s.engine->ops->read(s.engine, &event, &s.e), -1);
    assert_int_equal(s.engine->ops->pause(s.engine, true, &s.e), -1);
    stop(&s);
}

static void what_is_not_the_protocol_ends_it(void **state)
{
    (void)state;
    check_lost(BYTES("HTTP/1.1 200 OK"), false, "{}", ERR_PROTOCOL, "kind");
    check_lost(BYTES("\1\0\0\0\0\0\0\5Q\0\0\0\4"), false, "{}", ERR_PROTOCOL, "kind");
    check_lost(BYTES("\1\0\0\0\0\0\0\5O\0\1\0\5"), false, "{}", ERR_PROTOCOL, "limit");
    check_lost(BYTES("\1\0\0\0\0\0\0\5O\0\0\0\4"), false, "{}", ERR_PROTOCOL, "limit");
    check_lost(BYTES("\1\0\0\0\0\0\0\12O\0\0\0\5\0\0\0\2x"), false, "{}", ERR_PROTOCOL, "not run");
    check_lost(BYTES("\1\0\0\0\0\0\0\12R\0\0\0\5\0\0\0\1x"), false, "{}", ERR_PROTOCOL, "frame R");
    check_lost(BYTES(STREAM_STARTED STREAM_STARTED), false, "{}", ERR_PROTOCOL, "same tier");
    check_lost(BYTES(STREAM_REPORT STREAM_REPORT), false, "{}", ERR_PROTOCOL, "not run");
}

static void how_it_was_lost_is_told(void **state)
{
    (void)state;
    check_lost(BYTES(STREAM_STARTED), true,
               "{\"State\":{\"Running\":false,\"OOMKilled\":true,\"ExitCode\":137}}", ERR_LOST,
               "ran out of memory");
    check_lost(BYTES(STREAM_STARTED), true,
               "{\"State\":{\"Running\":false,\"OOMKilled\":false,\"ExitCode\":137}}", ERR_LOST,
               "ended from outside, with status 137");
    check_lost(BYTES(STREAM_STARTED), true, "{}", ERR_LOST, "ended from outside");
    check_lost(BYTES("\2\0\0\0\0\0\0\7no disk"), true, "{}", ERR_REFUSED, "no disk");
}

static void commands_that_make_no_sense_are_refused(void **state)
{
    AUTO_FREE char *large = mem_alloc(ENTRY_RECORD_MAX + 1);
    const struct {
        struct engine_command command;
        enum err_kind kind;
    } cases[] = {
        {{.n_argv = 0}, ERR_INVALID},
        {{.argv = (const char *const[]){""}, .n_argv = 1}, ERR_INVALID},
        {{.argv = (const char *const[]){"a"},
          .n_argv = 1,
          .env = (const char *const[]){"=x"},
          .n_env = 1},
         ERR_INVALID},
        {{.argv = (const char *const[]){"a"},
          .n_argv = 1,
          .env = (const char *const[]){"X"},
          .n_env = 1},
         ERR_INVALID},
        {{.argv = (const char *const[]){large}, .n_argv = 1}, ERR_LIMIT},
        {{.argv = (const char *const[]){"a"},
          .n_argv = 1,
          .streams = large,
          .streams_len = SIZE_MAX},
         ERR_LIMIT},
    };
    struct staying s;
    uint32_t id;

    (void)state;
    memset(large, 'x', ENTRY_RECORD_MAX);
    begin(&s, (struct fake_reply){.hold_ms = WAITS_MS}, "{}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        s.e.kind = ERR_NONE;
        assert_int_equal(s.engine->ops->exec(s.engine, &cases[i].command, &id, &s.e), -1);
        assert_int_equal(s.e.kind, cases[i].kind);
    }
    for (int i = 0; i < ENGINE_COMMANDS_MAX; i++)
        assert_int_equal(run_true(&s), i + 1);
    assert_int_equal(s.engine->ops->exec(s.engine, &true_command, &id, &s.e), -1);
    assert_int_equal(s.e.kind, ERR_LIMIT);
    stop(&s);
}

static void a_pause_is_the_engines_or_there_already(void **state)
{
    struct staying s;

    (void)state;
    begin(&s, (struct fake_reply){.hold_ms = WAITS_MS}, "{\"State\":{\"Paused\":false}}");
    assert_int_equal(s.engine->ops->pause(s.engine, true, &s.e), 0);
    assert_non_null(strstr(fake_engine_log(s.fake), PAUSE "\n"));
    assert_int_equal(s.engine->ops->pause(s.engine, false, &s.e), 0);
    stop(&s);
    begin(&s, (struct fake_reply){.hold_ms = WAITS_MS}, "{\"State\":{\"Paused\":true}}");
    assert_int_equal(s.engine->ops->pause(s.engine, false, &s.e), -1);
    stop(&s);
}

static void what_does_not_go_out_at_once_goes_later(void **state)
{
    AUTO_FREE char *input = mem_alloc(4 << 20);
    AUTO_BUF struct buf streams = BUF_INIT(8 << 20);
    struct engine_command command = true_command;
    struct staying s;
    uint32_t id;

    (void)state;
    entry_record_add('I', 0, input, 4 << 20, &streams);
    command.streams = streams.data;
    command.streams_len = streams.len;
    begin(&s, (struct fake_reply){.hold_ms = WAITS_MS, .deaf = 0, .delay_ms = 0}, "{}");
    assert_int_equal(s.engine->ops->exec(s.engine, &command, &id, &s.e), 0);
    while (s.engine->ops->waits(s.engine) & POLLOUT) {
        struct engine_event event;
        struct pollfd p = {.fd = s.engine->ops->fd(s.engine), .events = POLLOUT};

        assert_int_equal(poll(&p, 1, WAITS_MS), 1);
        if (s.engine->ops->read(s.engine, &event, &s.e) < 0)
            break; /* the fake keeps no more than it has room for */
    }
    stop(&s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_command_runs_to_its_end_in_any_portions),
    cmocka_unit_test(what_is_not_the_protocol_ends_it),
    cmocka_unit_test(how_it_was_lost_is_told),
    cmocka_unit_test(commands_that_make_no_sense_are_refused),
    cmocka_unit_test(a_pause_is_the_engines_or_there_already),
    cmocka_unit_test(what_does_not_go_out_at_once_goes_later),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
