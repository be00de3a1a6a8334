/* The extension io.modelcontextprotocol/tasks. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/events/event.h"
#include "common/mcp/events/listen.h"
#include "common/rpc/json.h"
#include "tests/unit/mcp/mcp_fixture.h"

#define DECLARED "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"
#define NO_TASK                                                                                    \
    "\"code\":-32602,\"message\":\"taskId: no such task (unknown, expired, or another client's)\""

/* Asks with these capabilities; checks status and a part of the answer. */
static void expect(struct mcp_world *w, const char *method, const char *name, const char *params,
                   const char *capabilities, int status, const char *answer)
{
    struct asked a = mcp_world_modern(w, method, name, params, capabilities, "");

    assert_contains(a.text, answer);
    assert_int_equal(a.answer.status, status);
    asked_clear(&a);
}

static void expect_task(struct mcp_world *w, const char *method, const char *id, const char *more,
                        const char *answer)
{
    AUTO_FREE char *params = mem_printf("\"taskId\":\"%s\",%s", id, more);

    expect(w, method, id, params, DECLARED, 200, answer);
}

static void a_call_becomes_a_task_for_those_who_declared_it(void **state)
{
    expect(*state, "tools/call", "goes_on", "\"name\":\"goes_on\",", DECLARED, 200,
           "\"result\":{\"taskId\":\"t1\",\"status\":\"working\","
           "\"createdAt\":\"2026-07-28T12:00:00.250Z\","
           "\"lastUpdatedAt\":\"2026-07-28T12:00:00.250Z\",\"ttlMs\":60000,"
           "\"pollIntervalMs\":1000,\"resultType\":\"task\"");
    expect(*state, "tools/call", "goes_on", "\"name\":\"goes_on\",", "{}", 200, "done at once");
    expect(*state, "tools/call", "goes_on", "\"name\":\"goes_on\",\"task\":{\"ttl\":1},", "{}", 200,
           "done at once");
    expect(*state, "tools/call", "must_go_on", "\"name\":\"must_go_on\",", DECLARED, 200,
           "\"resultType\":\"task\"");
    expect(*state, "tools/call", "must_go_on", "\"name\":\"must_go_on\",", "{}", 400,
           "\"code\":-32021,\"message\":\"this needs a client that declares the extension "
           "io.modelcontextprotocol/tasks\",\"data\":{\"requiredCapabilities\":{\"extensions\":{"
           "\"io.modelcontextprotocol/tasks\":{}}}}");
}

static void legacy_clients_get_no_task_whatever_they_declare(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-11-25", DECLARED);
    mcp_expect(w, "tools/call", "{\"name\":\"goes_on\"}", "done at once");
    mcp_expect(w, "tasks/get", "{\"taskId\":\"t1\"}", "-32601");
    mcp_expect(w, "tools/call", "{\"name\":\"must_go_on\"}", "done at once");
}

static void the_extension_is_told_to_modern_clients_only(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = mcp_world_ask(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
                                      "\"params\":{\"protocolVersion\":\"2025-11-25\"}}");

    assert_null(strstr(a.text, "tasks"));
    asked_clear(&a);
    expect(w, "server/discover", NULL, "", "{}", 200,
           "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}");
    w->server.tasks = NULL;
    a = mcp_world_modern(w, "server/discover", NULL, "", "{}", "");
    assert_null(strstr(a.text, "tasks"));
    asked_clear(&a);
    expect(w, "tasks/get", "t1", "\"taskId\":\"t1\",", DECLARED, 404, "-32601");
}

