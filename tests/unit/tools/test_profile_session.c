/* The set of tools "session": models, codes, and what the broker is asked for. */
#include "config.h"

#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"

#define EMPTY_FOLDER "{\"files\":[]}"

static int set_up(void **state)
{
    tools_open_calm(state);
    tools_world_offer(&world, "session");
    return 0;
}

/* The model of a result, which is its text and its object, and fits the tool's schema. */
static json_t *model(const char *tool, const char *arguments)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);
    json_auto_t *row = tools_world_row(&world, tool);
    const json_t *structured = json_object_get(result, "structuredContent");
    json_t *told = json_loads(tools_world_text(result, 0), 0, NULL);

    assert_true(json_is_false(json_object_get(result, "isError")));
    assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
    assert_true(json_equal(json_object_get(structured, "result"), told));
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    return told;
}

static void failures_have_their_codes(void **state)
{
    static const struct {
        const char *tool, *arguments, *code;
    } cases[] = {
        {"sandbox_run_python", "{\"code\":\"1\",\"session_id\":\"a b\"}", "invalid_session_id"},
        {"sandbox_run_python", "{\"code\":\"1\",\"session_id\":\"\"}", "invalid_session_id"},
        {"sandbox_run_python", "{\"code\":\"1\",\"session_id\":5}", "invalid_session_id"},
        {"sandbox_upload_file", "{\"filename\":\"a/b\",\"content_base64\":\"\"}",
         "invalid_filename"},
        {"sandbox_upload_file", "{\"filename\":\"\",\"content_base64\":\"\"}", "invalid_filename"},
        {"sandbox_upload_file", "{\"filename\":\"a..b\",\"content_base64\":\"\"}", "invalid_path"},
        {"sandbox_upload_file", "{\"filename\":\"a\",\"content_base64\":\"?\"}", "invalid_content"},
        {"sandbox_upload_file",
         "{\"filename\":\"a\",\"content_base64\":\"\",\"session_id\":\"a/b\"}",
         "invalid_session_id"},
        {"sandbox_list_artifacts", "{\"session_id\":\"s\\u0000\"}", "invalid_session_id"},
        {"sandbox_list_artifacts", "{\"session_id\":\"a b\"}", "invalid_session_id"},
        {"sandbox_close_session", "{}", "session_not_found"},
        {"sandbox_close_session", "{\"session_id\":\"a b\"}", "session_not_found"},
        {"sandbox_close_session", "{\"session_id\":\"s\\u0000\"}", "session_not_found"},
        {"sandbox_read_artifact", "{\"session_id\":\"../x\",\"path\":\"/mnt/data/a\"}",
         "session_not_found"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *told = model(cases[i].tool, cases[i].arguments);

        assert_string_equal(json_get_string(told, "error"), cases[i].code);
        assert_non_null(json_get_string(told, "message"));
    }
    assert_int_equal(json_array_size(fake_broker.runs), 0);
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

static json_t *upload_of(size_t name_len, size_t content_len)
{
    AUTO_FREE char *name = mem_alloc(name_len + 1), *content = mem_alloc(content_len);
    AUTO_BUF struct buf base64 = BUF_INIT(B64_ENCODED_LEN(content_len));
    json_auto_t *arguments = NULL;

    memset(name, 'n', name_len);
    b64_encode(content, content_len, &base64);
    arguments = json_pack("{s:s, s:s%}", "filename", name, "content_base64", buf_str(&base64),
                          base64.len);
    AUTO_FREE char *text = json_dumps(arguments, 0);
    return model("sandbox_upload_file", text);
}

static void an_upload_is_measured(void **state)
{
    json_auto_t *longest = upload_of(255, (size_t)world.app.limits.file_max);
    json_auto_t *long_name = upload_of(256, 1);
    json_auto_t *longer_name = upload_of(2000, 1);
    json_auto_t *large = upload_of(1, (size_t)world.app.limits.file_max + 1);

    (void)state;
    assert_null(json_object_get(longest, "error"));
    assert_string_equal(json_get_string(long_name, "error"), "invalid_filename");
    assert_string_equal(json_get_string(longer_name, "error"), "invalid_filename");
    assert_string_equal(json_get_string(large, "error"), "upload_too_large");
    assert_non_null(strstr(json_get_string(large, "message"), "operator can raise that"));
    assert_null(strstr(json_get_string(large, "message"), "SAND"));
    assert_int_equal(json_array_size(fake_broker.puts), 1);
}

static void a_full_server_is_told_to_who_has_no_session_yet(void **state)
{
    fake_broker.trouble = (struct err){.kind = ERR_BUSY, .text = "too many runs"};
    fake_broker_push_file_answer(EMPTY_FOLDER);
    json_auto_t *known = model("sandbox_run_python", "{\"code\":\"1\",\"session_id\":\"s\"}");
    fake_broker_push_file_answer(NULL);
    json_auto_t *chosen = model("sandbox_run_python", "{\"code\":\"1\",\"session_id\":\"s\"}");
    json_auto_t *none = model("sandbox_run_python", "{\"code\":\"1\"}");

    (void)state;
    assert_string_equal(json_get_string(known, "error"), "session_busy");
    assert_string_equal(json_get_string(chosen, "error"), "max_sessions");
    assert_string_equal(json_get_string(none, "error"), "max_sessions");
}

static void kinds_of_trouble_have_their_codes(void **state)
{
    static const struct {
        enum err_kind kind;
        const char *code;
    } cases[] = {
        {ERR_BUSY, "session_busy"},
        {ERR_UNAVAILABLE, "docker_unavailable"},
        {ERR_REFUSED, "docker_error"},
        {ERR_IO, "execution_failed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fake_broker.trouble = (struct err){.kind = cases[i].kind, .text = "/secret/path"};
        json_auto_t *told = model("sandbox_run_python", "{\"code\":\"1\",\"session_id\":\"s\"}");

        assert_string_equal(json_get_string(told, "error"), cases[i].code);
    }
}

static void a_run_is_a_model_with_its_top_files(void **state)
{
    fake_broker_push_ok("hi\n", "[{\"name\":\"a.png\",\"size\":3,\"change\":\"created\","
                                "\"url\":\"https://x/a.png\"},"
                                "{\"name\":\"b/c.txt\",\"size\":3,\"change\":\"created\","
                                "\"url\":\"https://x/c\"},"
                                "{\"name\":\"gone\",\"size\":0,\"change\":\"deleted\"}]");
    json_auto_t *told = model("sandbox_run_python", "{\"code\":\"x\",\"session_id\":null}");
    const json_t *artifacts = json_object_get(told, "artifacts");
    const json_t *asked = json_array_get(fake_broker.runs, 0);
    const char *session = json_get_string(told, "session_id");

    (void)state;
    assert_int_equal(strncmp(session, "sess_", 5), 0);
    assert_int_equal(strlen(session), 17);
    assert_string_equal(json_get_string(asked, "conversationId"), session);
    assert_string_equal(json_get_string(asked, "language"), "python");
    assert_int_equal(json_get_integer(told, "exit_code", -9), 0);
    assert_int_equal(json_array_size(artifacts), 1);
    assert_string_equal(json_get_string(json_array_get(artifacts, 0), "path"), "/mnt/data/a.png");
}

static void a_timeout_is_exit_code_minus_one(void **state)
{
    fake_broker_push_result("{\"success\":false,\"status\":\"timeout\",\"exitCode\":null,"
                            "\"signal\":9,\"stdout\":\"a\",\"stderr\":\"b\",\"files\":[]}");
    fake_broker_push_result("{\"success\":false,\"status\":\"out_of_memory\",\"exitCode\":null,"
                            "\"signal\":9,\"stdout\":\"\",\"stderr\":\"\",\"files\":[]}");
    json_auto_t *late = model("sandbox_run_python", "{\"code\":\"x\",\"session_id\":\"s\"}");
    json_auto_t *large = model("sandbox_run_python", "{\"code\":\"x\",\"session_id\":\"s\"}");

    (void)state;
    assert_int_equal(json_get_integer(late, "exit_code", 0), -1);
    assert_string_equal(json_get_string(late, "stderr"), "b\nExecution timed out after 60s");
    assert_int_equal(json_get_integer(large, "exit_code", 0), 137);
    assert_non_null(strstr(json_get_string(large, "stderr"), "out_of_memory"));
}

static void an_upload_replaces_only_when_told_to(void **state)
{
    json_auto_t *told = model("sandbox_upload_file", "{\"filename\":\"a.csv\",\"session_id\":\"s\","
                                                     "\"content_base64\":\"aGk=\"}");
    json_auto_t *again = model("sandbox_upload_file",
                               "{\"filename\":\"a.csv\",\"session_id\":\"s\","
                               "\"content_base64\":\"aGk=\",\"overwrite\":true}");

    (void)state;
    assert_string_equal(json_get_string(told, "path"), "/mnt/data/a.csv");
    assert_string_equal(json_get_string(again, "session_id"), "s");
    for (size_t i = 0; i < 2; i++)
        assert_true(json_is_true(json_object_get(json_array_get(fake_broker.puts, i), "replace")) ==
                    (i == 1));
}

static void what_is_too_large_is_told_with_its_size_and_link(void **state)
{
    static char large[2000];

    fake_broker_push_file_answer(EMPTY_FOLDER);
    fake_broker_push_file_answer(
        "{\"files\":[{\"name\":\"big\",\"type\":\"file\",\"size\":2000,\"modified\":1,"
        "\"url\":\"https://x/big\"}]}");
    fake_broker_add_file("big", large, sizeof(large));
    json_auto_t *told = model("sandbox_read_artifact",
                              "{\"session_id\":\"s\",\"path\":\"/mnt/data/big\"}");

    (void)state;
    assert_string_equal(json_get_string(told, "error"), "artifact_too_large");
    assert_int_equal(json_get_integer(told, "size_bytes", 0), 2000);
    assert_string_equal(json_get_string(told, "download_url"), "https://x/big");
}

static void reading_gives_the_whole_file(void **state)
{
    fake_broker_push_file_answer(EMPTY_FOLDER);
    fake_broker_add_file("a.txt", "hi", 2);
    json_auto_t *told = model("sandbox_read_artifact",
                              "{\"session_id\":\"s\",\"path\":\"/mnt/data/a.txt\"}");

    (void)state;
    assert_string_equal(json_get_string(told, "content_base64"), "aGk=");
    assert_string_equal(json_get_string(told, "filename"), "a.txt");
    assert_string_equal(json_get_string(told, "mime_type"), "text/plain");
    assert_int_equal(json_get_integer(told, "size_bytes", 0), 2);
}

static void a_session_begins_with_an_upload_or_a_run(void **state)
{
    fake_broker.trouble = (struct err){.kind = ERR_NOT_FOUND, .text = "no folder"};
    json_auto_t *told = model("sandbox_list_artifacts", "{\"session_id\":\"s\"}");

    (void)state;
    assert_string_equal(json_get_string(told, "error"), "session_not_found");
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(failures_have_their_codes, set_up),
    TOOLS_TEST_AFTER(an_upload_is_measured, set_up),
    TOOLS_TEST_AFTER(a_full_server_is_told_to_who_has_no_session_yet, set_up),
    TOOLS_TEST_AFTER(kinds_of_trouble_have_their_codes, set_up),
    TOOLS_TEST_AFTER(a_run_is_a_model_with_its_top_files, set_up),
    TOOLS_TEST_AFTER(a_timeout_is_exit_code_minus_one, set_up),
    TOOLS_TEST_AFTER(an_upload_replaces_only_when_told_to, set_up),
    TOOLS_TEST_AFTER(what_is_too_large_is_told_with_its_size_and_link, set_up),
    TOOLS_TEST_AFTER(reading_gives_the_whole_file, set_up),
    TOOLS_TEST_AFTER(a_session_begins_with_an_upload_or_a_run, set_up),
};
UNIT_TESTS(tests)
