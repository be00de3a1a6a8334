/* The container protocol's frames and records (entry_frame.h). What a container sends is hostile.
 */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/engine/entry_frame.h"
#include "common/protocol/entry_record.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

static void add_frame(struct buf *out, char tag, const char *text)
{
    entry_record_add(tag, 7, text, strlen(text), out);
}

static const char good_report[] = "{\"exitCode\":3,\"signal\":0,\"cpuUs\":12345,"
                                  "\"peakMemoryBytes\":1234567,\"oomKills\":1,\"timedOut\":false}";

static void a_frame_is_taken_when_it_is_whole(void **state)
{
    static const struct {
        char tag;
        const char *text;
        enum engine_event_kind kind;
    } frames[] = {{'O', "out", ENGINE_EVENT_OUT},
                  {'E', "error", ENGINE_EVENT_ERR},
                  {'K', "word", ENGINE_EVENT_CONTROL},
                  {'F', "no file", ENGINE_EVENT_FAILED},
                  {'R', good_report, ENGINE_EVENT_ENDED}};
    struct engine_event event = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        struct err e = ERR_INIT;

        add_frame(&in, frames[i].tag, frames[i].text);
        for (size_t cut = 0; cut < in.len; cut++)
            assert_int_equal(entry_frame_take(in.data, cut, &event, &e), 0);
        buf_add_str(&in, "more");
        assert_int_equal(entry_frame_take(in.data, in.len, &event, &e), in.len - 4);
        assert_int_equal(event.kind, frames[i].kind);
        assert_int_equal(event.id, 7);
        assert_int_equal(event.len, strlen(frames[i].text));
        assert_memory_equal(event.data, frames[i].text, event.len);
    }
    assert_int_equal(event.outcome.exit_code, 3);
    assert_int_equal(event.outcome.cpu_us, 12345);
    assert_int_equal(event.outcome.peak_memory_bytes, 1234567);
    assert_true(event.outcome.out_of_memory);
}

