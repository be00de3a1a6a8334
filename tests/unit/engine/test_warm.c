/* A container that waits for its program, on a fake engine: how far it is, what it may say, that it
 * is lost in time, and that handing over asks the engine nothing. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/engine/docker_self.h"
#include "common/engine/engine.h"
#include "tests/fakes/engine_rows.h"
#include "tests/fakes/engine_run.h"
#include "tests/fakes/fake_engine.h"
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAMES           "numpy pandas"
#define PRELOAD         "P\0\0\0\20\0\0\0\0" NAMES
#define PROGRAM         "C\0\0\0\5\0\0\0\1cX\0\0\0\4\0\0\0\1"
#define PROGRAM_2       "C\0\0\0\5\0\0\0\2cX\0\0\0\4\0\0\0\2"
#define STREAM_OUT_2    "\1\0\0\0\0\0\0\13O\0\0\0\6\0\0\0\2hi"
#define STREAM_REPORT_2 "\1\0\0\0\0\0\0\x5eR\0\0\0\x59\0\0\0\2" REPORT
#define NEXT            "N\0\0\0\4\0\0\0\0"
#define WAITS_MS        5000 /* far longer than any test */
#define UPDATE          "POST /v1.41/containers/" ID "/update"
#define UPDATED(code, text)                                                                        \
    {                                                                                              \
        .match = UPDATE, .status = (code), .body = (text)                                          \
    }
#define INSPECTED(code, quota)                                                                     \
    {                                                                                              \
        .match = "GET /v1.41/containers/" ID "/json", .status = (code),                            \
        .body = "{\"HostConfig\":{\"CpuPeriod\":1000000,\"CpuQuota\":" #quota "}}"                 \
    }

static const struct engine_command program1 = {
    .run = true, .streams = "C\0\0\0\5\0\0\0\0c", .streams_len = 10};

static bool take(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    (void)stream;
    buf_add(ctx, data, len);
    return true;
}

/* A container that waits on a fake engine of its own. */
struct waiting {
    struct fake_reply table[9];
    struct fake_engine *fake;
    struct engine *engine;
    struct err e;
    struct engine_wait wait;
    struct buf text;
    struct engine_outcome out;
};

/* container: what its stream does; update, inspect: what the engine answers to these. */
static void wait_with_rows(struct waiting *w, int protocol, struct fake_reply container,
                           struct fake_reply update, struct fake_reply inspect)
{
    struct engine_spec spec = SPEC;
    const struct fake_reply rows[] = {PING,   CREATED, container, STARTED, REMOVED,
                                      WAITED, update,  inspect,   END};

    *w = (struct waiting){.text = BUF_INIT(4096)};
    memcpy(w->table, rows, sizeof rows);
    w->table[2].match = ATTACH;
    w->table[2].status = 101;
    w->fake = fake_engine_start(w->table);
    w->engine = fake_engine_connect(w->fake);
    spec.protocol = protocol;
    assert_int_equal(w->engine->ops->start(w->engine, &spec, NULL, deadline_in_ms(WAITS_MS), &w->e),
                     0);
}

static void wait_with(struct waiting *w, struct fake_reply container)
{
    const struct fake_reply none = END;

    wait_with_rows(w, 2, container, none, none);
}

static void stop(struct waiting *w)
{
    w->engine->ops->finish(w->engine);
    w->engine->ops->free(w->engine);
    assert_non_null(strstr(fake_engine_log(w->fake), REMOVE "\n"));
    fake_engine_stop(w->fake);
    buf_clear(&w->text);
}

static int look(struct waiting *w)
{
    struct engine_event ev = {.kind = ENGINE_EVENT_TIER};
    int r = 0;

    while (r == 0 && ev.kind != ENGINE_EVENT_NOTHING) {
        r = w->engine->ops->read(w->engine, &ev, &w->e);
        if (r == 0 && ev.kind == ENGINE_EVENT_TIER)
            w->wait = ev.wait;
    }
    return r;
}

/* Reads until it is as far as tier, or lost. */
static int look_until(struct waiting *w, enum engine_tier tier)
{
    struct pollfd p = {.fd = w->engine->ops->fd(w->engine), .events = POLLIN};
    int r;

    while ((r = look(w)) == 0 && w->wait.tier < tier)
        assert_int_equal(poll(&p, 1, WAITS_MS), 1);
    return r;
}

