/* Runs that outlast their call: live output, handles, tasks. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/task.h"
#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"
#define ID  "0123456789abcdef01234567"
#define RUNNING                                                                                    \
    "{\"status\":\"running\",\"runId\":\"" ID "\",\"output\":\"so far\",\"stdout\":\"so far\","    \
    "\"nextByte\":6,\"expiresAt\":1785243600,\"createdAt\":1785240000}"
#define ENDED                                                                                      \
    "{\"success\":true,\"status\":\"ok\",\"exitCode\":0,\"signal\":null,\"stdout\":\"all\","       \
    "\"output\":\"all\",\"runId\":\"" ID "\",\"conversationId\":\"c\",\"createdAt\":1785240000,"   \
    "\"endedAt\":1785240060,\"expiresAt\":1785243600,\"newOutput\":\"l\",\"nextByte\":3,"          \
    "\"files\":[{\"name\":\"p.png\",\"size\":12,\"change\":\"created\",\"url\":\"u\"}]}"
#define NO_RUN "runId: no such run (unknown, expired, or another client's)"
#define TASKS  "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

static json_t *sent; /* array of messages to the client */

static int note_sent(void *ctx, const json_t *message)
{
    (void)ctx;
    return json_array_append_new(sent, json_deep_copy(message));
}

static int set_up(void **state)
{
    tools_open(state);
    world.server.tasks = &tools_tasks;
    fake_broker.looks = fake_broker.looks ? fake_broker.looks : json_array();
    sent = json_array();
    return 0;
}

static int tear_down(void **state)
{
    json_decref(sent);
    return tools_close(state);
}

static json_t *load(const char *text)
{
    json_t *value = json_loads(text, JSON_ALLOW_NUL, NULL);

    assert_non_null(value);
    return value;
}

static void push_look(const char *text)
{
    json_array_append_new(fake_broker.looks, load(text));
}

/* A request over HTTP; the whole answer, new reference. */
static json_t *ask(struct mcp_origin *origin, const char *method, const char *params)
{
    struct mcp_out out = {.send = note_sent};
    json_auto_t *message = json_pack("{s:s, s:i, s:s, s:o}", "jsonrpc", "2.0", "id", 1, "method",
                                     method, "params", load(params));
    struct mcp_answer answer;

    origin->http = true;
    origin->tenant = "me";
    origin->accept = "application/json, text/event-stream";
    origin->out = &out;
    mcp_handle(&world.server, origin, message, &answer);
    return answer.body;
}

static json_t *ask_legacy(const char *method, const char *params)
{
    struct mcp_origin origin = {.protocol_version = "2025-06-18", .cancel_fd = -1};

    return ask(&origin, method, params);
}

/* The result of a 2026-07-28 request of a client that has tasks; more ends with a comma. */
static json_t *ask_modern(const char *method, const char *name, const char *more, const char *meta)
{
    struct mcp_origin origin = {
        .protocol_version = "2026-07-28", .method = method, .name = name, .cancel_fd = -1};
    AUTO_FREE char *params = mem_printf(
        "{%s\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
        "\"io.modelcontextprotocol/clientCapabilities\":" TASKS "%s}}",
        more, meta);
    json_auto_t *body = ask(&origin, method, params);
    json_t *result = json_object_get(body, "result");

    return json_incref(result ? result : json_object_get(body, "error")); /* outlives the body */
}

#define RUN_ARGUMENTS "\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"import numpy\""

static json_t *run_modern(const char *more, const char *meta)
{
    AUTO_FREE char *params = mem_printf(
        "\"name\":\"run_code\",\"arguments\":{" RUN_ARGUMENTS "%s},", more);

    return ask_modern("tools/call", "run_code", params, meta);
}

static json_t *run_plain(const char *more)
{
    AUTO_FREE char *arguments = mem_printf("{" RUN_ARGUMENTS "%s}", more);

    return tools_world_call(&world, "run_code", arguments);
}

static const json_t *structured(const json_t *result)
{
    return json_object_get(result, "structuredContent");
}

static bool conforms(const char *tool, const json_t *result)
{
    json_auto_t *row = tools_world_row(&world, tool);

    return schema_fits(json_object_get(row, "outputSchema"), structured(result));
}

