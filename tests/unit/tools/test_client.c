/* What tools say and ask beside their answers: consent to network access, progress, events. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/events/event.h"
#include "common/rpc/json.h"
#include "tests/unit/tools/tools_fixture.h"
#include <errno.h>

#define KEY "0123456789abcdef0123456789abcdef"

static struct mcp_stdio_client stdio_client;
static json_t *sent;      /* array of messages to the client */
static json_t *published; /* array of encoded events */
static json_t *reply;     /* what the legacy client answers to a question: a result, owned */

static int note_sent(void *ctx, const json_t *message)
{
    (void)ctx;
    return json_array_append_new(sent, json_deep_copy(message));
}

static void note_event(void *ctx, const struct mcp_event *event)
{
    (void)ctx;
    json_array_append_new(published, mcp_event_encode(event));
}

/* The legacy client answers the last question with reply. */
static json_t *next_message(void *ctx, int timeout_ms)
{
    const json_t *question = json_array_get(sent, json_array_size(sent) - 1);

    (void)ctx;
    (void)timeout_ms;
    return reply ? json_pack("{s:s, s:O, s:O}", "jsonrpc", "2.0", "id",
                             json_object_get(question, "id"), "result", reply)
                 : NULL;
}

static int set_up(void **state)
{
    tools_open(state);
    world.app.limits.network_ask = true;
    world.server.seal_key = KEY;
    world.server.seal_key_len = strlen(KEY);
    world.server.publish = note_event;
    stdio_client = MCP_STDIO_CLIENT_INIT;
    sent = json_array();
    published = json_array();
    reply = NULL;
    return 0;
}

static int tear_down(void **state)
{
    json_decref(sent);
    json_decref(published);
    json_decref(reply);
    mcp_stdio_client_clear(&stdio_client);
    return tools_close(state);
}

/* tools/call on stdio; the answer's result or error, new reference. */
static json_t *call(const char *tool, json_t *take_arguments, json_t *take_meta, const json_t *more)
{
    struct mcp_out out = {.send = note_sent};
    struct mcp_origin origin = {
        .tenant = "me", .cancel_fd = -1, .out = &out, .stdio_client = &stdio_client};
    json_auto_t *message = json_pack("{s:s, s:i, s:s, s:{s:s, s:o, s:o}}", "jsonrpc", "2.0", "id",
                                     1, "method", "tools/call", "params", "name", tool, "arguments",
                                     take_arguments, "_meta", take_meta);
    struct mcp_answer answer;

    json_object_update(json_object_get(message, "params"), (json_t *)(uintptr_t)more);
    mcp_handle(&world.server, &origin, message, &answer);
    json_t *value = json_object_get(answer.body, "result");
    if (!value)
        value = json_object_get(answer.body, "error");
    json_incref(value); /* outlives the envelope */
    json_decref(answer.body);
    return value;
}

static json_t *network_call(const char *code)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "conversationId", "c", "language", "python", "code",
                     code, "network", 1);
}

static json_t *modern(const char *capabilities)
{
    return json_pack("{s:s, s:o}", "io.modelcontextprotocol/protocolVersion", "2026-07-28",
                     "io.modelcontextprotocol/clientCapabilities",
                     json_loads(capabilities, 0, NULL));
}

#define CAN_ELICIT "{\"elicitation\":{}}"

/* The question's retry with this answer; the state that came with the question rides along. */
static json_t *answer_modern(const char *code, const json_t *question, const char *answer)
{
    json_auto_t *more = json_pack("{s:{s:o}}", "inputResponses", "network",
                                  json_loads(answer, 0, NULL));
    json_t *sealed = json_object_get(question, "requestState");

    if (sealed)
        json_object_set(more, "requestState", sealed);
    return call("run_code", network_call(code), modern(CAN_ELICIT), more);
}

static const char *error_text(const json_t *result)
{
    assert_true(json_is_true(json_object_get(result, "isError")));
    return tools_world_text(result, 0);
}

static size_t runs(void)
{
    return json_array_size(fake_broker.runs);
}

/* ---- consent ---- */

static void the_user_is_asked_with_the_program_in_sight(void **state)
{
    (void)state;
    json_auto_t *question = call("run_code", network_call("a\n\x1b[2Jb"), modern(CAN_ELICIT), NULL);
    const json_t *request = json_object_get(json_object_get(question, "inputRequests"), "network");
    const json_t *params = json_object_get(request, "params");
    const json_t *schema = json_object_get(params, "requestedSchema");

    assert_string_equal(json_get_string(question, "resultType"), "input_required");
    assert_string_equal(json_get_string(request, "method"), "elicitation/create");
    assert_contains(json_get_string(params, "message"), "in python");
    assert_contains(json_get_string(params, "message"), "\n    a\n    \xEF\xBF\xBD[2Jb");
    assert_string_equal(json_get_string(schema, "type"), "object");
    assert_int_equal(runs(), 0);
}

