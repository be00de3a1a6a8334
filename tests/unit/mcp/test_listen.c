#include "config.h"

#include "common/mcp/events/event.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/session.h"
#include "common/rpc/json.h"
#include "tests/unit/mcp/mcp_fixture.h"

/* What the stream gets to see of the event, as text ("" nothing). */
static char *hear(struct mcp_world *w, struct mcp_listen *l, struct mcp_event event, bool *out_end)
{
    json_auto_t *encoded = mcp_event_encode(&event);
    struct mcp_event decoded;

    assert_int_equal(mcp_event_decode(encoded, &decoded), 0);
    json_auto_t *message = mcp_listen_message(l, &w->server, &decoded, out_end);
    return message ? json_dumps(message, JSON_COMPACT) : strdup("");
}

static void assert_hears(struct mcp_world *w, struct mcp_listen *l, struct mcp_event event,
                         const char *wanted)
{
    bool end;
    AUTO_FREE char *text = hear(w, l, event, &end);

    assert_string_equal(text, wanted);
    assert_false(end);
}

#define TOOLS          ((struct mcp_event){.kind = MCP_EVENT_TOOLS})
#define PROMPTS        ((struct mcp_event){.kind = MCP_EVENT_PROMPTS})
#define RESOURCES(t)   ((struct mcp_event){.kind = MCP_EVENT_RESOURCES, .tenant = t})
#define RESOURCE(t, u) ((struct mcp_event){.kind = MCP_EVENT_RESOURCE, .tenant = t, .uri = u})

static struct mcp_listen *listen_modern(struct mcp_world *w, const char *filter, const char *ack)
{
    struct asked a = mcp_world_modern(w, "subscriptions/listen", NULL, filter, "{}", "");
    struct mcp_listen *l = a.answer.listen;

    assert_int_equal(a.answer.status, 200);
    assert_non_null(l);
    assert_string_equal(a.text, ack);
    asked_clear(&a);
    return l;
}