static bool is_error(const json_t *result)
{
    return json_is_true(json_object_get(result, "isError"));
}

static void assert_asked(const json_t *list, size_t i, const char *part)
{
    AUTO_FREE char *text = json_dumps(json_array_get(list, i), JSON_COMPACT);

    assert_non_null(text);
    assert_contains(text, part);
}

/* ---- run_code ---- */

static void a_run_that_goes_on_says_how_to_get_the_rest(void **state)
{
    (void)state;
    fake_broker_push_result(RUNNING);
    json_auto_t *result = run_plain("");
    assert_false(is_error(result));
    assert_true(conforms("run_code", result));
    assert_string_equal(json_get_string(structured(result), "status"), "running");
    assert_true(json_is_null(json_object_get(structured(result), "exitCode")));
    assert_contains(tools_world_text(result, 0), "get_run with runId " ID);
    assert_contains(tools_world_text(result, 0), "sinceByte 6");
    assert_asked(fake_broker.runs, 0, "\"waitMs\":50000,\"background\":false");
}

static void the_caller_says_how_long_to_wait(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        fake_broker_push_result(RUNNING);
    json_auto_t *first = run_plain(",\"waitMs\":0");
    json_auto_t *second = run_plain(",\"waitMs\":300000.0");
    json_auto_t *third = run_plain(",\"background\":true");
    assert_asked(fake_broker.runs, 0, "\"waitMs\":0,\"background\":true");
    assert_asked(fake_broker.runs, 1, "\"waitMs\":300000,");
    assert_asked(fake_broker.runs, 2, "\"background\":true");
    assert_true(first && second && third);
}

static void busy_says_when_to_come_back(void **state)
{
    (void)state;
    err_set(&fake_broker.trouble, ERR_BUSY, "64 runs wait already");
    fake_broker.busy = (struct broker_busy){.retry_after_ms = 2500, .position = 64};
    json_auto_t *result = run_plain("");
    assert_true(is_error(result));
    assert_true(conforms("run_code", result));
    assert_string_equal(json_get_string(structured(result), "status"), "busy");
    assert_int_equal(json_get_integer(structured(result), "retryAfterMs", 0), 2500);
    assert_int_equal(json_get_integer(structured(result), "position", 0), 64);
    assert_contains(tools_world_text(result, 0), "64 runs wait already (64 waiting; try again in "
                                                 "2.5 s)");
}

/* ---- on the way ---- */

static const json_t *told(size_t i)
{
    return json_object_get(json_array_get(sent, i), "params");
}

/* more: further members of the call, with a comma in front. */
static void run_works(const char *more)
{
    AUTO_FREE char *params = mem_printf(
        "{\"name\":\"run_code\",\"arguments\":{" RUN_ARGUMENTS "}%s}", more);
    json_auto_t *answer = ask_legacy("tools/call", params);

    assert_non_null(json_object_get(answer, "result"));
}

static void output_is_progress_as_it_comes(void **state)
{
    double last = -1;

    (void)state;
    fake_broker.queued = 3;
    fake_broker.live = load("[{\"stdout\":\"a\\u0000b\\n\",\"nextByte\":4},"
                            "{\"stderr\":\"\\u001b[31mred\\n\",\"nextByte\":9},"
                            "{\"skipped\":70000,\"nextByte\":70009}]");
    fake_broker_push_ok("x", "[]");
    run_works(",\"_meta\":{\"progressToken\":7}");
    assert_int_equal(json_array_size(sent), 4);
    for (size_t i = 0; i < 4; i++) {
        double now = json_number_value(json_object_get(told(i), "progress"));
        assert_true(now > last);
        assert_int_equal(json_get_integer(told(i), "progressToken", 0), 7);
        last = now;
    }
    assert_contains(json_get_string(told(0), "message"), "number 3 in the queue");
    const json_t *with_nul = json_object_get(told(1), "message");
    assert_int_equal(json_string_length(with_nul), 4);
    assert_memory_equal(json_string_value(with_nul), "a\0b\n", 4);
    assert_string_equal(json_get_string(told(2), "message"), "\x1b[31mred\n");
    assert_contains(json_get_string(told(3), "message"), "70000 bytes");
}

