/* The sets of tools "container" and "interpreter": shapes and refusals over persistent sandboxes.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/profiles/container_call.h"
#include "tests/unit/tools/tools_fixture.h"
#include <limits.h>
#include <unistd.h>

/* The only text of a result that is no error. */
static char *text_of(const char *tool, const char *arguments)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);

    assert_true(json_is_false(json_object_get(result, "isError")));
    assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
    return mem_strdup(tools_world_text(result, 0));
}

static void only_our_own_containers_have_names(void **state)
{
    static const char *const calls[][2] = {
        {"sandbox_exec", "{\"container_id\":\"nginx\",\"commands\":[\"id\"]}"},
        {"sandbox_exec", "{\"container_id\":\"\",\"commands\":\"id\"}"},
        {"sandbox_exec", "{\"container_id\":\"a\",\"commands\":[1]}"},
        {"sandbox_exec", "{\"commands\":[\"id\"]}"},
        {"sandbox_stop", "{\"container_id\":\"0000000000000000000000000000000000000000000000000000"
                         "000000000000\"}"},
        {"write_file", "{\"container_id\":\"x\",\"file_name\":\"a\",\"file_contents\":\"b\"}"},
        {"copy_project", "{\"container_id\":\"x\",\"local_src_dir\":\"/etc\"}"},
        {"copy_file_from_sandbox", "{\"container_id\":\"x\",\"container_src_path\":\"/etc\"}"},
    };

    (void)state;
    tools_world_offer(&world, "container");
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        AUTO_FREE char *text = text_of(calls[i][0], calls[i][1]);
        assert_ptr_equal(strstr(text, "Error: "), text);
    }
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

static void commands_are_told_one_by_one(void **state)
{
    static const char *const results[] = {
        "{\"command\":\"a\",\"status\":\"ok\",\"exitCode\":0,\"stdout\":\"x\",\"stderr\":\"y\\n\"}",
        "{\"command\":\"b\",\"status\":\"error\",\"exitCode\":2,\"stdout\":\"\",\"stderr\":\"\"}",
        "{\"command\":\"c\",\"status\":\"timeout\",\"exitCode\":null,\"stdout\":\"z\\n\","
        "\"stderr\":\"\"}",
    };
    AUTO_BUF struct buf text = BUF_INIT(1000);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(results); i++) {
        json_auto_t *result = json_loads(results[i], 0, NULL);
        container_add_command(result, &text);
    }
    assert_string_equal(buf_str(&text), "$ a\nx\nError: y\n\n$ b\nCommand exited with code 2\n\n"
                                        "$ c\nz\nError: the command was ended (timeout)\n");
}