static int run(struct waiting *w)
{
    const struct engine_run program = {
        .program = &program1, .output = take, .ctx = &w->text, .end = deadline_in_ms(WAITS_MS)};

    w->wait = (struct engine_wait){0};
    return engine_run_to_end(w->engine, &program, &w->out, &w->e);
}

static void it_says_how_far_it_is_and_takes_its_program(void **state)
{
    static const struct fake_later later[] = {
        {sizeof PRELOAD - 1, BYTES(STREAM_PRELOADED)},
        {sizeof PRELOAD PROGRAM - 1, BYTES(STREAM_WARM STREAM_OUT STREAM_ERR STREAM_REPORT)},
        {0},
    };

    (void)state;
    for (size_t chop = 0; chop < 12; chop++) {
        struct waiting w;
        const char *input;
        size_t asked;
        int end;

        wait_with(&w, (struct fake_reply){.stream = STREAM_STARTED,
                                          .stream_len = sizeof STREAM_STARTED - 1,
                                          .later = later,
                                          .chop = chop,
                                          .hold_ms = WAITS_MS});
        assert_int_equal(look_until(&w, ENGINE_TIER_STARTED), 0);
        assert_int_equal(w.wait.tier, ENGINE_TIER_STARTED);
        assert_int_equal(w.engine->ops->preload(w.engine, NAMES, &w.e), 0);
        assert_int_equal(look_until(&w, ENGINE_TIER_PRELOADED), 0);
        asked = strlen(fake_engine_log(w.fake));
        assert_int_equal(run(&w), 0);
        assert_int_equal(strlen(fake_engine_log(w.fake)), asked);
        assert_int_equal(w.out.end, ENGINE_EXITED);
        assert_int_equal(w.out.exit_code, 7);
        assert_true(w.out.warm);
        assert_string_equal(buf_str(&w.text), "hino");
        assert_int_equal(fake_engine_input(w.fake, &input, &end), sizeof PRELOAD PROGRAM - 1);
        assert_memory_equal(input, PRELOAD PROGRAM, sizeof PRELOAD PROGRAM - 1);
        stop(&w);
    }
}

static void one_of_several_languages_may_tell_its_memory_again(void **state)
{
    static const char words[] = "\1\0\0\0\0\0\0\22W\0\0\0\15\0\0\0\0started 5" STREAM_STARTED
                                "\1\0\0\0\0\0\0\24W\0\0\0\17\0\0\0\0preloaded 7";
    const struct fake_reply none = END;
    struct waiting w;

    (void)state;
    wait_with_rows(
        &w, 3,
        (struct fake_reply){.stream = words, .stream_len = sizeof words - 1, .hold_ms = WAITS_MS},
        none, none);
    assert_int_equal(look_until(&w, ENGINE_TIER_PRELOADED), 0);
    assert_int_equal(w.wait.memory_bytes, 7);
    stop(&w);
    wait_with_rows(&w, 3,
                   (struct fake_reply){.stream = STREAM_PRELOADED STREAM_STARTED,
                                       .stream_len = sizeof STREAM_PRELOADED STREAM_STARTED - 1,
                                       .hold_ms = WAITS_MS},
                   none, none);
    usleep(20000);
    assert_int_equal(look(&w), -1);
    assert_int_equal(w.e.kind, ERR_PROTOCOL);
    stop(&w);
}

static void a_program_may_come_before_any_word(void **state)
{
    static const struct fake_later later[] = {
        {1, BYTES(STREAM_STARTED STREAM_OUT STREAM_REPORT)},
        {0},
    };
    struct waiting w;

    (void)state;
    wait_with(&w, (struct fake_reply){.later = later, .hold_ms = WAITS_MS});
    assert_int_equal(look(&w), 0);
    assert_int_equal(w.wait.tier, ENGINE_TIER_NONE);
    assert_int_equal(run(&w), 0);
    assert_false(w.out.warm);
    assert_string_equal(buf_str(&w.text), "hi");
    assert_int_equal(look(&w), 0); /* its connection stays */
    stop(&w);
}

/* What the container has for the second run: a word, and then that run's frames. */
static void run_wipe_and(struct waiting *w, const struct fake_later *later)
{
    wait_with(w, (struct fake_reply){.stream = STREAM_PRELOADED,
                                     .stream_len = sizeof STREAM_PRELOADED - 1,
                                     .later = later,
                                     .hold_ms = WAITS_MS});
    assert_int_equal(w->engine->ops->next(w->engine, &w->e), -1); /* before the first run */
    assert_int_equal(w->e.kind, ERR_LOST);
    assert_int_equal(look_until(w, ENGINE_TIER_PRELOADED), 0);
    assert_int_equal(run(w), 0);
    assert_int_equal(w->engine->ops->next(w->engine, &w->e), 0);
    assert_int_equal(w->engine->ops->next(w->engine, &w->e), -1); /* it is under way */
}