static void reports_are_understood_or_refused(void **state)
{
    static const struct {
        const char *text;
        bool good;
        int exit_code, signal;
        bool timed_out;
    } cases[] = {
        {"{\"exitCode\":0}", true, 0, 0, false},
        {"{\"exitCode\":255,\"signal\":0}", true, 255, 0, false},
        {"{\"exitCode\":null,\"signal\":9,\"timedOut\":true}", true, -1, 9, true},
        {"{\"exitCode\":-1,\"signal\":11}", true, -1, 11, false},
        {"{\"exitCode\":256}", false, 0, 0, false},
        {"{\"exitCode\":-2}", false, 0, 0, false},
        {"{\"exitCode\":\"0\"}", false, 0, 0, false},
        {"{\"exitCode\":0,\"signal\":9}", false, 0, 0, false},
        {"{\"exitCode\":-1,\"signal\":0}", false, 0, 0, false},
        {"{\"exitCode\":-1,\"signal\":65}", false, 0, 0, false},
        {"{\"exitCode\":0,\"cpuUs\":-1}", false, 0, 0, false},
        {"{\"exitCode\":0,\"peakMemoryBytes\":1e9}", false, 0, 0, false},
        {"{\"exitCode\":0,\"oomKills\":99999999999999999999}", false, 0, 0, false},
        {"{\"exitCode\":0,\"exitCode\":1}", false, 0, 0, false},
        {"{}", false, 0, 0, false},
        {"[]", false, 0, 0, false},
        {"[[[[[[[[[[[[[[[[", false, 0, 0, false},
        {"{\"exitCode\":0", false, 0, 0, false},
        {"\xff\xff", false, 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        struct engine_event event;
        struct err e = ERR_INIT;
        ssize_t n;

        add_frame(&in, 'R', cases[i].text);
        n = entry_frame_take(in.data, in.len, &event, &e);
        if ((n > 0) != cases[i].good)
            fail_msg("%s: %zd", cases[i].text, n);
        if (!cases[i].good) {
            assert_int_equal(e.kind, ERR_PROTOCOL);
            continue;
        }
        assert_int_equal(event.outcome.exit_code, cases[i].exit_code);
        assert_int_equal(event.outcome.signal, cases[i].signal);
        assert_int_equal(event.outcome.end == ENGINE_TIMED_OUT, cases[i].timed_out);
    }
}

static void what_a_run_has_left_comes_with_its_report(void **state)
{
    static const struct {
        const char *text; /* behind the exit code */
        bool good;
        const char *left;
        unsigned omitted;
    } cases[] = {
        {",\"left\":[\"/tmp/a.csv\",\"/tmp/\u00fc\"]", true, "/tmp/a.csv\n/tmp/\xc3\xbc\n", 0},
        {",\"left\":[\"a\"],\"leftOmitted\":7", true, "a\n", 7},
        {",\"leftOmitted\":2", true, "", 2},
        {"", true, "", 0},
        {",\"left\":\"/tmp/a\"", false, "", 0},
        {",\"left\":[1]", false, "", 0},
        {",\"left\":[[\"a\"]]", false, "", 0},
        {",\"left\":[\"a\\nb\"]", false, "", 0},
        {",\"left\":[\"a\\u0000b\"]", false, "", 0},
        {",\"left\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"]", false, "", 0},
        {",\"leftOmitted\":-1", false, "", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        AUTO_FREE char *report = mem_printf("{\"exitCode\":0%s}", cases[i].text);
        struct engine_event event;
        struct err e = ERR_INIT;

        add_frame(&in, 'R', report);
        if ((entry_frame_take(in.data, in.len, &event, &e) > 0) != cases[i].good)
            fail_msg("%s", report);
        if (!cases[i].good)
            continue;
        assert_string_equal(event.outcome.left, cases[i].left);
        assert_int_equal(event.outcome.left_omitted, cases[i].omitted);
    }
}

static void frames_outside_the_protocol_are_refused(void **state)
{
    static const char *const heads[] = {
        "X\0\0\0\5", "o\0\0\0\5",  "O\0\1\0\5", "O\xff\xff\xff\xff", "O\0\0\0\4",
        "O\0\0\0\0", "R\0\0\x8\5", "R\0\0\0\4", "W\0\0\0\x25",       "\1\0\0\0\0"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        struct engine_event event;
        struct err e = ERR_INIT;

        assert_int_equal(entry_frame_take(heads[i], 5, &event, &e), -1);
        assert_int_equal(e.kind, ERR_PROTOCOL);
    }
}

static void words_about_waiting_and_starting_are_known(void **state)
{
    static const struct {
        const char *frame; /* a tag and a word */
        bool good, warm;
        enum engine_tier tier;
        uint64_t memory;
    } cases[] = {
        {"Wstarted", true, false, ENGINE_TIER_STARTED, 0},
        {"Wstarted 4096", true, false, ENGINE_TIER_STARTED, 4096},
        {"Wpreloaded 1", true, false, ENGINE_TIER_PRELOADED, 1},
        {"Swarm", true, true, ENGINE_TIER_NONE, 0},
        {"Snew", true, false, ENGINE_TIER_NONE, 0},
        {"Lbegun", true, false, ENGINE_TIER_NONE, 0},
        {"Ldone", true, false, ENGINE_TIER_NONE, 0},
        {.frame = "Wheavy"},
        {.frame = "Wheavy 1"},
        {.frame = "Wstarted x"},
        {.frame = "Wstartedstarte"},
        {.frame = "Sbehind"},
        {.frame = "Ldo"},
        {.frame = "Ldoneness"},
        {.frame = "Pstarted"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        struct engine_event event = {0};
        struct err e = ERR_INIT;
        ssize_t n;

        add_frame(&in, cases[i].frame[0], cases[i].frame + 1);
        n = entry_frame_take(in.data, in.len, &event, &e);
        if ((n > 0) != cases[i].good)
            fail_msg("%s: %s", cases[i].frame, e.text);
        if (n > 0 && (event.warm != cases[i].warm || event.wait.tier != cases[i].tier ||
                      event.wait.memory_bytes != cases[i].memory))
            fail_msg("%s: warm %d, tier %d", cases[i].frame, event.warm, event.wait.tier);
    }
}

static void the_largest_frame_is_accepted(void **state)
{
    AUTO_FREE char *data = mem_alloc(ENTRY_FRAME_MAX);
    AUTO_BUF struct buf in = BUF_INIT(2 * ENTRY_FRAME_MAX);
    struct engine_event event;
    struct err e = ERR_INIT;

    (void)state;
    memset(data, 'x', ENTRY_FRAME_MAX);
    entry_record_add('O', 1, data, ENTRY_FRAME_MAX, &in);
    assert_int_equal(entry_frame_take(in.data, in.len, &event, &e), in.len);
    assert_int_equal(event.len, ENTRY_FRAME_MAX);
}

static void a_run_is_written_byte_for_byte(void **state)
{
    static const char want[] = "C\0\0\0\10\0\0\0\3co\0e"
                               "I\0\0\0\6\0\0\0\3in"
                               "X\0\0\0\31\0\0\0\3T31000\0La\0EA=b\0A-v\0A\0";
    static const char *const args[] = {"-v", ""};
    static const char *const env[] = {"A=b"};
    static const char streams[] = "C\0\0\0\10\0\0\0\0co\0e"
                                  "I\0\0\0\6\0\0\0\0in";
    const struct engine_command run = {.run = true,
                                       .streams = streams,
                                       .streams_len = sizeof streams - 1,
                                       .argv = args,
                                       .n_argv = 2,
                                       .env = env,
                                       .n_env = 1,
                                       .timeout_ms = 30000,
                                       .load = "a"};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_command(3, &run, &out, &e), 0);
    assert_int_equal(out.len, sizeof want - 1);
    assert_memory_equal(out.data, want, out.len);
}

static void a_run_without_anything_has_code_all_the_same(void **state)
{
    const struct engine_command run = {
        .run = true, .streams = "C\0\0\0\4\0\0\0\0", .streams_len = 9, .load = ""};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_command(1, &run, &out, &e), 0);
    assert_int_equal(out.len, 18);
    assert_memory_equal(out.data, "C\0\0\0\4\0\0\0\1X\0\0\0\4\0\0\0\1", out.len);
}

static void a_run_names_its_language_before_its_code(void **state)
{
    static const char want[] = "B\0\0\0\7\0\0\0\1luaC\0\0\0\5\0\0\0\1xX\0\0\0\4\0\0\0\1";
    const struct engine_command run = {
        .run = true, .language = "lua", .streams = "C\0\0\0\5\0\0\0\0x", .streams_len = 10};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_command(1, &run, &out, &e), 0);
    assert_int_equal(out.len, sizeof want - 1);
    assert_memory_equal(out.data, want, out.len);
}

