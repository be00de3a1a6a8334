/* What happens between a request and its answer: questions, progress, log messages, cancelling. */
#include "config.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "tests/unit/mcp/mcp_fixture.h"

#include <fcntl.h>
#include <sys/file.h>

#define CALL(tool, meta)                                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" tool         \
    "\",\"arguments\":{}" meta "}}"
#define ELICIT "{\"elicitation\":{}}"

static int teardown(void **state)
{
    struct mcp_world *w = *state;
    DIR *dir = opendir(w->folder);
    struct dirent *entry;
    int left = 0;

    /* Mailboxes are gone when their call is. */
    while ((entry = readdir(dir)))
        left += strchr(entry->d_name, '.') && strlen(entry->d_name) > 70;
    closedir(dir);
    mcp_world_clear(w);
    assert_int_equal(left, 0);
    return 0;
}

static void set_reply(struct mcp_world *w, const char *method, const char *result)
{
    json_object_set_new(w->replies, method, json_loads(result, 0, NULL));
}

static void assert_says(struct asked a, const char *part)
{
    assert_contains(a.text, part);
    asked_clear(&a);
}

/* ---- modern ---- */

static struct asked modern(struct mcp_world *w, const char *tool, const char *more,
                           const char *capabilities)
{
    AUTO_FREE char *params = mem_printf("\"name\":\"%s\",%s", tool, more);

    return mcp_world_modern(w, "tools/call", tool, params, capabilities, "");
}

static void a_modern_client_carries_question_and_answer(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = modern(w, "name", "", ELICIT);

    assert_contains(a.text, "\"resultType\":\"input_required\"");
    assert_contains(a.text, "\"inputRequests\":{\"user_name\":{\"method\":\"elicitation/create\"");
    assert_null(strstr(a.text, "ttlMs"));
    assert_null(strstr(a.text, "requestState"));
    asked_clear(&a);
    assert_says(modern(w, "name",
                       "\"inputResponses\":{\"x\":1,\"user_name\":{\"action\":\"accept\","
                       "\"content\":{\"name\":\"Ada\"}}},",
                       ELICIT),
                "Hello, Ada!");
    assert_says(
        modern(w, "name", "\"inputResponses\":{\"user_name\":{\"action\":\"decline\"}},", ELICIT),
        "declined");
    assert_says(modern(w, "name", "\"inputResponses\":null,", ELICIT), "input_required");
    assert_says(modern(w, "name", "\"inputResponses\":{\"user_name\":12345},", ELICIT),
                "input_required");
    assert_says(modern(w, "name", "\"inputResponses\":[],", ELICIT), "-32602");
    assert_int_equal(json_array_size(w->sent), 0);
}

static void a_modern_state_comes_back_sealed(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = modern(w, "twice", "", ELICIT);
    const char *sealed = json_get_string(json_object_get(a.answer.body, "result"), "requestState");

    assert_non_null(sealed);
    AUTO_FREE char *good = mem_printf(
        "\"requestState\":\"%s\",\"inputResponses\":{\"first\":{\"action\":\"accept\"}},", sealed);
    AUTO_FREE char *bad = mem_printf("\"requestState\":\"%s-TAMPERED\",", sealed);
    AUTO_FREE char *elsewhere = mem_printf("\"arguments\":{\"a\":1},%s", good);
    asked_clear(&a);
    assert_says(modern(w, "twice", good, ELICIT), "\"second\"");
    assert_says(modern(w, "twice", bad, ELICIT), "-32602");
    assert_says(modern(w, "twice", elsewhere, ELICIT), "-32602");
    assert_says(modern(w, "name", good, ELICIT), "-32602");
    assert_says(modern(w, "twice", "\"requestState\":7,", ELICIT), "-32602");
}