static void a_wipe_behind_more_input_than_is_kept_is_refused(void **state)
{
    static const struct fake_later later[] = {
        {sizeof PROGRAM - 1, BYTES(STREAM_OUT STREAM_REPORT)},
        {0},
    };
    struct waiting w;

    (void)state;
    wait_with(&w, (struct fake_reply){.stream = STREAM_PRELOADED,
                                      .stream_len = sizeof STREAM_PRELOADED - 1,
                                      .later = later,
                                      .hold_ms = WAITS_MS});
    assert_int_equal(look_until(&w, ENGINE_TIER_PRELOADED), 0);
    assert_int_equal(run(&w), 0);
    ((struct docker *)w.engine)->container.talk.input.max = 1;
    assert_fails(w.engine->ops->next(w.engine, &w.e), ERR_LIMIT, w.e);
    stop(&w);
}

static void it_is_wiped_and_takes_the_next_program(void **state)
{
    static const struct fake_later later[] = {
        {sizeof PROGRAM - 1, BYTES(STREAM_OUT STREAM_REPORT)},
        {sizeof PROGRAM NEXT - 1, BYTES(STREAM_STARTED)},
        {sizeof PROGRAM NEXT PROGRAM - 1, BYTES(STREAM_OUT_2 STREAM_REPORT_2)},
        {0},
    };
    struct waiting w;
    const char *input;
    size_t asked;
    int end;

    (void)state;
    run_wipe_and(&w, later);
    assert_int_equal(look_until(&w, ENGINE_TIER_STARTED), 0);
    assert_int_equal(w.wait.tier, ENGINE_TIER_STARTED);
    asked = strlen(fake_engine_log(w.fake));
    assert_int_equal(run(&w), 0);
    assert_int_equal(strlen(fake_engine_log(w.fake)), asked);
    assert_int_equal(w.out.exit_code, 7);
    assert_string_equal(buf_str(&w.text), "hihi");
    assert_int_equal(fake_engine_input(w.fake, &input, &end), sizeof PROGRAM NEXT PROGRAM_2 - 1);
    assert_memory_equal(input, PROGRAM NEXT PROGRAM_2, sizeof PROGRAM NEXT PROGRAM_2 - 1);
    stop(&w);
}

static void doubt_is_told_in_the_containers_words(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        enum err_kind kind;
        const char *words;
    } cases[] = {
        {BYTES("\1\0\0\0\0\0\0\26F\0\0\0\21\0\0\0\0a socket\nleft"), ERR_REFUSED, "a socket left"},
        {BYTES("\1\0\0\0\0\0\0\26F\0\0\0\21\0\0\0\1a socket\nleft"), ERR_PROTOCOL, "does not run"},
        {BYTES(STREAM_OUT), ERR_PROTOCOL, "does not run"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_later later[] = {
            {sizeof PROGRAM - 1, BYTES(STREAM_OUT STREAM_REPORT)},
            {sizeof PROGRAM NEXT - 1, cases[i].text, cases[i].len},
            {0},
        };
        struct waiting w;

        run_wipe_and(&w, later);
        assert_int_equal(look_until(&w, ENGINE_TIER_STARTED), -1);
        assert_int_equal(w.e.kind, cases[i].kind);
        assert_non_null(strstr(w.e.text, cases[i].words));
        stop(&w);
    }
}

#define LOADING "\1\0\0\0\0\0\0\16L\0\0\0\11\0\0\0\1begun"
#define LOADED  "\1\0\0\0\0\0\0\15L\0\0\0\10\0\0\0\1done"
#define GO      "G\0\0\0\4\0\0\0\1"