static void what_is_not_shown_of_the_program_is_said(void **state)
{
    AUTO_FREE char *code = mem_alloc(1001);

    (void)state;
    memset(code, 'x', 1000);
    json_auto_t *longer = call("run_code", network_call(code), modern(CAN_ELICIT), NULL);
    const json_t *request = json_object_get(json_object_get(longer, "inputRequests"), "network");
    assert_contains(json_get_string(json_object_get(request, "params"), "message"),
                    "(the first 400 of 1000 bytes)");
    json_t *arguments = network_call("");
    json_object_set_new(arguments, "code", json_stringn("print(1)\0evil", 13));
    json_auto_t *nul = call("run_code", arguments, modern(CAN_ELICIT), NULL);
    request = json_object_get(json_object_get(nul, "inputRequests"), "network");
    assert_contains(json_get_string(json_object_get(request, "params"), "message"),
                    "(the first 8 of 13 bytes)");
}

static void a_yes_runs_the_program_with_network(void **state)
{
    (void)state;
    json_auto_t *question = call("run_code", network_call("x"), modern(CAN_ELICIT), NULL);
    const json_t *request = json_object_get(json_object_get(question, "inputRequests"), "network");
    AUTO_FREE char *schema = json_dumps(
        json_object_get(json_object_get(request, "params"), "requestedSchema"), JSON_COMPACT);
    assert_contains(schema, "\"default\":false");
    assert_contains(schema, "\"required\":[\"allow\"]");
    fake_broker_push_ok("out", "[]");
    json_auto_t *result = answer_modern("x", question,
                                        "{\"action\":\"accept\",\"content\":{\"allow\":true}}");
    assert_false(json_is_true(json_object_get(result, "isError")));
    assert_int_equal(runs(), 1);
    assert_true(json_is_true(json_object_get(json_array_get(fake_broker.runs, 0), "network")));
}

static void anything_else_does_not_run_it(void **state)
{
    static const char *const no[] = {
        "{\"action\":\"decline\"}",
        "{\"action\":\"cancel\"}",
        "{}",
        "{\"action\":\"accept\"}",
        "{\"action\":\"accept\",\"content\":{}}",
        "{\"action\":\"accept\",\"content\":{\"allow\":false}}",
        "{\"action\":\"accept\",\"content\":{\"allow\":\"true\"}}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        json_auto_t *question = call("run_code", network_call("x"), modern(CAN_ELICIT), NULL);
        json_auto_t *result = answer_modern("x", question, no[i]);
        assert_contains(error_text(result), "did not agree");
    }
    assert_int_equal(runs(), 0);
}

static void a_yes_without_its_question_or_to_another_program_counts_for_nothing(void **state)
{
    (void)state;
    json_auto_t *alone = answer_modern("x", NULL, "{\"action\":\"accept\"}");
    assert_string_equal(json_get_string(alone, "resultType"), "input_required");
    json_auto_t *other = answer_modern("y", alone, "{\"action\":\"accept\"}");
    assert_int_equal(json_get_integer(other, "code", 0), -32602);
    assert_int_equal(runs(), 0);
}

static void a_client_that_cannot_ask_is_refused(void **state)
{
    (void)state;
    json_auto_t *now = call("run_code", network_call("x"), modern("{}"), NULL);
    assert_int_equal(json_get_integer(now, "code", 0), -32021);
    stdio_client.modern = false;
    json_auto_t *before = call("run_code", network_call("x"), json_object(), NULL);
    assert_contains(error_text(before), "elicitation/create");
    assert_int_equal(runs(), 0);
}

static void a_legacy_client_is_asked_in_the_middle_of_its_call(void **state)
{
    (void)state;
    stdio_client.negotiated = "2025-06-18";
    stdio_client.capabilities = json_loads(CAN_ELICIT, 0, NULL);
    stdio_client.next_message = next_message;
    reply = json_loads("{\"action\":\"accept\",\"content\":{\"allow\":true}}", 0, NULL);
    fake_broker_push_ok("out", "[]");
    json_auto_t *result = call("run_code", network_call("x"), json_object(), NULL);
    assert_false(json_is_true(json_object_get(result, "isError")));
    assert_int_equal(json_array_size(sent), 1);
    assert_int_equal(runs(), 1);
    json_decref(reply);
    reply = json_loads("{\"action\":\"decline\"}", 0, NULL);
    json_auto_t *refused = call("run_code", network_call("x"), json_object(), NULL);
    assert_contains(error_text(refused), "did not agree");
    assert_int_equal(runs(), 1);
}

static void the_user_is_not_asked_without_network(void **state)
{
    (void)state;
    fake_broker_push_ok("out", "[]");
    json_t *arguments = network_call("x");
    json_object_set_new(arguments, "network", json_false());
    json_auto_t *result = call("run_code", arguments, modern("{}"), NULL);
    assert_false(json_is_true(json_object_get(result, "isError")));
}

/* ---- progress ---- */