static void a_modern_client_is_only_asked_what_it_declared(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = modern(w, "name", "", "{\"sampling\":{}}");

    assert_int_equal(a.answer.status, 400);
    assert_says(a, "\"code\":-32021,\"message\":\"this needs a client that declares "
                   "elicitation/create\",\"data\":{\"requiredCapabilities\":{\"elicitation\":{"
                   "\"form\":{}}}}");
    a = modern(w, "samples", "", "{}");
    assert_int_equal(a.answer.status, 400);
    assert_says(a, "\"data\":{\"requiredCapabilities\":{\"sampling\":{}}}");
    assert_says(modern(w, "samples", "", "{\"sampling\":{}}"), "changed");
    assert_says(modern(w, "url", "", "{\"elicitation\":{}}"), "-32021");
    assert_says(modern(w, "url", "", "{\"elicitation\":{\"url\":{}}}"), "input_required");
    assert_says(modern(w, "name", "", "{\"elicitation\":{\"url\":{}}}"), "-32021");
    assert_says(modern(w, "name", "", "{\"elicitation\":{\"form\":{}}}"), "input_required");
}

/* ---- legacy ---- */

static void a_legacy_session_is_asked_on_the_calls_stream(void **state)
{
    struct mcp_world *w = *state;

    set_reply(w, "elicitation/create", "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}");
    mcp_world_start(w, "2025-06-18", ELICIT);
    assert_says(mcp_world_ask(w, CALL("name", "")), "Hello, Ada!");
    assert_int_equal(json_array_size(w->sent), 1);
    AUTO_FREE char *question = mcp_world_sent(w, 0);
    assert_contains(question, "\"method\":\"elicitation/create\"");
    assert_null(strstr(question, "\"mode\"")); /* came with 2025-11-25 */
    assert_null(w->out.store);
}

static void a_resumable_session_has_its_questions_stored(void **state)
{
    struct mcp_world *w = *state;

    set_reply(w, "elicitation/create", "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}");
    mcp_world_start(w, "2025-11-25", "{\"elicitation\":{\"form\":{},\"url\":{}}}");
    assert_says(mcp_world_ask(w, CALL("name", "")), "Hello, Ada!");
    assert_non_null(w->out.store);
    AUTO_FREE char *question = mcp_world_sent(w, 0);
    assert_contains(question, "\"mode\":\"form\"");
    assert_says(mcp_world_ask(w, CALL("url", "")), "seen");
    AUTO_FREE char *url = mcp_world_sent(w, 1);
    assert_contains(url, "\"elicitationId\":\"");
}

static void several_rounds_run_in_one_legacy_call(void **state)
{
    struct mcp_world *w = *state;

    set_reply(w, "elicitation/create", "{\"action\":\"accept\",\"content\":{}}");
    mcp_world_start(w, "2025-06-18", ELICIT);
    assert_says(mcp_world_ask(w, CALL("twice", "")), "done");
    assert_int_equal(json_array_size(w->sent), 2);
    assert_says(mcp_world_ask(w, CALL("forever", "")), "\"isError\":true");
    assert_int_equal(json_array_size(w->sent), 2 + 8);
}

static void a_legacy_client_that_cannot_be_asked_gets_a_failed_result(void **state)
{
    struct mcp_world *w = *state;

    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true"); /* no session */
    mcp_world_start(w, "2025-06-18", "{}");
    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true");
    assert_says(mcp_world_ask(w, CALL("samples", "")), "\"isError\":true");
    mcp_world_start(w, "2025-06-18", ELICIT);
    w->origin.accept = "application/json";
    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true");
    w->origin.accept = NULL;
    w->origin.out = NULL;
    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true");
    assert_int_equal(json_array_size(w->sent), 0);
}

static void a_client_on_stdio_is_asked_on_the_same_pipe(void **state)
{
    struct mcp_world *w = *state;

    set_reply(w, "elicitation/create", "{\"action\":\"accept\",\"content\":{\"name\":\"Ada\"}}");
    mcp_world_start_stdio(w, "2025-11-25", ELICIT);
    json_array_append_new(w->inbox, json_loads("{\"id\":\"x\",\"result\":{}}", 0, NULL));
    assert_says(mcp_world_ask(w, CALL("name", "")), "Hello, Ada!");
    json_object_clear(w->replies); /* the end of the input */
    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true");
    assert_int_equal(json_array_size(w->sent), 2);
}