static void who_wants_no_progress_hears_nothing(void **state)
{
    (void)state;
    fake_broker.queued = 3;
    fake_broker.ticks = 2;
    fake_broker.live = load("[{\"stdout\":\"a\",\"nextByte\":1}]");
    fake_broker_push_ok("x", "[]");
    run_works("");
    assert_int_equal(json_array_size(sent), 0);
}

static void a_sign_of_life_comes_only_when_nothing_else_was_said(void **state)
{
    (void)state;
    fake_broker.ticks = 5;
    fake_broker_push_ok("x", "[]");
    run_works(",\"_meta\":{\"progressToken\":7}");
    assert_int_equal(json_array_size(sent), 1);
}

/* ---- get_run, cancel_run, list_runs ---- */

static void a_run_of_before_has_the_shape_of_a_new_one(void **state)
{
    (void)state;
    push_look(ENDED);
    fake_broker_add_file("p.png", PNG, sizeof PNG - 1);
    json_auto_t *result = tools_world_call(&world, "get_run",
                                           "{\"runId\":\"" ID "\",\"sinceByte\":2,\"waitMs\":10}");
    assert_false(is_error(result));
    assert_true(conforms("get_run", result));
    assert_string_equal(json_get_string(structured(result), "newOutput"), "l");
    const json_t *picture = json_array_get(json_object_get(result, "content"), 1);
    assert_string_equal(json_get_string(picture, "type"), "image");
    assert_asked(fake_broker.asked, 0, "\"tenant\":\"me\",\"runId\":\"" ID "\"");
    assert_asked(fake_broker.asked, 0, "\"sinceByte\":2");
    assert_asked(fake_broker.asked, 0, "\"waitMs\":10");
}

static void looking_waits_a_while_by_default(void **state)
{
    (void)state;
    push_look(RUNNING);
    json_auto_t *result = tools_world_call(&world, "get_run", "{\"runId\":\"" ID "\"}");
    assert_contains(tools_world_text(result, 0), "still running");
    assert_asked(fake_broker.asked, 0, "\"waitMs\":50000");
}

static void whatever_is_no_run_of_theirs_is_told_alike(void **state)
{
    static const char *const tools[] = {"get_run", "cancel_run"};
    static const char *const ids[] = {ID, "", "../../etc/passwd", "\xE2\x80\xAE", "x\\n"};

    (void)state;
    err_set(&fake_broker.trouble, ERR_NOT_FOUND, NO_RUN);
    for (size_t i = 0; i < ARRAY_LEN(tools) * ARRAY_LEN(ids); i++) {
        AUTO_FREE char *arguments = mem_printf("{\"runId\":\"%s\"}", ids[i / 2]);
        json_auto_t *result = tools_world_call(&world, tools[i % 2], arguments);
        assert_true(is_error(result));
        assert_string_equal(tools_world_text(result, 0), NO_RUN);
    }
}

