/* What the tools say about themselves: tools/list and list_runners, and how they follow the
 * runners. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/tools_app.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/schema.h"
#include "tests/fakes/tools_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct tools_world world;

static int set_up(void **state)
{
    (void)state;
    tools_world_init(&world);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tools_world_clear(&world);
    return 0;
}

static const json_t *property(const json_t *row, const char *name)
{
    return json_object_get(json_object_get(json_object_get(row, "inputSchema"), "properties"),
                           name);
}

/* clang-format off */
static const char *const tool_names[] = {
    "upload_file",
    "create_upload",
    "import_url",
    "run_code",
    "get_run",
    "cancel_run",
    "list_runs",
    "list_files",
    "read_file",
    "write_file",
    "move_file",
    "delete_file",
    "delete_conversation",
    "download_archive",
    "upload_archive",
    "install_package",
    "list_runners",
    "create_sandbox",
    "exec",
    "get_sandbox_status",
    "close_sandbox",
    "reset_session",
    "copy_project",
    "copy_file",
    "copy_file_from_sandbox",
};
/* clang-format on */

static void the_order_of_the_tools_is_fixed(void **state)
{
    size_t n;
    const struct mcp_tool *const *tools = tools_all(&n);

    (void)state;
    for (size_t i = 0; i < n && i < ARRAY_LEN(tool_names); i++)
        assert_string_equal(tools[i]->name, tool_names[i]);
    assert_int_equal(n, ARRAY_LEN(tool_names));
}

static void run_code_names_languages_and_libraries(void **state)
{
    json_auto_t *row = tools_world_row(&world, "run_code");
    const char *description = json_get_string(row, "description");
    AUTO_FREE char *languages = json_dumps(json_object_get(property(row, "language"), "enum"),
                                           JSON_COMPACT);

    (void)state;
    assert_non_null(strstr(description, "\n- bash (5.2)\n- python (3.11.2): numpy 1.24.2, pandas "
                                        "1.5.3"));
    assert_non_null(strstr(description, "stopped after 30 seconds"));
    assert_non_null(strstr(description, "(at most 300)"));
    assert_string_equal(languages, "[\"bash\",\"python\"]");
}

static void run_code_states_its_arguments_and_limits(void **state)
{
    json_auto_t *row = tools_world_row(&world, "run_code");
    const json_t *schema = json_object_get(row, "inputSchema");
    AUTO_FREE char *required = json_dumps(json_object_get(schema, "required"), JSON_COMPACT);
    const json_t *timeout = property(row, "timeout");

    (void)state;
    assert_string_equal(required, "[\"conversationId\",\"language\",\"code\"]");
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_get_integer(timeout, "maximum", 0), 300);
    assert_int_equal(json_get_integer(timeout, "default", 0), 30);
    assert_int_equal(json_get_integer(property(row, "code"), "maxLength", 0), 1024);
    assert_int_equal(json_get_integer(property(row, "conversationId"), "maxLength", 0), 256);
    assert_true(json_is_false(json_object_get(property(row, "network"), "default")));
    assert_non_null(property(row, "stdin"));
    assert_non_null(property(row, "args"));
    assert_non_null(property(row, "environment"));
}

static void a_server_without_network_says_so(void **state)
{
    world.app.limits.network = NETWORK_NONE;
    json_auto_t *row = tools_world_row(&world, "run_code");

    (void)state;
    assert_non_null(strstr(json_get_string(row, "description"), "this server does not allow it"));
}

static void annotations_are_honest(void **state)
{
    json_auto_t *run = tools_world_row(&world, "run_code");
    json_auto_t *upload = tools_world_row(&world, "upload_file");
    json_auto_t *list = tools_world_row(&world, "list_runners");

    (void)state;
    assert_false(json_get_bool(json_object_get(run, "annotations"), "readOnlyHint", 1));
    assert_true(json_get_bool(json_object_get(run, "annotations"), "openWorldHint", 0));
    assert_true(json_get_bool(json_object_get(upload, "annotations"), "destructiveHint", 0));
    assert_true(json_get_bool(json_object_get(list, "annotations"), "readOnlyHint", 0));
    assert_string_equal(json_get_string(run, "title"), "Run code");
}