static void a_question_answered_with_an_error_ends_the_call(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start_stdio(w, "2025-11-25", ELICIT);
    json_array_append_new(w->inbox,
                          json_loads("{\"jsonrpc\":\"2.0\",\"id\":\"sandcgi-0-1\",\"error\":{"
                                     "\"code\":-32601,\"message\":\"no\"}}",
                                     0, NULL));
    assert_says(mcp_world_ask(w, CALL("name", "")), "\"isError\":true");
    assert_int_equal(json_array_size(w->sent), 1);
}

static void responses_without_a_request_are_accepted(void **state)
{
    struct mcp_world *w = *state;
    static const char *const ids[] = {"7", "\"x\"", "\"0123456789abcdef-1\"", "\"../../x-1\""};

    mcp_world_start(w, "2025-06-18", ELICIT);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        AUTO_FREE char *text = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
        struct asked a = mcp_world_ask(w, text);
        assert_int_equal(a.answer.status, 202);
        asked_clear(&a);
    }
}

/* ---- cancelling ---- */

static void a_cancelled_call_is_not_answered(void **state)
{
    struct mcp_world *w = *state;
    struct asked a;

    w->cancels = true;
    mcp_world_start(w, "2025-06-18", ELICIT);
    a = mcp_world_ask(w, CALL("waits", ",\"_meta\":{\"progressToken\":1}"));
    assert_int_equal(a.answer.status, 202);
    assert_null(a.answer.body);
    asked_clear(&a);
    a = mcp_world_ask(w, CALL("name", "")); /* while it waits for an answer */
    assert_int_equal(a.answer.status, 202);
    assert_null(a.answer.body);
    asked_clear(&a);
}

static void cancelling_reaches_only_calls_of_the_same_session(void **state)
{
    struct mcp_world *w = *state;
    char first[65];

    mcp_world_start(w, "2025-06-18", ELICIT);
    memcpy(first, w->session, sizeof first);
    mcp_world_start(w, "2025-06-18", ELICIT);
    w->cancels = true; /* in the new session; the call belongs to the first one */
    w->origin.session = first;
    assert_says(mcp_world_ask(w, CALL("waits", ",\"_meta\":{\"progressToken\":1}")), "went on");
}

/* ---- telling ---- */

static void progress_is_told_to_those_who_want_it(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-06-18", "{}");
    assert_says(mcp_world_ask(w, CALL("tells", "")), "not wanted");
    assert_int_equal(json_array_size(w->sent), 0);
    assert_says(mcp_world_ask(w, CALL("tells", ",\"_meta\":{\"progressToken\":\"p\"}")),
                "\"wanted\"");
    assert_int_equal(json_array_size(w->sent), 3);
    AUTO_FREE char *first = mcp_world_sent(w, 0);
    AUTO_FREE char *last = mcp_world_sent(w, 2);
    assert_string_equal(first, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
                               "\"params\":{\"progressToken\":\"p\",\"progress\":0,\"total\":100,"
                               "\"message\":\"begin\"}}");
    assert_contains(last, "\"progress\":100");
    w->origin.accept = "application/json";
    assert_says(mcp_world_ask(w, CALL("tells", ",\"_meta\":{\"progressToken\":1}")), "not wanted");
    w->origin.accept = "TEXT/Event-Stream";
    assert_says(mcp_world_ask(w, CALL("tells", ",\"_meta\":{\"progressToken\":{}}")), "not wanted");
}

static void messages_in_progress_came_after_the_first_revision(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2024-11-05", "{}");
    assert_says(mcp_world_ask(w, CALL("tells", ",\"_meta\":{\"progressToken\":1}")), "wanted");
    AUTO_FREE char *first = mcp_world_sent(w, 0);
    assert_null(strstr(first, "message\":\"begin"));
}

