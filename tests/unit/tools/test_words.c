/* Results as a model reads them: the words, and the form of an answer at each place. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/words.h"
#include "tests/unit/tools/tools_fixture.h"

static int set_up(void **state)
{
    tools_open(state);
    world.app.limits.answer_max = 40;
    world.app.limits.output_keep = 100;
    world.server.in_text = true;
    return 0;
}

static void assert_cut(const char *text, size_t len, size_t room, size_t head, const char *wanted)
{
    AUTO_BUF struct buf out = BUF_INIT(1000);

    assert_int_equal(words_cut(&out, text, len, room), head);
    assert_string_equal(buf_str(&out), wanted);
}

static void long_text_keeps_its_head_and_its_tail(void **state)
{
    (void)state;
    assert_cut("", 0, 10, 0, "");
    assert_cut("0123456789", 10, 10, 0, "0123456789");
    assert_cut("0123456789abc", 13, 10, 5, "01234\n[... 3 bytes left out ...]\n89abc");
    /* At whole lines where one ends nearby, at whole characters else. */
    assert_cut("01234567\n9abcdefghijklmno\n01234567", 34, 20, 9,
               "01234567\n[... 17 bytes left out ...]\n01234567");
    assert_cut("\xC3\xBC\xC3\xBC\xC3\xBC\xC3\xBC", 8, 6, 2,
               "\xC3\xBC\n[... 4 bytes left out ...]\n\xC3\xBC");
}

static void what_steers_a_terminal_is_left_out(void **state)
{
    static const char steering[] = "a\033[1;31mred\033[0m\033]0;t\a\tb\r\n\x7F";

    (void)state;
    assert_cut(steering, sizeof steering - 1, 100, 0,
               "ared\xEF\xBF\xBD]0;t\xEF\xBF\xBD\tb\r\n\xEF\xBF\xBD");
    assert_cut("\033[12", 4, 100, 0, "\xEF\xBF\xBD[12");
    assert_cut("a\0b", 3, 100, 0,
               "a\xEF\xBF\xBD"
               "b");
}

static json_t *run(const char *more)
{
    AUTO_BUF struct buf arguments = BUF_INIT(1000);

    buf_addf(&arguments,
             "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"print(1)\"%s}", more);
    return tools_world_call(&world, "run_code", buf_str(&arguments));
}

static void a_result_is_one_text(void **state)
{
    (void)state;
    fake_broker_push_ok("1\n", "[{\"name\":\"a.csv\",\"size\":5,\"change\":\"created\","
                               "\"url\":\"https://x.test/a.csv\"}]");
    json_auto_t *result = run("");
    json_auto_t *row = tools_world_row(&world, "run_code");
    assert_null(json_object_get(result, "structuredContent"));
    assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
    assert_string_equal(tools_world_text(result, 0),
                        "1\n\nexit code 0, 0.0 s\na.csv: https://x.test/a.csv");
    assert_null(json_object_get(row, "outputSchema"));
}

static void a_result_without_words_of_its_own_is_its_object(void **state)
{
    (void)state;
    fake_broker_set_runners("[]");
    json_auto_t *result = tools_world_call(&world, "list_runners", "{}");
    assert_null(json_object_get(result, "structuredContent"));
    assert_string_equal(tools_world_text(result, 0), "{\"languages\":[]}");
}

static void detail_decides_how_much_is_shown(void **state)
{
    static const char lines[] = "0123456789\n0123456789\n0123456789\n0123456789\n0123456789\n";

    (void)state;
    fake_broker_push_ok(lines, "[]");
    fake_broker_push_ok(lines, "[]");
    json_auto_t *concise = run("");
    json_auto_t *full = run(",\"detail\":\"full\"");
    json_auto_t *wrong = run(",\"detail\":\"some\"");
    assert_non_null(strstr(tools_world_text(concise, 0), "bytes left out"));
    assert_null(strstr(tools_world_text(full, 0), "bytes left out"));
    assert_non_null(strstr(tools_world_text(full, 0), lines));
    assert_non_null(strstr(tools_world_text(full, 0), ", waited 0.0 s"));
    assert_true(json_is_true(json_object_get(wrong, "isError")));
}

static void a_run_is_kept_when_it_prints_more_than_is_shown(void **state)
{
    (void)state;
    fake_broker_push_ok("", "[]");
    fake_broker_push_ok("", "[]");
    json_auto_t *in_text = run("");
    world.server.in_text = false;
    json_auto_t *structured = run("");
    assert_int_equal(json_get_integer(json_array_get(fake_broker.runs, 0), "keepOver", -1), 40);
    assert_int_equal(json_get_integer(json_array_get(fake_broker.runs, 1), "keepOver", -1), -1);
    assert_true(in_text && structured);
}

/* What a result with these members says; more is JSON text that begins with a comma. */
static json_t *told(const char *status, const char *more)
{
    AUTO_FREE char *text = mem_printf(
        "{\"success\":false,\"status\":\"%s\",\"exitCode\":1,\"signal\":null,\"durationMs\":1000,"
        "\"runId\":\"abc\"%s}",
        status, more);

    fake_broker_push_result(text);
    return run("");
}

static void tools_are_named_as_the_list_names_them(void **state)
{
    static const struct {
        const char *status, *more, *wanted;
    } cases[] = {
        {"error", ",\"output\":\"ModuleNotFoundError: No module named 'polars'\"",
         "\npolars is not installed: box_install_package"},
        {"running", ",\"output\":\"\"",
         "\nbox_get_run with runId abc brings the rest; box_cancel_run ends it"},
        {"ok", ",\"output\":\"\",\"files\":[],\"filesOmitted\":3",
         "\n3 more files: box_list_files"},
        {"ok", ",\"output\":\"x\",\"truncation\":{\"output\":{\"truncated\":true}}",
         "write it to a file and box_read_file that"},
        {"ok", ",\"output\":\"x\",\"expiresAt\":9,\"truncation\":{\"output\":{\"truncated\":true}}",
         "\nmore output: box_get_run with runId abc and sinceByte 1"},
    };

    (void)state;
    world.app.packages = true;
    world.server.tool_prefix = "box_";
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *result = told(cases[i].status, cases[i].more);
        assert_contains(tools_world_text(result, 0), cases[i].wanted);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(long_text_keeps_its_head_and_its_tail),
    cmocka_unit_test(what_steers_a_terminal_is_left_out),
    TOOLS_TEST_AFTER(a_result_is_one_text, set_up),
    TOOLS_TEST_AFTER(a_result_without_words_of_its_own_is_its_object, set_up),
    TOOLS_TEST_AFTER(detail_decides_how_much_is_shown, set_up),
    TOOLS_TEST_AFTER(tools_are_named_as_the_list_names_them, set_up),
    TOOLS_TEST_AFTER(a_run_is_kept_when_it_prints_more_than_is_shown, set_up),
};
UNIT_TESTS(tests)
