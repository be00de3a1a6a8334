/* The entry protocol's frames and envelope (entry_frame.h). What a container sends is hostile. */
#include "config.h"

#include "common/base/buf.h"
#include "common/engine/entry_frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

static int setup(void **state)
{
    static struct taken taken;

    taken = (struct taken){.text = {BUF_INIT(1 << 20), BUF_INIT(1 << 20)}};
    *state = &taken;
    return 0;
}

static int teardown(void **state)
{
    struct taken *t = *state;

    buf_clear(&t->text[0]);
    buf_clear(&t->text[1]);
    return 0;
}

static void add_frame(struct buf *out, char tag, const char *text)
{
    size_t len = strlen(text);

    buf_add_char(out, tag);
    buf_add_char(out, (char)(len >> 24));
    buf_add_char(out, (char)(len >> 16));
    buf_add_char(out, (char)(len >> 8));
    buf_add_char(out, (char)len);
    buf_add_str(out, text);
}

static const char good_report[] = "{\"exitCode\":3,\"signal\":0,\"cpuUs\":12345,"
                                  "\"peakMemoryBytes\":1234567,\"oomKills\":1,\"timedOut\":false}";

static void frames_cut_anywhere_give_output_and_report(void **state)
{
    struct taken *t = *state;
    AUTO_BUF struct buf in = BUF_INIT(4096);
    struct engine_sink sink = {take, t};

    add_frame(&in, 'O', "out");
    add_frame(&in, 'E', "error");
    add_frame(&in, 'O', "");
    add_frame(&in, 'O', "put");
    add_frame(&in, 'R', good_report);
    for (size_t cut = 0; cut < in.len; cut++) {
        struct entry_frame f = {.handed = true};
        struct err e = ERR_INIT;

        buf_reset(&t->text[0]);
        buf_reset(&t->text[1]);
        assert_int_equal(entry_frame_push(&f, in.data, cut, &sink, &e), FRAME_MORE);
        assert_false(f.reported);
        assert_int_equal(entry_frame_push(&f, in.data + cut, in.len - cut, &sink, &e), FRAME_STOP);
        assert_true(f.reported);
        assert_string_equal(buf_str(&t->text[ENGINE_STDOUT]), "output");
        assert_string_equal(buf_str(&t->text[ENGINE_STDERR]), "error");
        assert_int_equal(f.report.exit_code, 3);
        assert_int_equal(f.report.cpu_us, 12345);
        assert_int_equal(f.report.peak_memory_bytes, 1234567);
        assert_int_equal(f.report.oom_kills, 1);
    }
}

static void what_follows_the_report_is_ignored(void **state)
{
    struct taken *t = *state;
    AUTO_BUF struct buf in = BUF_INIT(4096);
    struct engine_sink sink = {take, t};
    struct entry_frame f = {.handed = true};
    struct err e = ERR_INIT;

    add_frame(&in, 'R', good_report);
    add_frame(&in, 'O', "late");
    assert_int_equal(entry_frame_push(&f, in.data, in.len, &sink, &e), FRAME_STOP);
    assert_int_equal(entry_frame_push(&f, "garbage", 7, &sink, &e), FRAME_STOP);
    assert_int_equal(t->text[0].len, 0);
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
    struct engine_sink sink = {take, *state};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        struct entry_frame f = {.handed = true};
        struct err e = ERR_INIT;
        enum frame_push r;

        add_frame(&in, 'R', cases[i].text);
        r = entry_frame_push(&f, in.data, in.len, &sink, &e);
        if (r != (cases[i].good ? FRAME_STOP : FRAME_BROKEN))
            fail_msg("%s: %d", cases[i].text, r);
        if (!cases[i].good) {
            assert_int_equal(e.kind, ERR_PROTOCOL);
            assert_false(f.reported);
            continue;
        }
        assert_int_equal(f.report.exit_code, cases[i].exit_code);
        assert_int_equal(f.report.signal, cases[i].signal);
        assert_int_equal(f.report.timed_out, cases[i].timed_out);
    }
}