static void log_messages_need_a_level(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-06-18", "{}");
    assert_says(mcp_world_ask(w, CALL("tells", "")), "not wanted");
    assert_int_equal(json_array_size(w->sent), 0);
    assert_says(mcp_world_ask(w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\","
                                 "\"params\":{\"level\":\"warning\"}}"),
                "{}");
    assert_says(mcp_world_ask(w, CALL("tells", "")), "not wanted");
    assert_int_equal(json_array_size(w->sent), 1);
    AUTO_FREE char *message = mcp_world_sent(w, 0);
    assert_string_equal(message, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                                 "\"params\":{\"level\":\"warning\",\"data\":\"watch out\"}}");
}

static void modern_clients_ask_for_messages_in_each_request(void **state)
{
    struct mcp_world *w = *state;
    struct asked a;

    a = mcp_world_modern(w, "tools/call", "tells", "\"name\":\"tells\",", "{}",
                         ",\"io.modelcontextprotocol/logLevel\":\"debug\"");
    asked_clear(&a);
    assert_int_equal(json_array_size(w->sent), 2);
    AUTO_FREE char *message = mcp_world_sent(w, 0);
    assert_contains(message, "\"logger\":\"tests\",\"data\":\"fine print\"");
    a = mcp_world_modern(w, "tools/call", "tells", "\"name\":\"tells\",", "{}",
                         ",\"io.modelcontextprotocol/logLevel\":\"loud\"");
    assert_says(a, "-32602");
}

static void only_a_valid_traceparent_gets_through(void **state)
{
    struct mcp_world *w = *state;
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const bad[] = {"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                                      "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
                                      "x"};

    for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
        const char *trace = i < ARRAY_LEN(bad) ? bad[i] : good;
        AUTO_FREE char *meta = mem_printf(",\"traceparent\":\"%s\"", trace);
        struct asked a = mcp_world_modern(w, "tools/call", "tells", "\"name\":\"tells\",", "{}",
                                          meta);
        char noted[36]; /* without the span, which is ours */
        snprintf(noted, sizeof noted, "%s", log_noted(LOG_TRACE));
        assert_string_equal(noted, trace == good ? "00-4bf92f3577b34da6a3ce929d0e0e4736" : "");
        assert_string_not_equal(log_noted(LOG_TRACE), good);
        log_forget();
        asked_clear(&a);
    }
}

static void a_call_hangs_up_only_where_the_client_can_come_back(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_replay *r;
    struct err e = ERR_INIT;
    char id[MCP_EVENT_ID_MAX];

    mcp_world_start(w, "2025-06-18", "{}");
    assert_says(mcp_world_ask(w, CALL("hangs_up", "")), "stayed");
    mcp_world_start(w, "2025-11-25", "{}");
    assert_says(mcp_world_ask(w, CALL("hangs_up", "")), "hung up");
    assert_int_equal(w->hung_up_ms, 500);
    assert_non_null(w->out.store);
    mcp_stream_first_id(w->out.store, id);
    r = mcp_replay_open(w->server.sessions_fd, w->session, id, &e);
    assert_non_null(r);
    mcp_replay_free(r);
}

static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, mcp_open, teardown)
    TEST(a_modern_client_carries_question_and_answer),
    TEST(a_modern_state_comes_back_sealed),
    TEST(a_modern_client_is_only_asked_what_it_declared),
    TEST(a_legacy_session_is_asked_on_the_calls_stream),
    TEST(a_resumable_session_has_its_questions_stored),
    TEST(several_rounds_run_in_one_legacy_call),
    TEST(a_legacy_client_that_cannot_be_asked_gets_a_failed_result),
    TEST(a_client_on_stdio_is_asked_on_the_same_pipe),
    TEST(a_question_answered_with_an_error_ends_the_call),
    TEST(responses_without_a_request_are_accepted),
    TEST(a_cancelled_call_is_not_answered),
    TEST(cancelling_reaches_only_calls_of_the_same_session),
    TEST(progress_is_told_to_those_who_want_it),
    TEST(messages_in_progress_came_after_the_first_revision),
    TEST(log_messages_need_a_level),
    TEST(modern_clients_ask_for_messages_in_each_request),
    TEST(only_a_valid_traceparent_gets_through),
    TEST(a_call_hangs_up_only_where_the_client_can_come_back),
};
UNIT_TESTS(tests)