static void a_program_is_held_until_it_may_begin(void **state)
{
    static const struct fake_later later[] = {
        {sizeof PROGRAM - 1, BYTES(LOADING LOADED)},
        {sizeof PROGRAM GO - 1, BYTES(STREAM_WARM STREAM_OUT STREAM_REPORT)},
        {0},
    };
    struct waiting w;
    const char *input;
    int end;

    (void)state;
    wait_with(&w, (struct fake_reply){.stream = STREAM_STARTED,
                                      .stream_len = sizeof STREAM_STARTED - 1,
                                      .later = later,
                                      .hold_ms = WAITS_MS});
    assert_int_equal(look_until(&w, ENGINE_TIER_STARTED), 0);
    assert_int_equal(w.engine->ops->go(w.engine, 1, &w.e), -1); /* there is none */
    assert_int_equal(w.e.kind, ERR_LOST);
    assert_int_equal(run(&w), 0);
    assert_true(w.out.warm);
    assert_string_equal(buf_str(&w.text), "hi");
    assert_int_equal(w.engine->ops->go(w.engine, 1, &w.e), -1); /* it is over */
    assert_int_equal(fake_engine_input(w.fake, &input, &end), sizeof PROGRAM GO - 1);
    assert_memory_equal(input, PROGRAM GO, sizeof PROGRAM GO - 1);
    stop(&w);
}

/* What would let a program begin, or print, while it has what is for the load only. */
static void steps_out_of_turn_end_the_run(void **state)
{
    static const struct {
        const char *text;
        size_t len;
    } cases[] = {{BYTES(LOADING STREAM_WARM)},
                 {BYTES(LOADING LOADING)},
                 {BYTES(LOADING STREAM_OUT)},
                 {BYTES(LOADED LOADING)},
                 {BYTES(LOADED LOADED)},
                 {BYTES(STREAM_WARM LOADING)},
                 {BYTES(STREAM_WARM STREAM_OUT LOADED)},
                 {BYTES(STREAM_WARM STREAM_WARM)}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fake_later later[] = {
            {sizeof PROGRAM - 1, cases[i].text, cases[i].len},
            {0},
        };
        struct waiting w;

        wait_with(&w, (struct fake_reply){.later = later, .hold_ms = WAITS_MS});
        run(&w);
        assert_int_not_equal(w.out.end, ENGINE_EXITED);
        stop(&w);
    }
}

#define COMES_MS 300

/* A stream that says text and ends when ends is set: what read and a run say of it. */
static void check_lost(const char *text, size_t len, bool ends, enum err_kind kind,
                       const char *words)
{
    for (int with_look = 0; with_look < 2; with_look++) {
        struct waiting w;
        const char *input;
        int end, r;

        wait_with(&w, (struct fake_reply){
                          .stream = text, .stream_len = len, .hold_ms = ends ? 0 : WAITS_MS});
        /* The text may have come with the head of the answer, and the socket have nothing more. */
        struct pollfd come = {.fd = w.engine->ops->fd(w.engine),
                              .events = ends ? POLLRDHUP : POLLIN};
        poll(&come, 1, ends ? WAITS_MS : COMES_MS);
        r = with_look ? look_until(&w, ENGINE_TIER_PRELOADED) : run(&w);
        assert_int_equal(r, -1);
        if (w.e.kind != kind || !strstr(w.e.text, words))
            fail_msg("%s: %s", words, w.e.text);
        assert_int_equal(fake_engine_input(w.fake, &input, &end), 0);
        assert_null(strstr(fake_engine_log(w.fake), "/wait"));
        stop(&w);
    }
}

static void one_that_ended_is_lost_before_it_gets_anything(void **state)
{
    (void)state;
    check_lost("", 0, true, ERR_LOST, "ended");
    check_lost(BYTES(STREAM_STARTED), true, ERR_LOST, "ended");
    check_lost(BYTES("\2\0\0\0\0\0\0\7no disk"), true, ERR_REFUSED, "runner-x:1 failed: no disk");
}

static void what_is_not_the_protocol_ends_the_waiting(void **state)
{
    (void)state;
    check_lost(BYTES("HTTP/1.1 200 OK"), false, ERR_PROTOCOL, "kind");
    check_lost(BYTES(STREAM_OUT), false, ERR_PROTOCOL, "does not run");
    check_lost(BYTES(STREAM_WARM), false, ERR_PROTOCOL, "does not run");
    check_lost(BYTES(STREAM_REPORT), false, ERR_PROTOCOL, "does not run");
    check_lost(BYTES(STREAM_STARTED STREAM_STARTED), false, ERR_PROTOCOL, "same tier");
    check_lost(BYTES(STREAM_PRELOADED STREAM_STARTED), false, ERR_PROTOCOL, "same tier");
    check_lost(BYTES("\1\0\0\0\0\0\0\20W\0\0\0\13\0\0\0\1started"), false, ERR_PROTOCOL,
               "same tier");
}

