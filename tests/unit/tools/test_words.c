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
    static const char lines[] = "0123456789\n1123456789\n2123456789\n3123456789\n4123456789\n";

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

#define FILE_OF(name, change)                                                                      \
    "{\"name\":\"" name "\",\"size\":5,\"change\":\"" change "\",\"url\":\"https://x.test/f/" name \
    "\"}"

static void files_are_what_people_want_first_and_their_links_begin_once(void **state)
{
    (void)state;
    json_auto_t *result = told(
        "ok",
        ",\"output\":\"x\",\"files\":[" FILE_OF("a.txt", "created") "," FILE_OF(
            "d/b.pdf",
            "created") "," FILE_OF("f10.png",
                                   "created") "," FILE_OF("f2.png",
                                                          "created") "," FILE_OF("old.html",
                                                                                 "modified") ",{"
                                                                                             "\"nam"
                                                                                             "e\":"
                                                                                             "\"gon"
                                                                                             "e."
                                                                                             "pdf\""
                                                                                             ","
                                                                                             "\"cha"
                                                                                             "nge\""
                                                                                             ":\"de"
                                                                                             "leted"
                                                                                             "\"}"
                                                                                             "]");
    assert_contains(tools_world_text(result, 0),
                    "\nlinks: https://x.test/f/ + name\nf2.png\nf10.png\nold.html (changed)\n"
                    "d/b.pdf\na.txt\ngone.pdf (deleted)");
}

static void a_name_that_is_written_otherwise_in_its_link_has_both(void **state)
{
    (void)state;
    json_auto_t *result = told("timeout",
                               ",\"files\":[{\"name\":\"a b.csv\",\"size\":5,\"url\":"
                               "\"https://x.test/f/a%20b.csv\"},{\"name\":\"e.csv\",\"size\":0,"
                               "\"url\":\"https://x.test/f/e.csv\"}]");
    assert_contains(tools_world_text(result, 0),
                    "links: https://x.test/f/ + name\na b.csv (perhaps incomplete): a%20b.csv\n"
                    "e.csv (empty) (perhaps incomplete)");
}

static void links_that_are_signed_each_are_said_each(void **state)
{
    (void)state;
    json_auto_t *result = told("ok", ",\"files\":[{\"name\":\"a.csv\",\"size\":5,\"url\":"
                                     "\"https://x.test/f/a.csv?sig=1\"},{\"name\":\"b.csv\","
                                     "\"size\":5,\"url\":\"https://x.test/f/b.csv?sig=2\"}]");
    assert_contains(tools_world_text(result, 0),
                    "\na.csv: https://x.test/f/a.csv?sig=1\nb.csv: https://x.test/f/b.csv?sig=2");
}

