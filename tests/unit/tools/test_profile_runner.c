/* The set of tools "runner": names, payloads and error codes of the server it stands in for. */
#include "config.h"

#include "common/mcp/server.h"
#include "common/rpc/json.h"
#include "tests/fakes/fake_client.h"
#include "tests/unit/tools/tools_fixture.h"

static int set_up(void **state)
{
    tools_open_calm(state);
    tools_world_offer(&world, "runner");
    return 0;
}

/* The answer of the server to a message of a client without a session. */
static json_t *ask_plainly(const char *message)
{
    const struct mcp_origin origin = {.http = true, .tenant = "me", .cancel_fd = -1};
    struct asked a = ask(&world.server, &origin, message);
    json_t *body = json_incref(a.answer.body);

    asked_clear(&a);
    return body;
}

static json_t *error_of(const char *message)
{
    json_auto_t *body = ask_plainly(message);

    return json_incref(json_object_get(body, "error"));
}

/* The payload of a tool's result. */
static json_t *payload(const char *tool, const char *arguments)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);

    assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
    assert_null(json_object_get(result, "structuredContent"));
    assert_true(json_is_false(json_object_get(result, "isError")));
    return json_loads(tools_world_text(result, 0), 0, NULL);
}

static void three_tools_in_their_order(void **state)
{
    static const char *const names[] = {"upload_file", "run_code", "list_runners"};
    json_auto_t *body = ask_plainly("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
    const json_t *tools = json_object_get(json_object_get(body, "result"), "tools");

    (void)state;
    assert_int_equal(json_array_size(tools), ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_string_equal(json_get_string(json_array_get(tools, i), "name"), names[i]);
    const json_t *schema = json_object_get(json_array_get(tools, 1), "inputSchema");
    const json_t *properties = json_object_get(schema, "properties");
    assert_int_equal(json_object_size(properties), 5);
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(properties, "language"), "enum")), 2);
}

static void a_run_is_told_as_all_generations_did(void **state)
{
    fake_broker_push_ok("hi\n", "[{\"name\":\"a.gone\",\"size\":3,\"change\":\"deleted\"},"
                                "{\"name\":\"a.png\",\"size\":3,\"change\":\"created\","
                                "\"url\":\"https://x/a.png\"},"
                                "{\"name\":\"b.gone\",\"size\":3,\"change\":\"deleted\"}]");
    json_auto_t *result = tools_world_call(
        &world, "sandbox.run_code",
        "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\",\"other\":1}");
    const char *text = tools_world_text(result, 0);
    json_auto_t *told = json_loads(text, 0, NULL);
    const json_t *files = json_object_get(told, "files");
    const json_t *file = json_array_get(files, 0);
    const json_t *asked = json_array_get(fake_broker.runs, 0);

    (void)state;
    assert_ptr_equal(strstr(text, "{\n  \""), text);
    assert_true(json_is_true(json_object_get(told, "success")));
    assert_string_equal(json_get_string(told, "stdout"), "hi\n");
    assert_string_equal(json_get_string(told, "stderr"), "");
    assert_string_equal(json_get_string(told, "output"), "hi\n");
    assert_int_equal(json_get_integer(told, "exitCode", -9), 0);
    assert_int_equal(json_array_size(files), 1); /* what is gone is no file */
    assert_string_equal(json_get_string(file, "name"), "a.png");
    assert_string_equal(json_get_string(file, "url"), "https://x/a.png");
    assert_int_equal(json_get_integer(asked, "waitMs", -9), 0);
}