static void one_that_chatters_while_it_waits_is_given_up(void **state)
{
    AUTO_BUF struct buf chatter = BUF_INIT(1 << 20);

    (void)state;
    for (int i = 0; i < 7000; i++)
        buf_add(&chatter, BYTES("\2\0\0\0\0\0\0\2ab"));
    check_lost(chatter.data, chatter.len, false, ERR_PROTOCOL, "too much");
}

static void one_that_takes_nothing_is_lost_too(void **state)
{
    struct waiting w;

    (void)state;
    wait_with(&w, (struct fake_reply){.deaf = 1, .hold_ms = WAITS_MS});
    usleep(50000);
    assert_int_equal(look(&w), 0);
    assert_int_equal(run(&w), -1);
    assert_int_equal(w.e.kind, ERR_LOST);
    stop(&w);
}

/* Answers of the engine to the change, and to the question whether it is so; what comes of them. */
static void a_limit_of_processor_time_counts_when_the_engine_confirms_it(void **state)
{
    static const struct {
        struct fake_reply update, inspect;
        int result;
        enum err_kind kind;
    } cases[] = {
        {UPDATED(200, "{\"Warnings\":null}"), INSPECTED(200, 2000000), 0, ERR_NONE},
        {UPDATED(404, "{\"message\":\"page not found\"}"), INSPECTED(200, 500000), -1,
         ERR_NOT_FOUND},
        {UPDATED(500, "{\"message\":\"unsupported\"}"), INSPECTED(200, 500000), -1, ERR_REFUSED},
        {UPDATED(200, "{}"), INSPECTED(200, 500000), -1, ERR_REFUSED},
        {UPDATED(200, "{}"), INSPECTED(404, 0), -1, ERR_LOST},
        {UPDATED(200, "{}"), INSPECTED(500, 0), -1, ERR_LOST},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct waiting w;
        wait_with_rows(&w, 2, (struct fake_reply){.hold_ms = WAITS_MS}, cases[i].update,
                       cases[i].inspect);
        assert_int_equal(w.engine->ops->limit_cpu(w.engine, 2000, &w.e), cases[i].result);
        assert_int_equal(w.e.kind, cases[i].kind);
        assert_non_null(strstr(fake_engine_log(w.fake), UPDATE "\n"));
        stop(&w);
    }
}

static void without_a_container_there_is_nothing_to_do(void **state)
{
    struct engine_address address = {.host = "unix:///nowhere.sock"};
    struct waiting w = {.text = BUF_INIT(16)};

    (void)state;
    w.engine = docker_engine_new(&address, &w.e);
    assert_int_equal(w.engine->ops->fd(w.engine), -1);
    assert_int_equal(look(&w), -1);
    assert_int_equal(w.engine->ops->preload(w.engine, NAMES, &w.e), -1);
    assert_int_equal(w.engine->ops->limit_cpu(w.engine, 500, &w.e), -1);
    assert_int_equal(w.engine->ops->next(w.engine, &w.e), -1);
    assert_int_equal(w.engine->ops->go(w.engine, 1, &w.e), -1);
    assert_int_equal(run(&w), -1);
    assert_int_equal(w.e.kind, ERR_LOST);
    w.engine->ops->free(w.engine);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_says_how_far_it_is_and_takes_its_program),
    cmocka_unit_test(one_of_several_languages_may_tell_its_memory_again),
    cmocka_unit_test(a_program_may_come_before_any_word),
    cmocka_unit_test(a_wipe_behind_more_input_than_is_kept_is_refused),
    cmocka_unit_test(it_is_wiped_and_takes_the_next_program),
    cmocka_unit_test(a_program_is_held_until_it_may_begin),
    cmocka_unit_test(steps_out_of_turn_end_the_run),
    cmocka_unit_test(doubt_is_told_in_the_containers_words),
    cmocka_unit_test(one_that_ended_is_lost_before_it_gets_anything),
    cmocka_unit_test(what_is_not_the_protocol_ends_the_waiting),
    cmocka_unit_test(one_that_chatters_while_it_waits_is_given_up),
    cmocka_unit_test(one_that_takes_nothing_is_lost_too),
    cmocka_unit_test(a_limit_of_processor_time_counts_when_the_engine_confirms_it),
    cmocka_unit_test(without_a_container_there_is_nothing_to_do),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