static void mistakes_name_the_argument(void **state)
{
    static const struct {
        const char *arguments, *text;
    } table[] = {
        {"{}", "argument 'runId' is required"},
        {"{\"runId\":1}", "argument 'runId' must be a string, not a number"},
        {"{\"runId\":\"a\",\"sinceByte\":-1}",
         "argument 'sinceByte' must be from 0 to 9007199254740992"},
        {"{\"runId\":\"a\",\"sinceByte\":1e300}",
         "argument 'sinceByte' must be from 0 to 9007199254740992"},
        {"{\"runId\":\"a\",\"waitMs\":-1}", "argument 'waitMs' must be from 0 to 300000"},
        {"{\"runID_\":1}", "argument 'runId' must be a string, not a number"},
        {"{\"runIdd\":\"a\"}", "unknown argument 'runIdd'; did you mean 'runId'?"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        json_auto_t *result = tools_world_call(&world, "get_run", table[i].arguments);
        assert_true(is_error(result));
        assert_string_equal(tools_world_text(result, 0), table[i].text);
    }
    assert_int_equal(json_array_size(fake_broker.asked), 0);
}

static void cancelling_answers_what_came_of_the_run(void **state)
{
    (void)state;
    push_look("{\"status\":\"cancelled\",\"runId\":\"" ID "\"}");
    push_look("{\"status\":\"lost\",\"reason\":\"a bad day\",\"runId\":\"" ID "\"}");
    json_auto_t *result = tools_world_call(&world, "cancel_run", "{\"runId\":\"" ID "\"}");
    assert_false(is_error(result));
    assert_true(conforms("cancel_run", result));
    assert_asked(fake_broker.asked, 0, "cancel_run");
    json_auto_t *lost = tools_world_call(&world, "cancel_run", "{\"runId\":\"" ID "\"}");
    assert_true(is_error(lost));
    assert_true(conforms("cancel_run", lost));
    assert_string_equal(tools_world_text(lost, 0), "The run is lost: a bad day");
}

static void the_list_has_rows_of_one_shape(void **state)
{
    (void)state;
    fake_broker.run_list = load("{\"runs\":[{\"runId\":\"" ID "\",\"conversationId\":\"c\","
                                "\"language\":\"bash\",\"status\":\"ok\",\"createdAt\":5,"
                                "\"endedAt\":6,\"expiresAt\":7,\"inner\":1}]}");
    json_auto_t *result = tools_world_call(&world, "list_runs", "{\"conversationId\":\"c\"}");
    assert_true(conforms("list_runs", result));
    AUTO_FREE char *text = json_dumps(structured(result), JSON_COMPACT);
    assert_string_equal(text, "{\"runs\":[{\"runId\":\"" ID "\",\"conversationId\":\"c\","
                              "\"language\":\"bash\",\"status\":\"ok\",\"createdAt\":5,"
                              "\"endedAt\":6,\"expiresAt\":7}]}");
    assert_asked(fake_broker.asked, 0, "\"conversationId\":\"c\"");
    json_decref(TAKE_PTR(fake_broker.run_list));
    json_auto_t *failed = tools_world_call(&world, "list_runs", "{}");
    assert_true(is_error(failed));
}

/* ---- tasks ---- */

static void a_long_run_becomes_a_task(void **state)
{
    (void)state;
    fake_broker_push_result(RUNNING);
    json_auto_t *task = run_modern("", "");
    assert_string_equal(json_get_string(task, "resultType"), "task");
    assert_string_equal(json_get_string(task, "taskId"), ID);
    assert_string_equal(json_get_string(task, "status"), "working");
    assert_string_equal(json_get_string(task, "createdAt"), "2026-07-28T12:00:00.000Z");
    assert_int_equal(json_get_integer(task, "ttlMs", 0), 3600000);
    assert_true(json_get_integer(task, "pollIntervalMs", 0) > 0);
    assert_null(json_object_get(task, "content"));
    assert_asked(fake_broker.runs, 0, "\"waitMs\":3000,");
    assert_asked(fake_broker.runs, 0, "\"imports\":[\"numpy\"]");
    fake_broker_push_ok("short", "[]");
    json_auto_t *plain = run_modern("", "");
    assert_string_equal(json_get_string(plain, "resultType"), "complete");
    assert_string_equal(json_get_string(structured(plain), "stdout"), "short");
}

static void who_wants_live_output_gets_it_before_the_task(void **state)
{
    (void)state;
    fake_broker.live = load("[{\"stdout\":\"a\",\"nextByte\":1}]");
    fake_broker_push_result(RUNNING);
    fake_broker_push_result(RUNNING);
    json_auto_t *task = run_modern("", ",\"progressToken\":1");
    assert_string_equal(json_get_string(task, "resultType"), "task");
    assert_asked(fake_broker.runs, 0, "\"waitMs\":50000,");
    assert_int_equal(json_array_size(sent), 1);
    json_auto_t *other = run_modern(",\"waitMs\":1234", "");
    assert_non_null(other);
    assert_asked(fake_broker.runs, 1, "\"waitMs\":1234,");
}

#define TASK_ID "\"taskId\":\"" ID "\","

static void a_task_ends_as_its_run_does(void **state)
{
    (void)state;
    push_look(RUNNING);
    push_look(ENDED);
    push_look("{\"status\":\"cancelled\",\"runId\":\"" ID "\"}");
    push_look("{\"status\":\"lost\",\"runId\":\"" ID "\"}");
    json_auto_t *working = ask_modern("tasks/get", ID, TASK_ID, "");
    json_auto_t *completed = ask_modern("tasks/get", ID, TASK_ID, "");
    json_auto_t *cancelled = ask_modern("tasks/get", ID, TASK_ID, "");
    json_auto_t *lost = ask_modern("tasks/get", ID, TASK_ID, "");
    assert_string_equal(json_get_string(working, "status"), "working");
    assert_null(json_object_get(working, "result"));
    assert_string_equal(json_get_string(completed, "status"), "completed");
    assert_string_equal(json_get_string(completed, "lastUpdatedAt"), "2026-07-28T12:01:00.000Z");
    const json_t *result = json_object_get(completed, "result");
    const char *text = json_get_string(json_array_get(json_object_get(result, "content"), 0),
                                       "text");
    assert_non_null(strstr(text, "\nconversationId: c"));
    assert_string_equal(json_get_string(structured(result), "stdout"), "all");
    assert_true(conforms("run_code", result));
    assert_string_equal(json_get_string(cancelled, "status"), "cancelled");
    assert_string_equal(json_get_string(lost, "status"), "failed");
    assert_int_equal(json_get_integer(json_object_get(lost, "error"), "code", 0), -32603);
    assert_asked(fake_broker.asked, 0, "\"waitMs\":0");
}

static void a_task_is_cancelled_and_updated_by_its_run(void **state)
{
    (void)state;
    push_look(ENDED);
    push_look(RUNNING);
    json_auto_t *cancel = ask_modern("tasks/cancel", ID, TASK_ID, "");
    json_auto_t *update = ask_modern("tasks/update", ID, TASK_ID "\"inputResponses\":{\"x\":{}},",
                                     "");
    assert_string_equal(json_get_string(cancel, "resultType"), "complete");
    assert_string_equal(json_get_string(update, "resultType"), "complete");
    assert_asked(fake_broker.asked, 0, "cancel_run");
    err_set(&fake_broker.trouble, ERR_NOT_FOUND, NO_RUN);
    json_auto_t *unknown = ask_modern("tasks/get", ID, TASK_ID, "");
    assert_int_equal(json_get_integer(unknown, "code", 0), -32602);
    err_set(&fake_broker.trouble, ERR_UNAVAILABLE, "connect /run/secret.sock: refused");
    json_auto_t *failed = ask_modern("tasks/cancel", ID, TASK_ID, "");
    assert_int_equal(json_get_integer(failed, "code", 0), -32603);
    assert_null(strstr(json_get_string(failed, "message"), "secret"));
}

static void a_notification_opens_no_files(void **state)
{
    const struct mcp_tool_call call = {
        .server = &world.server, .app = &world.app, .tenant = "me", .cancel_fd = -1};
    AUTO_MCP_TASK struct mcp_task task = {.status = MCP_TASK_WORKING};
    struct err e = ERR_INIT;

    (void)state;
    push_look(ENDED);
    fake_broker_add_file("p.png", PNG, sizeof PNG - 1);
    assert_works(tools_tasks.get(&call, ID, true, &task, &e), e);
    assert_int_equal(task.status, MCP_TASK_COMPLETED);
    assert_int_equal(fake_broker.opens, 0);
    assert_int_equal(json_array_size(task.result.content), 1); /* the link */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(a_run_that_goes_on_says_how_to_get_the_rest),
    TEST(the_caller_says_how_long_to_wait),
    TEST(busy_says_when_to_come_back),
    TEST(output_is_progress_as_it_comes),
    TEST(who_wants_no_progress_hears_nothing),
    TEST(a_sign_of_life_comes_only_when_nothing_else_was_said),
    TEST(a_run_of_before_has_the_shape_of_a_new_one),
    TEST(looking_waits_a_while_by_default),
    TEST(whatever_is_no_run_of_theirs_is_told_alike),
    TEST(mistakes_name_the_argument),
    TEST(cancelling_answers_what_came_of_the_run),
    TEST(the_list_has_rows_of_one_shape),
    TEST(a_long_run_becomes_a_task),
    TEST(who_wants_live_output_gets_it_before_the_task),
    TEST(a_task_ends_as_its_run_does),
    TEST(a_task_is_cancelled_and_updated_by_its_run),
    TEST(a_notification_opens_no_files),
};
UNIT_TESTS(tests)