static void frames_outside_the_protocol_are_refused(void **state)
{
    static const char *const heads[] = {"X\0\0\0\1", "o\0\0\0\1", "O\0\1\0\1", "O\xff\xff\xff\xff",
                                        "R\0\0\4\1", "R\0\0\0\0", "\1\0\0\0\0"};
    struct engine_sink sink = {take, *state};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct entry_frame f = {.handed = true};
        struct err e = ERR_INIT;

        assert_int_equal(entry_frame_push(&f, heads[i], 5, &sink, &e), FRAME_BROKEN);
        assert_int_equal(e.kind, ERR_PROTOCOL);
    }
}

static void words_about_waiting_and_starting_have_their_time(void **state)
{
    static const struct {
        const char *frames; /* a tag and a word each, with blanks between */
        bool handed, good, warm;
        enum engine_tier tier;
    } cases[] = {
        {"Wstarted", false, true, false, ENGINE_TIER_STARTED},
        {"Wstarted Wpreloaded", false, true, false, ENGINE_TIER_PRELOADED},
        {"Wpreloaded", false, true, false, ENGINE_TIER_PRELOADED},
        {"Wstarted Swarm Ohi", true, true, true, ENGINE_TIER_STARTED},
        {"Wstarted Wpreloaded Swarm", true, true, true, ENGINE_TIER_PRELOADED},
        {"Snew Eno", true, true, false, ENGINE_TIER_NONE},
        {"Ohi", true, true, false, ENGINE_TIER_NONE},
        {"Wstarted Wstarted", false, false, false, ENGINE_TIER_STARTED},
        {"Wpreloaded Wstarted", false, false, false, ENGINE_TIER_PRELOADED},
        {"Wheavy", false, false, false, ENGINE_TIER_NONE},
        {"Wheavy 1", false, false, false, ENGINE_TIER_NONE},
        {"Wstartedstarte", false, false, false, ENGINE_TIER_NONE},
        {"W", false, false, false, ENGINE_TIER_NONE},
        {"Swarm", false, false, false, ENGINE_TIER_NONE},
        {"Ohi", false, false, false, ENGINE_TIER_NONE},
        {"Eno", false, false, false, ENGINE_TIER_NONE},
        {"R{\"exitCode\":0}", false, false, false, ENGINE_TIER_NONE},
        {"Swarm Swarm", true, false, true, ENGINE_TIER_NONE},
        {"Swarm Snew", true, false, true, ENGINE_TIER_NONE},
        {"Sbehind", true, false, false, ENGINE_TIER_NONE},
        {"Swarm Wpreloaded", true, false, true, ENGINE_TIER_NONE},
        {"Ohi Swarm", true, false, false, ENGINE_TIER_NONE},
        {"Ohi Wstarted", true, false, false, ENGINE_TIER_NONE},
        {"Pstarted", true, false, false, ENGINE_TIER_NONE},
    };
    struct engine_sink sink = {take, *state};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        AUTO_BUF struct buf in = BUF_INIT(4096);
        struct entry_frame f = {.handed = cases[i].handed};
        struct err e = ERR_INIT;
        char frames[64], *rest = frames;

        snprintf(frames, sizeof frames, "%s", cases[i].frames);
        for (char *one; (one = strsep(&rest, " "));)
            add_frame(&in, one[0], one + 1);
        if (entry_frame_push(&f, in.data, in.len, &sink, &e) !=
            (cases[i].good ? FRAME_MORE : FRAME_BROKEN))
            fail_msg("%s: %s", cases[i].frames, e.text);
        if (f.warm != cases[i].warm || f.tier != cases[i].tier)
            fail_msg("%s: warm %d, tier %d", cases[i].frames, f.warm, f.tier);
    }
}

static void the_largest_frame_is_accepted(void **state)
{
    struct taken *t = *state;
    struct engine_sink sink = {take, t};
    struct entry_frame f = {.handed = true};
    struct err e = ERR_INIT;
    char part[1024];

    memset(part, 'x', sizeof part);
    assert_int_equal(entry_frame_push(&f, "O\0\1\0\0", 5, &sink, &e), FRAME_MORE);
    for (int i = 0; i < 64; i++)
        assert_int_equal(entry_frame_push(&f, part, sizeof part, &sink, &e), FRAME_MORE);
    assert_int_equal(f.reader.left, 0);
    assert_int_equal(t->text[ENGINE_STDOUT].len, ENTRY_FRAME_MAX);
}