static void a_run_gives_signs_of_life_to_those_who_want_them(void **state)
{
    (void)state;
    world.app.limits.network_ask = false;
    fake_broker.ticks = 1;
    fake_broker_push_ok("out", "[]");
    json_auto_t *result = call("run_code", network_call("x"),
                               json_pack("{s:s}", "progressToken", "p"), NULL);
    assert_false(json_is_true(json_object_get(result, "isError")));
    assert_int_equal(json_array_size(sent), 1);
    const json_t *params = json_object_get(json_array_get(sent, 0), "params");
    assert_string_equal(json_get_string(json_array_get(sent, 0), "method"),
                        "notifications/progress");
    assert_string_equal(json_get_string(params, "progressToken"), "p");
    assert_true(json_number_value(json_object_get(params, "total")) == 30.0);
    assert_contains(json_get_string(params, "message"), "The python program has been running");

    fake_broker_push_ok("out", "[]");
    json_auto_t *quiet = call("run_code", network_call("x"), json_object(), NULL);
    assert_false(json_is_true(json_object_get(quiet, "isError")));
    assert_int_equal(json_array_size(sent), 1);
}

/* ---- events ---- */

static void assert_published(const char *text)
{
    AUTO_FREE char *all = json_dumps(published, JSON_COMPACT | JSON_SORT_KEYS);

    assert_string_equal(all, text);
}

static void a_run_tells_which_files_it_changed(void **state)
{
    (void)state;
    world.app.limits.network_ask = false;
    fake_broker_push_ok("", "[{\"name\":\"d/a b.csv\",\"size\":1,\"change\":\"created\","
                            "\"url\":\"u\"},{\"name\":\"gone\",\"size\":1,\"change\":\"deleted\"},"
                            "{\"name\":\"odd\\n\",\"size\":1,\"change\":\"deleted\"}]");
    json_auto_t *result = call("run_code", network_call("x"), json_object(), NULL);
    assert_non_null(result);
    assert_published(
        "[{\"kind\":\"resource\",\"tenant\":\"me\",\"uri\":\"sandbox://c/d/a%20b.csv\"},"
        "{\"kind\":\"resource\",\"tenant\":\"me\",\"uri\":\"sandbox://c/gone\"},"
        "{\"kind\":\"resource\",\"tenant\":\"me\",\"uri\":\"sandbox://c/odd%0A\"},"
        "{\"kind\":\"resources\",\"tenant\":\"me\"}]");
}

static void a_run_that_changed_nothing_tells_nothing(void **state)
{
    (void)state;
    world.app.limits.network_ask = false;
    fake_broker_push_ok("", "[]");
    json_auto_t *result = call("run_code", network_call("x"), json_object(), NULL);
    assert_non_null(result);
    assert_published("[]");
}

static void an_upload_tells_its_file_and_a_failed_one_does_not(void **state)
{
    (void)state;
    fake_broker.trouble.kind = ERR_NONE;
    json_auto_t *result = call(
        "upload_file",
        json_pack("{s:s, s:s, s:s}", "conversationId", "c", "filename", "a.csv", "content", "YQ=="),
        json_object(), NULL);
    assert_false(json_is_true(json_object_get(result, "isError")));
    err_set(&fake_broker.trouble, ERR_IO, "no");
    json_auto_t *failed = call(
        "upload_file",
        json_pack("{s:s, s:s, s:s}", "conversationId", "c", "filename", "b.csv", "content", "YQ=="),
        json_object(), NULL);
    assert_true(json_is_true(json_object_get(failed, "isError")));
    assert_published("[{\"kind\":\"resource\",\"tenant\":\"me\",\"uri\":\"sandbox://c/a.csv\"},"
                     "{\"kind\":\"resources\",\"tenant\":\"me\"}]");
}

static void a_full_disk_is_told_by_its_errno_not_by_its_text(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        err_set(&fake_broker.trouble, ERR_IO, "cannot write: %s", full ? "?" : strerror(ENOSPC));
        fake_broker.trouble.sys = full ? ENOSPC : 0;
        json_auto_t *failed = call("upload_file",
                                   json_pack("{s:s, s:s, s:s}", "conversationId", "c", "filename",
                                             "b.csv", "content", "YQ=="),
                                   json_object(), NULL);
        AUTO_FREE char *text = json_dumps(failed, 0);
        assert_int_equal(strstr(text, "there is no room left") != NULL, full);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    CASE(the_user_is_asked_with_the_program_in_sight),
    CASE(what_is_not_shown_of_the_program_is_said),
    CASE(a_yes_runs_the_program_with_network),
    CASE(anything_else_does_not_run_it),
    CASE(a_yes_without_its_question_or_to_another_program_counts_for_nothing),
    CASE(a_client_that_cannot_ask_is_refused),
    CASE(a_legacy_client_is_asked_in_the_middle_of_its_call),
    CASE(the_user_is_not_asked_without_network),
    CASE(a_run_gives_signs_of_life_to_those_who_want_them),
    CASE(a_run_tells_which_files_it_changed),
    CASE(a_run_that_changed_nothing_tells_nothing),
    CASE(an_upload_tells_its_file_and_a_failed_one_does_not),
    CASE(a_full_disk_is_told_by_its_errno_not_by_its_text),
};
UNIT_TESTS(tests)