static void pictures_that_no_one_sees_are_not_looked_at(void **state)
{
    static const char wide[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\7\xd0\0\0\3\xe8 2000 by 1000";

    (void)state;
    fake_broker_add_file("a.png", wide, sizeof wide - 1);
    fake_broker_push_ok("", "[{\"name\":\"a.png\",\"size\":38,\"change\":\"created\","
                            "\"url\":\"https://x/a.png\"}]");
    json_decref(
        payload("run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\"}"));
    assert_int_equal(fake_broker.opens, 0);
    assert_int_equal(json_array_size(fake_broker.runs), 1);
}

static void a_timeout_begins_its_stderr(void **state)
{
    fake_broker_push_result("{\"success\":false,\"status\":\"timeout\",\"exitCode\":null,"
                            "\"signal\":9,\"stdout\":\"a\",\"stderr\":\"b\",\"files\":[]}");
    json_auto_t *told = payload(
        "run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\"}");

    (void)state;
    assert_true(json_is_false(json_object_get(told, "success")));
    assert_int_equal(json_get_integer(told, "exitCode", 0), -1);
    assert_string_equal(json_get_string(told, "stderr"), "Execution timed out after 30s\nb");
}

static void programs_have_the_time_that_clients_expect_unless_the_operator_sets_one(void **state)
{
    static const json_int_t want[] = {120000, 30000};
    struct broker_limits *limits = &world.app.limits, before = *limits;

    (void)state;
    for (int automatic = 0; automatic < 2; automatic++) {
        limits->timeout_max_ms = limits->timeout_ms = automatic ? 300000 : 120000;
        limits->timeout_automatic = automatic;
        fake_broker_push_ok("", "[]");
        json_decref(payload("run_code",
                            "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\"}"));
        assert_int_equal(
            json_get_integer(json_array_get(fake_broker.runs, (size_t)automatic), "timeoutMs", -1),
            want[automatic]);
    }
    *limits = before;
}

static void failures_are_results(void **state)
{
    json_auto_t *unknown = payload(
        "run_code", "{\"conversationId\":\"c\",\"language\":\"cobol\",\"code\":\"x\"}");
    json_auto_t *base64 = payload(
        "upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\",\"content\":\"?\"}");
    json_auto_t *name = payload(
        "upload_file", "{\"conversationId\":\"c\",\"filename\":\"../a\",\"content\":\"aGk=\"}");
    const char *why = json_get_string(base64, "message");

    (void)state;
    assert_true(json_is_false(json_object_get(unknown, "success")));
    assert_string_equal(json_get_string(unknown, "stdout"), "");
    assert_string_equal(json_get_string(unknown, "stderr"), "Unsupported language: cobol");
    assert_true(json_is_false(json_object_get(base64, "success")));
    assert_ptr_equal(strstr(why, "Failed to decode base64 content: "), why);
    why = json_get_string(name, "message");
    assert_ptr_equal(strstr(why, "Failed to write file: "), why);
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

static void what_could_not_begin_is_a_failed_run(void **state)
{
    fake_broker.trouble = (struct err){.kind = ERR_BUSY, .text = "too many runs"};
    json_auto_t *busy = payload(
        "run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\"}");

    (void)state;
    assert_true(json_is_false(json_object_get(busy, "success")));
    assert_non_null(strstr(json_get_string(busy, "stderr"), "too many runs"));
}

static void an_upload_says_where_the_file_is(void **state)
{
    json_auto_t *told = payload(
        "upload_file", "{\"conversationId\":\"c\",\"filename\":\"a.csv\",\"content\":\"aGk=\"}");
    const json_t *file = json_object_get(told, "file");

    (void)state;
    assert_true(json_is_true(json_object_get(told, "success")));
    assert_string_equal(json_get_string(told, "message"),
                        "File 'a.csv' uploaded successfully (2 bytes)");
    assert_string_equal(json_get_string(file, "name"), "a.csv");
    assert_non_null(json_get_string(file, "url"));
}

static void languages_have_images(void **state)
{
    json_auto_t *told = payload("list_runners", "{}");
    json_auto_t *one = payload("list_runners", "{\"language\":\"python\"}");
    json_auto_t *unknown = payload("list_runners", "{\"language\":\"js\"}");
    const json_t *first = json_array_get(json_object_get(told, "languages"), 0);

    (void)state;
    assert_int_equal(json_array_size(json_object_get(one, "languages")), 1);
    assert_true(json_equal(unknown, told));
    assert_string_equal(json_get_string(first, "language"), "bash");
    assert_string_equal(json_get_string(first, "image"), "sandcgi-runner-bash:latest");
}

#define CALL(name, arguments)                                                                      \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name         \
    "\",\"arguments\":" arguments "}}"

static void errors_have_their_codes_and_texts(void **state)
{
    static const struct {
        const char *message;
        int code;
        const char *text;
    } cases[] = {
        {CALL("nothing", "{}"), -32601, "Tool not found: nothing"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\"}", -32601, "Method not found: a/b"},
        {"{", -32700, "Parse error"},
        {CALL("run_code", "{}"), -32602, "conversationId is required"},
        {CALL("run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\"}"),
         -32602, "code is required"},
        {CALL("run_code", "{\"conversationId\":\"c\",\"language\":\"\",\"code\":\"x\"}"), -32602,
         "language is required"},
        {CALL("run_code", "{\"conversationId\":\"c\",\"language\":\"cobol\"}"), -32602,
         "code is required"},
        {CALL("upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\",\"content\":\"\"}"),
         -32602, "content is required"},
        {CALL("run_code",
              "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"x\",\"network\":1}"),
         -32602, "Invalid arguments"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *error = error_of(cases[i].message);

        assert_int_equal(json_get_integer(error, "code", 0), cases[i].code);
        assert_string_equal(json_get_string(error, "message"), cases[i].text);
    }
    assert_int_equal(json_array_size(fake_broker.runs), 0);
}

static void an_answer_to_nonsense_has_null_for_an_id(void **state)
{
    json_auto_t *body = ask_plainly("{");

    (void)state;
    assert_true(json_is_null(json_object_get(body, "id")));
}

static void our_own_tools_are_not_there(void **state)
{
    json_auto_t *error = error_of(CALL("get_run", "{\"runId\":\"x\"}"));

    (void)state;
    assert_int_equal(json_get_integer(error, "code", 0), -32601);
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(three_tools_in_their_order, set_up),
    TOOLS_TEST_AFTER(a_run_is_told_as_all_generations_did, set_up),
    TOOLS_TEST_AFTER(pictures_that_no_one_sees_are_not_looked_at, set_up),
    TOOLS_TEST_AFTER(a_timeout_begins_its_stderr, set_up),
    TOOLS_TEST_AFTER(programs_have_the_time_that_clients_expect_unless_the_operator_sets_one,
                     set_up),
    TOOLS_TEST_AFTER(failures_are_results, set_up),
    TOOLS_TEST_AFTER(what_could_not_begin_is_a_failed_run, set_up),
    TOOLS_TEST_AFTER(an_upload_says_where_the_file_is, set_up),
    TOOLS_TEST_AFTER(languages_have_images, set_up),
    TOOLS_TEST_AFTER(errors_have_their_codes_and_texts, set_up),
    TOOLS_TEST_AFTER(an_answer_to_nonsense_has_null_for_an_id, set_up),
    TOOLS_TEST_AFTER(our_own_tools_are_not_there, set_up),
};
UNIT_TESTS(tests)