static void a_modern_stream_hears_what_it_asked_for(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_listen *l = listen_modern(
        w,
        "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":false,"
        "\"resourceSubscriptions\":[\"test://a\",\"else://b\"],\"unknown\":[\"x\"]},",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
        "\"notifications\":{\"toolsListChanged\":true,\"resourceSubscriptions\":[\"test://a\"]},"
        "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}}}");

    assert_false(mcp_listen_is_empty(l));
    assert_null(mcp_listen_session_id(l));
    assert_hears(w, l, TOOLS,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{"
                 "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}}}");
    assert_hears(w, l, PROMPTS, "");
    assert_hears(w, l, RESOURCES("me"), "");
    assert_hears(w, l, RESOURCE("you", "test://a"), "");
    assert_hears(w, l, RESOURCE("me", "test://b"), "");
    assert_hears(w, l, RESOURCE("me", "test://a"),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{"
                 "\"uri\":\"test://a\",\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}}}");
    json_auto_t *end = mcp_listen_end(l, &w->server);
    AUTO_FREE char *text = json_dumps(end, JSON_COMPACT);
    assert_string_equal(
        text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"complete\",\"_meta\":{"
              "\"io.modelcontextprotocol/subscriptionId\":1,"
              "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"t\",\"version\":\"1\"}}}}");
    mcp_listen_free(l);
}

static void only_events_that_can_come_are_promised(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_listen *l;

    w->server.publish = NULL;
    l = listen_modern(
        w,
        "\"notifications\":{\"toolsListChanged\":true,\"promptsListChanged\":true,"
        "\"resourcesListChanged\":true,\"resourceSubscriptions\":[\"test://a\"]},",
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{"
        "\"notifications\":{\"resourceSubscriptions\":[]},"
        "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1}}}");
    assert_true(mcp_listen_is_empty(l));
    mcp_listen_free(l);
}

static void malformed_filters_are_refused(void **state)
{
    struct mcp_world *w = *state;
    static const char *const bad[] = {"", "\"notifications\":[],",
                                      "\"notifications\":{\"resourceSubscriptions\":{}},",
                                      "\"notifications\":{\"resourceSubscriptions\":[1]},"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct asked a = mcp_world_modern(w, "subscriptions/listen", NULL, bad[i], "{}", "");
        assert_null(a.answer.listen);
        assert_contains(a.text, "-32602");
        asked_clear(&a);
    }
}

static struct mcp_listen *listen_session(struct mcp_world *w)
{
    struct mcp_listen *l = NULL;
    struct mcp_answer answer;

    assert_int_equal(mcp_listen_session(&w->server, &w->origin, &l, &answer), 0);
    assert_int_equal(answer.status, 200);
    return l;
}

static void subscribe(struct mcp_world *w, const char *uri)
{
    char text[256];

    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\","
             "\"params\":{\"uri\":\"%s\"}}",
             uri);
    struct asked a = mcp_world_ask(w, text);
    assert_string_equal(a.text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    asked_clear(&a);
}

static void a_legacy_stream_follows_its_session(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_answer answer;
    struct mcp_listen *l;
    bool end;

    mcp_world_start(w, "2025-11-25", "{}");
    l = listen_session(w);
    assert_string_equal(mcp_listen_session_id(l), w->session);
    assert_hears(w, l, TOOLS,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}");
    assert_hears(w, l, PROMPTS,
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}");
    assert_hears(w, l, RESOURCES("me"),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}");
    assert_hears(w, l, RESOURCES("you"), "");
    assert_hears(w, l, RESOURCE("me", "test://a"), "");
    subscribe(w, "test://a");
    assert_hears(w, l, RESOURCE("me", "test://a"), ""); /* has not looked again yet */
    assert_hears(w, l, (struct mcp_event){.kind = MCP_EVENT_SESSION, .session = "other"}, "");
    assert_hears(w, l, (struct mcp_event){.kind = MCP_EVENT_SESSION, .session = w->session}, "");
    assert_hears(w, l, RESOURCE("me", "test://a"),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
                 "\"params\":{\"uri\":\"test://a\"}}");
    mcp_session_delete(&w->server, &w->origin, &answer);
    AUTO_FREE char *last = hear(
        w, l, (struct mcp_event){.kind = MCP_EVENT_SESSION, .session = w->session}, &end);
    assert_string_equal(last, "");
    assert_true(end);
    assert_null(mcp_listen_end(l, &w->server));
    mcp_listen_free(l);
}

static void a_stream_on_stdio_follows_the_pin(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_listen *l;

    mcp_world_start_stdio(w, "2025-06-18", "{}");
    l = listen_session(w);
    assert_null(mcp_listen_session_id(l));
    subscribe(w, "test://a");
    assert_hears(w, l, RESOURCE("me", "test://a"),
                 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\","
                 "\"params\":{\"uri\":\"test://a\"}}");
    mcp_listen_free(l);
}

static void streams_are_refused_with_the_right_status(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_listen *l = NULL;
    struct {
        const char *session, *version, *accept;
        int status;
    } cases[] = {{NULL, NULL, NULL, 405},
                 {NULL, "2026-07-28", NULL, 405},
                 {"x", NULL, NULL, 404},
                 {w->session, "2025-11-25", "application/json", 406},
                 {w->session, "1999-01-01", "text/event-stream", 400}};

    mcp_world_start(w, "2025-11-25", "{}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_answer answer;
        w->origin.session = cases[i].session;
        w->origin.protocol_version = cases[i].version;
        w->origin.accept = cases[i].accept;
        assert_int_equal(mcp_listen_session(&w->server, &w->origin, &l, &answer), -1);
        assert_int_equal(answer.status, cases[i].status);
        assert_null(json_object_get(answer.body, "id"));
        json_decref(answer.body);
    }
    assert_null(l);
}

static void what_is_no_event_is_refused(void **state)
{
    static const char *const bad[] = {"{}",
                                      "[]",
                                      "{\"kind\":\"x\"}",
                                      "{\"kind\":\"resource\"}",
                                      "{\"kind\":\"resource\",\"tenant\":\"a\"}",
                                      "{\"kind\":\"resources\"}",
                                      "{\"kind\":\"session\"}"};
    struct mcp_event event;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_auto_t *value = json_loads(bad[i], 0, NULL);
        assert_int_equal(mcp_event_decode(value, &event), -1);
    }
}

static const struct CMUnitTest tests[] = {
    MCP_TEST(a_modern_stream_hears_what_it_asked_for),
    MCP_TEST(only_events_that_can_come_are_promised),
    MCP_TEST(malformed_filters_are_refused),
    MCP_TEST(a_legacy_stream_follows_its_session),
    MCP_TEST(a_stream_on_stdio_follows_the_pin),
    MCP_TEST(streams_are_refused_with_the_right_status),
    MCP_TEST(what_is_no_event_is_refused),
};
UNIT_TESTS(tests)