static void files_of_a_container_are_below_its_folder(void **state)
{
    static const struct {
        const char *folder, *name, *means;
    } cases[] = {
        {NULL, "a.py", "a.py"},
        {"", "a.py", "a.py"},
        {"lib", "a.py", "lib/a.py"},
        {"/app/lib", "a.py", "lib/a.py"},
        {"/etc", "a.py", NULL},
        {NULL, "/app/b", "b"},
        {NULL, "../a", NULL},
        {"..", "a", NULL},
        {"/data", "x/y", "x/y"},
        {NULL, "/app", ""},
        {NULL, "/app/", ""},
        {NULL, ".", ""},
        {NULL, "", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = ERR_INIT;
        AUTO_FREE char *name = container_file_name(cases[i].folder, cases[i].name, &e);

        assert_int_equal(!name, !cases[i].means);
        if (name)
            assert_string_equal(name, cases[i].means);
    }
}

static void local_paths_begin_where_the_server_was_started(void **state)
{
    static const char *const cases[][2] = {
        {"/a/b", "/a/b"},   {"/a/./b//c/", "/a/b/c"},   {"/a/../b", "/b"},
        {"/../../b", "/b"}, {"/a/..b/.c", "/a/..b/.c"}, {"/", "/"},
        {"/a/..", "/"},
    };
    static const char *const relative[][2] = {
        {"main.py", "/main.py"}, {"./main.py", "/main.py"}, {".", ""}, {"./", ""},
        {"x/../y", "/y"},        {"./a/./b", "/a/b"},
    };
    char folder[PATH_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *path = container_local_path(cases[i][0]);
        assert_string_equal(path, cases[i][1]);
    }
    assert_non_null(getcwd(folder, sizeof(folder)));
    for (size_t i = 0; i < ARRAY_LEN(relative); i++) {
        AUTO_FREE char *want = mem_printf("%s%s", folder, relative[i][1]);
        AUTO_FREE char *path = container_local_path(relative[i][0]);
        assert_string_equal(path, want);
    }
    AUTO_FREE char *above = container_local_path("..");
    assert_true(strlen(above) < strlen(folder) && strncmp(folder, above, strlen(above)) == 0);
    assert_null(container_local_path(""));
    assert_null(container_local_path(NULL));
}

static void nothing_is_connected_to(void **state)
{
    static const char *const calls[][3] = {
        {"connect", "{\"host\":\"127.0.0.1\",\"port\":22}", "\"connected\":false"},
        {"send_command", "{\"session_id\":\"x\",\"command\":\"id\"}", "\"success\":false"},
        {"disconnect", "{\"session_id\":\"x\"}", "\"success\":false"},
        {"list_connections", "{}", "\"count\":0"},
    };

    (void)state;
    tools_world_offer(&world, "interpreter");
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        AUTO_FREE char *text = text_of(calls[i][0], calls[i][1]);
        assert_non_null(strstr(text, calls[i][2]));
    }
}

static void an_error_of_the_interpreter_is_one_sentence(void **state)
{
    (void)state;
    tools_world_offer(&world, "interpreter");
    fake_broker_push_result("{\"status\":\"timeout\",\"durationMs\":1000,\"stdout\":\"\","
                            "\"left\":[\"/tmp/a.csv\"],\"files\":[{\"name\":\"b.csv\",\"size\":1,"
                            "\"url\":\"u\"}]}");
    AUTO_FREE char *text = text_of("create_run_close", "{\"code\":\"1\"}");
    json_auto_t *told = json_loads(text, 0, NULL);
    assert_string_equal(json_get_string(told, "error"),
                        "The code was ended (timeout). stopped after 1.0 s: timeoutMs allows up to "
                        "300000");
}

static void every_tool_has_texts_and_a_schema(void **state)
{
    (void)state;
    for (int set = TOOLSET_ALL + 1; set < TOOLSETS; set++) {
        const struct toolset *s = toolset_theirs(set);

        tools_world_clear(&world);
        tools_world_init(&world);
        tools_world_offer(&world, s->name);
        for (size_t i = 0; i < s->n_tools; i++) {
            const struct mcp_tool *tool = s->tools[i];
            json_auto_t *row = tools_world_row(&world, tool->name);

            assert_true(strlen(json_get_string(row, "description")) > 10);
            assert_string_equal(json_get_string(json_object_get(row, "inputSchema"), "type"),
                                "object");
            assert_true(!tool->output_schema ||
                        json_is_object(json_object_get(row, "outputSchema")));
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(s->tools[j]->name, tool->name);
        }
    }
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(only_our_own_containers_have_names, tools_open_calm),
    TOOLS_TEST_AFTER(commands_are_told_one_by_one, tools_open_calm),
    TOOLS_TEST_AFTER(files_of_a_container_are_below_its_folder, tools_open_calm),
    TOOLS_TEST_AFTER(nothing_is_connected_to, tools_open_calm),
    TOOLS_TEST_AFTER(local_paths_begin_where_the_server_was_started, tools_open_calm),
    TOOLS_TEST_AFTER(an_error_of_the_interpreter_is_one_sentence, tools_open_calm),
    TOOLS_TEST_AFTER(every_tool_has_texts_and_a_schema, tools_open_calm),
};
UNIT_TESTS(tests)