static void a_command_is_written_byte_for_byte(void **state)
{
    static const char want[] = "X\0\0\0\26\0\0\0\1T500\0D/\0K\0Als\0A-l\0";
    const struct engine_command command = {.argv = (const char *const[]){"ls", "-l"},
                                           .n_argv = 2,
                                           .cwd = "/",
                                           .control = true,
                                           .timeout_ms = 500};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_command(1, &command, &out, &e), 0);
    assert_int_equal(out.len, sizeof want - 1);
    assert_memory_equal(out.data, want, out.len);
}

static void names_to_preload_are_one_bounded_record(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT(2 * ENGINE_PRELOAD_MAX);
    char names[ENGINE_PRELOAD_MAX + 2];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_preload("numpy pandas", &out, &e), 0);
    assert_int_equal(out.len, 21);
    assert_memory_equal(out.data, "P\0\0\0\20\0\0\0\0numpy pandas", out.len);
    memset(names, 'n', sizeof names);
    names[ENGINE_PRELOAD_MAX + 1] = '\0';
    assert_int_equal(entry_write_preload(names, &out, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    names[ENGINE_PRELOAD_MAX] = '\0';
    assert_int_equal(entry_write_preload(names, &out, &e), 0);
    assert_int_equal(entry_write_preload("", &out, &e), -1);
}

static void a_small_buffer_and_huge_lengths_are_errors(void **state)
{
    static const char code[] = "C\0\0\0\5\0\0\0\0x";
    const struct engine_command small = {.run = true, .streams = code, .streams_len = 10};
    const struct engine_command huge = {.run = true, .streams = code, .streams_len = SIZE_MAX - 3};
    AUTO_BUF struct buf out = BUF_INIT(8);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_command(1, &small, &out, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(entry_write_command(1, &huge, &out, &e), -1);
    assert_int_equal(out.len, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_frame_is_taken_when_it_is_whole),
    cmocka_unit_test(reports_are_understood_or_refused),
    cmocka_unit_test(what_a_run_has_left_comes_with_its_report),
    cmocka_unit_test(frames_outside_the_protocol_are_refused),
    cmocka_unit_test(words_about_waiting_and_starting_are_known),
    cmocka_unit_test(the_largest_frame_is_accepted),
    cmocka_unit_test(a_run_is_written_byte_for_byte),
    cmocka_unit_test(a_run_without_anything_has_code_all_the_same),
    cmocka_unit_test(a_run_names_its_language_before_its_code),
    cmocka_unit_test(a_command_is_written_byte_for_byte),
    cmocka_unit_test(names_to_preload_are_one_bounded_record),
    cmocka_unit_test(a_small_buffer_and_huge_lengths_are_errors),
};
UNIT_TESTS(tests)