static void each_status_has_its_members(void **state)
{
    static const struct {
        const char *id, *answer;
    } table[] = {
        {"t1", "\"result\":{\"taskId\":\"t1\",\"status\":\"working\","
               "\"createdAt\":\"1970-01-01T00:00:00.000Z\","
               "\"lastUpdatedAt\":\"1970-01-01T00:00:00.001Z\",\"ttlMs\":null,"
               "\"resultType\":\"complete\""},
        {"t2", "\"ttlMs\":null,\"inputRequests\":{\"k\":{\"method\":\"roots/list\",\"params\":{}}},"
               "\"resultType\""},
        {"t3", "\"ttlMs\":null,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"whole\"}],"
               "\"isError\":false,\"resultType\":\"complete\"},\"resultType\":\"complete\""},
        {"t4", "\"status\":\"failed\",\"statusMessage\":\"broken\","},
        {"t4", "\"ttlMs\":null,\"error\":{\"code\":-32603,\"message\":\"broken\"},\"resultType\""},
        {"t5", "\"status\":\"cancelled\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        expect_task(*state, "tasks/get", table[i].id, "", table[i].answer);
}

static void updates_and_cancellations_are_only_acknowledged(void **state)
{
    static const char bare[] = "\"result\":{\"resultType\":\"complete\",\"_meta\":";

    expect_task(*state, "tasks/update", "t2", "\"inputResponses\":{\"x\":{}},", bare);
    expect_task(*state, "tasks/update", "t2", "", "-32602");
    expect_task(*state, "tasks/update", "t2", "\"inputResponses\":[],", "-32602");
    expect_task(*state, "tasks/cancel", "t1", "", bare);
    expect_task(*state, "tasks/cancel", "t4", "", "\"code\":-32603,\"message\":\"later\"");
}

static void who_may_not_look_learns_nothing(void **state)
{
    static const char *const methods[] = {"tasks/get", "tasks/update", "tasks/cancel"};
    struct mcp_world *w = *state;
    char longer[200] = "";

    memset(longer, 't', sizeof longer - 1);
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        expect_task(w, methods[i], "t9", "\"inputResponses\":{},", NO_TASK);
        expect_task(w, methods[i], longer, "\"inputResponses\":{},", NO_TASK);
        expect(w, methods[i], "t1", "\"taskId\":\"t1\\u0000\",", DECLARED, 400, "-32020");
        expect(w, methods[i], "t2", "\"taskId\":\"t1\",", DECLARED, 400, "-32020");
        expect(w, methods[i], "t1", "\"taskId\":1,", DECLARED, 200, "-32602");
        expect(w, methods[i], "t1", "\"taskId\":\"t1\",", "{}", 400, "-32021");
    }
    w->origin.tenant = "you";
    expect_task(w, "tasks/get", "t1", "", NO_TASK);
    expect(w, "tasks/list", NULL, "", DECLARED, 404, "-32601");
    expect(w, "tasks/result", NULL, "", DECLARED, 404, "-32601");
}

static struct mcp_listen *listen_to(struct mcp_world *w, const char *ids, const char *acknowledged)
{
    AUTO_FREE char *params = mem_printf("\"notifications\":{\"taskIds\":%s},", ids);
    struct asked a = mcp_world_modern(w, "subscriptions/listen", NULL, params, DECLARED, "");
    struct mcp_listen *l = a.answer.listen;

    assert_contains(a.text, acknowledged);
    asked_clear(&a);
    return l;
}

static char *hear(struct mcp_world *w, struct mcp_listen *l, const char *tenant, const char *task)
{
    const struct mcp_event event = {.kind = MCP_EVENT_TASK, .tenant = tenant, .task = task};
    json_auto_t *encoded = mcp_event_encode(&event);
    struct mcp_event decoded;
    bool end;

    assert_int_equal(mcp_event_decode(encoded, &decoded), 0);
    json_auto_t *message = mcp_listen_message(l, &w->server, &decoded, &end);
    assert_false(end);
    return message ? json_dumps(message, JSON_COMPACT) : mem_strdup("");
}

static void a_stream_hears_of_its_own_tasks_with_all_they_have(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_listen *l = listen_to(w, "[\"t3\",\"t9\"]",
                                     "\"notifications\":{\"taskIds\":[\"t3\",\"t9\"]}");

    assert_false(mcp_listen_is_empty(l));
    AUTO_FREE char *told = hear(w, l, "me", "t3");
    assert_contains(told, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{"
                          "\"taskId\":\"t3\",\"status\":\"completed\",");
    assert_contains(told, "\"text\":\"brief\"");
    assert_contains(told, "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}");
    AUTO_FREE char *not_asked = hear(w, l, "me", "t1");
    AUTO_FREE char *unknown = hear(w, l, "me", "t9");
    AUTO_FREE char *foreign = hear(w, l, "you", "t3");
    assert_string_equal(not_asked, "");
    assert_string_equal(unknown, "");
    assert_string_equal(foreign, "");
    mcp_listen_free(l);
}

static void a_bad_list_of_tasks_is_refused(void **state)
{
    struct mcp_world *w = *state;
    AUTO_BUF struct buf many = BUF_INIT(4096);
    AUTO_BUF struct buf wide = BUF_INIT(4096);

    for (int i = 0; i < 65; i++)
        buf_addf(&many, "%s\"t\"", i ? "," : "[");
    buf_add_char(&many, ']');
    buf_addf(&wide, "[\"%0200d\"]", 1);
    assert_null(listen_to(w, "1", "-32602"));
    assert_null(listen_to(w, "[1]", "-32602"));
    assert_null(listen_to(w, buf_str(&many), "-32602"));
    assert_null(listen_to(w, buf_str(&wide), "-32602"));
    expect(w, "subscriptions/listen", NULL, "\"notifications\":{\"taskIds\":[\"t1\"]},", "{}", 400,
           "-32021");
}

static const struct CMUnitTest tests[] = {
    MCP_TEST(a_call_becomes_a_task_for_those_who_declared_it),
    MCP_TEST(legacy_clients_get_no_task_whatever_they_declare),
    MCP_TEST(the_extension_is_told_to_modern_clients_only),
    MCP_TEST(each_status_has_its_members),
    MCP_TEST(updates_and_cancellations_are_only_acknowledged),
    MCP_TEST(who_may_not_look_learns_nothing),
    MCP_TEST(a_stream_hears_of_its_own_tasks_with_all_they_have),
    MCP_TEST(a_bad_list_of_tasks_is_refused),
};
UNIT_TESTS(tests)