static void the_consumer_can_stop(void **state)
{
    struct taken *t = *state;
    AUTO_BUF struct buf in = BUF_INIT(4096);
    struct engine_sink sink = {take, t};
    struct entry_frame f = {.handed = true};
    struct err e = ERR_INIT;

    t->stop_at = 3;
    add_frame(&in, 'O', "abc");
    add_frame(&in, 'O', "def");
    assert_int_equal(entry_frame_push(&f, in.data, in.len, &sink, &e), FRAME_STOP);
    assert_false(f.reported);
    assert_string_equal(buf_str(&t->text[ENGINE_STDOUT]), "abc");
}

static void the_envelope_is_written_byte_for_byte(void **state)
{
    static const char want[] = "C\0\0\0\4co\0e"
                               "I\0\0\0\0"
                               "A\0\0\0\2-v"
                               "A\0\0\0\0"
                               "E\0\0\0\3A=b"
                               "T\0\0\0\x5"
                               "31000"
                               "G\0\0\0\0";
    static const char *const args[] = {"-v", ""};
    static const char *const env[] = {"A=b"};
    const struct engine_program program = {.code = "co\0e",
                                           .code_len = 4,
                                           .input = "",
                                           .args = args,
                                           .n_args = 2,
                                           .env = env,
                                           .n_env = 1,
                                           .timeout_ms = 30000};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;
    size_t size, n = sizeof want - 1;

    (void)state;
    assert_int_equal(entry_write(&program, &out, &e), 0);
    assert_int_equal(out.len, n);
    assert_memory_equal(out.data, want, n);
    assert_int_equal(entry_size(&program, &size, &e), 0);
    assert_true(size >= out.len);
}

static void no_input_is_no_record(void **state)
{
    const struct engine_program program = {.code = "x", .code_len = 1};
    AUTO_BUF struct buf out = BUF_INIT(4096);
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write(&program, &out, &e), 0);
    assert_memory_equal(out.data,
                        "C\0\0\0\1x"
                        "G\0\0\0\0",
                        out.len);
}

static void names_to_preload_are_one_bounded_record(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT(2 * ENTRY_PRELOAD_MAX);
    char names[ENTRY_PRELOAD_MAX + 2];
    struct err e = ERR_INIT;

    (void)state;
    assert_int_equal(entry_write_preload("numpy pandas", &out, &e), 0);
    assert_int_equal(out.len, 17);
    assert_memory_equal(out.data, "P\0\0\0\14numpy pandas", out.len);
    memset(names, 'n', sizeof names);
    names[ENTRY_PRELOAD_MAX + 1] = '\0';
    assert_int_equal(entry_write_preload(names, &out, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    names[ENTRY_PRELOAD_MAX] = '\0';
    assert_int_equal(entry_write_preload(names, &out, &e), 0);
    assert_int_equal(entry_write_preload("", &out, &e), -1);
}

static void a_small_buffer_and_huge_lengths_are_errors(void **state)
{
    const struct engine_program small = {.code = "x", .code_len = 1};
    const struct engine_program huge = {.code = "x", .code_len = SIZE_MAX - 3};
    AUTO_BUF struct buf out = BUF_INIT(8);
    struct err e = ERR_INIT;
    size_t size;

    (void)state;
    assert_int_equal(entry_write(&small, &out, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(entry_size(&huge, &size, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_cut_anywhere_give_output_and_report, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_follows_the_report_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_are_understood_or_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(frames_outside_the_protocol_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(words_about_waiting_and_starting_have_their_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_largest_frame_is_accepted, setup, teardown),
        cmocka_unit_test_setup_teardown(the_consumer_can_stop, setup, teardown),
        cmocka_unit_test(the_envelope_is_written_byte_for_byte),
        cmocka_unit_test(no_input_is_no_record),
        cmocka_unit_test(names_to_preload_are_one_bounded_record),
        cmocka_unit_test(a_small_buffer_and_huge_lengths_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