static void the_list_is_there_without_a_broker(void **state)
{
    fake_broker_reset();
    json_auto_t *row = tools_world_row(&world, "run_code");

    (void)state;
    assert_null(strstr(json_get_string(row, "description"), "Languages"));
    assert_null(json_object_get(property(row, "language"), "enum"));
}

static void the_broker_is_not_asked_for_every_list(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        json_auto_t *row = tools_world_row(&world, "run_code");
        assert_non_null(row);
    }
    assert_int_equal(fake_broker.runner_questions, 1);
}

/* Waits as long as a list is remembered; the only test here that takes time. */
static void a_new_runner_appears_when_the_list_has_aged(void **state)
{
    json_auto_t *before = tools_world_row(&world, "run_code");
    struct timespec wait = {.tv_sec = RUNNERS_FRESH_MS / 1000,
                            .tv_nsec = (RUNNERS_FRESH_MS % 1000 + 50) * 1000000L};

    (void)state;
    fake_broker_set_runners("[{\"language\":\"ruby\",\"image\":\"i\",\"version\":\"3\"}]");
    json_auto_t *same = tools_world_row(&world, "run_code");
    assert_true(json_equal(before, same));
    nanosleep(&wait, NULL);
    json_auto_t *after = tools_world_row(&world, "run_code");
    assert_non_null(strstr(json_get_string(after, "description"), "\n- ruby (3)"));
    assert_null(strstr(json_get_string(after, "description"), "python"));
}

static void list_runners_tells_all(void **state)
{
    json_auto_t *result = tools_world_call(&world, "list_runners", "{}");
    json_auto_t *row = tools_world_row(&world, "list_runners");
    const json_t *structured = json_object_get(result, "structuredContent");

    (void)state;
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    assert_string_equal(tools_world_text(result, 0),
                        "Languages and the libraries that can be imported:\n- bash (5.2)\n"
                        "- python (3.11.2): numpy 1.24.2, pandas 1.5.3");
}

static void list_runners_asks_anew_each_time(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        json_auto_t *result = tools_world_call(&world, "sandbox.list_runners", "{}");
        assert_true(json_is_false(json_object_get(result, "isError")));
    }
    assert_int_equal(fake_broker.runner_questions, 2);
}

static void list_runners_says_when_the_broker_is_silent_and_recovers(void **state)
{
    (void)state;
    fake_broker_reset();
    json_auto_t *down = tools_world_call(&world, "list_runners", "{}");
    assert_true(json_is_true(json_object_get(down, "isError")));
    assert_null(strstr(tools_world_text(down, 0), "secret.sock"));
    fake_broker_set_runners("[]");
    json_auto_t *up = tools_world_call(&world, "list_runners", "{}");
    assert_string_equal(tools_world_text(up, 0), "{\"languages\":[]}");
}

static void list_runners_takes_no_arguments(void **state)
{
    json_auto_t *result = tools_world_call(&world, "list_runners", "{\"language\":\"python\"}");

    (void)state;
    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_string_equal(tools_world_text(result, 0),
                        "unknown argument 'language'; this tool has none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_order_of_the_tools_is_fixed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_code_names_languages_and_libraries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(run_code_states_its_arguments_and_limits, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_without_network_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(annotations_are_honest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_list_is_there_without_a_broker, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_broker_is_not_asked_for_every_list, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_runner_appears_when_the_list_has_aged, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(list_runners_tells_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(list_runners_asks_anew_each_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(list_runners_says_when_the_broker_is_silent_and_recovers,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(list_runners_takes_no_arguments, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