static void what_was_left_and_is_gone_is_named(void **state)
{
    static const struct {
        const char *more, *wanted;
    } cases[] = {
        {",\"left\":[\"/tmp/r.csv\",\"/tmp/o/b\"]",
         "\nleft in /tmp and gone: r.csv, o/b; write to /data"},
        {",\"left\":[\"/tmp/r.csv\",\"/var/tmp/x\"],\"leftOmitted\":3",
         "\nleft and gone: /tmp/r.csv, /var/tmp/x and 3 more; write to /data"},
        {",\"left\":[],\"leftOmitted\":2", "\nleft and gone: 2 files; write to /data"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *result = told("ok", cases[i].more);
        assert_contains(tools_world_text(result, 0), cases[i].wanted);
        assert_null(strstr(tools_world_text(result, 0), "printed nothing"));
    }
    world.server.in_text = false;
    json_auto_t *result = told("ok", cases[0].more);
    const json_t *object = json_object_get(result, "structuredContent");
    assert_int_equal(json_array_size(json_object_get(object, "advice")), 1);
    assert_non_null(json_object_get(object, "left"));
}

static void advice_is_a_member_too_and_none_of_an_installation(void **state)
{
    static const char output[] = ",\"output\":\"EOFError: EOF when reading a line\"";

    (void)state;
    world.server.in_text = false;
    json_auto_t *result = told("error", output);
    const json_t *object = json_object_get(result, "structuredContent");
    assert_string_equal(json_string_value(json_array_get(json_object_get(object, "advice"), 0)),
                        "nobody types here: give the input as stdin");
    AUTO_FREE char *installation = mem_printf("%s,\"reason\":\"no\"", output);
    json_auto_t *failed = told("error", installation);
    assert_null(json_object_get(json_object_get(failed, "structuredContent"), "advice"));
}

/* What is not known is not said. */
static void advice_is_true_of_later_calls_and_of_callers_without_a_network(void **state)
{
    static const char unresolved[] = ",\"output\":\"Temporary failure in name resolution\"",
                      session[] = ",\"session\":true", first[] = ",\"sessionStarted\":true",
                      ended[] = ",\"output\":\"EOFError: EOF when reading a line\"";
    static const struct {
        const char *network, *arguments, *more[2], *wanted; /* NULL: nothing is said */
    } cases[] = {
        {NULL, "", {unresolved, ""}, "no network: call again with network true"},
        {"none", "", {unresolved, ""}, "programs have no network"},
        {NULL, session, {unresolved, first}, "no network: call again with network true"},
        {NULL, session, {unresolved, ""}, NULL},
        {"none", session, {unresolved, ""}, "programs have no network"},
        {NULL, ",\"stdin\":\"1\"", {ended, ""}, "it read more lines than stdin has"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *text = mem_printf("{\"status\":\"error\",\"exitCode\":1%s%s}",
                                          cases[i].more[0], cases[i].more[1]);
        world.network = cases[i].network;
        fake_broker_push_result(text);
        json_auto_t *result = run(cases[i].arguments);
        if (cases[i].wanted)
            assert_contains(tools_world_text(result, 0), cases[i].wanted);
        else
            assert_null(strstr(tools_world_text(result, 0), "network"));
        world.network = NULL;
        json_array_append_new(fake_broker.looks, json_loads(text, 0, NULL));
        json_auto_t *again = tools_world_call(&world, "get_run", "{\"runId\":\"a\"}");
        assert_contains(tools_world_text(again, 0), "exit code 1");
        assert_null(strstr(tools_world_text(again, 0), "network"));
        assert_null(strstr(tools_world_text(again, 0), "stdin"));
    }
}

static void a_time_limit_that_cannot_be_raised_says_so(void **state)
{
    (void)state;
    json_auto_t *result = told("timeout", "");
    world.app.limits.timeout_max_ms = 1000;
    json_auto_t *most = told("timeout", "");
    assert_contains(tools_world_text(result, 0), "stopped after 1.0 s: timeoutMs allows up to ");
    assert_contains(tools_world_text(most, 0), "stopped after 1.0 s, the most that is allowed: ");
}

static void names_of_settings_are_for_operators(void **state)
{
    (void)state;
    json_auto_t *result = told("disk_limit",
                               ",\"output\":\"my (SANDBOX_QUOTA)\",\"notices\":[\"too much: the "
                               "limit is 1 (SANDBOX_QUOTA); of it (SANDBOX_x) is\"]");
    assert_contains(tools_world_text(result, 0), "my (SANDBOX_QUOTA)\n");
    assert_contains(tools_world_text(result, 0), "the limit is 1; of it (SANDBOX_x) is");
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(a_result_is_one_text, set_up),
    TOOLS_TEST_AFTER(a_result_without_words_of_its_own_is_its_object, set_up),
    TOOLS_TEST_AFTER(detail_decides_how_much_is_shown, set_up),
    TOOLS_TEST_AFTER(tools_are_named_as_the_list_names_them, set_up),
    TOOLS_TEST_AFTER(files_are_what_people_want_first_and_their_links_begin_once, set_up),
    TOOLS_TEST_AFTER(a_name_that_is_written_otherwise_in_its_link_has_both, set_up),
    TOOLS_TEST_AFTER(links_that_are_signed_each_are_said_each, set_up),
    TOOLS_TEST_AFTER(what_was_left_and_is_gone_is_named, set_up),
    TOOLS_TEST_AFTER(advice_is_a_member_too_and_none_of_an_installation, set_up),
    TOOLS_TEST_AFTER(advice_is_true_of_later_calls_and_of_callers_without_a_network, set_up),
    TOOLS_TEST_AFTER(a_time_limit_that_cannot_be_raised_says_so, set_up),
    TOOLS_TEST_AFTER(names_of_settings_are_for_operators, set_up),
    TOOLS_TEST_AFTER(a_run_is_kept_when_it_prints_more_than_is_shown, set_up),
};
UNIT_TESTS(tests)
