/* Which of several nodes serves a call of the real tools. */
#include "config.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/mcp/session/session.h"
#include "common/rpc/json.h"
#include "common/sandbox/stand_in.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/fake_client.h"
#include "tests/fakes/tools_world.h"
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define RUN_ID     "0123456789abcdef01234567"
#define SANDBOX_ID "sbx_" RUN_ID

struct world {
    struct tools_world tools;
    struct mcp_edge edge;
    struct mcp_origin origin;
    char folder[PATH_MAX];
};

static int setup(void **state)
{
    static const char key[] = "0123456789abcdef0123456789abcdef";
    struct world *w = mem_alloc(sizeof *w);

    node_set("n1");
    tools_world_init(&w->tools);
    snprintf(w->folder, sizeof w->folder, "%s/routes.XXXXXX", getenv("TMPDIR") ?: "/tmp");
    assert_non_null(mkdtemp(w->folder));
    w->tools.server.routes_by = tool_routes_by;
    w->tools.server.sessions_fd = open(w->folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(w->tools.server.sessions_fd, STAND_IN_DIR, 0700), 0);
    w->tools.server.session_ttl_s = 3600;
    w->tools.server.sessions_max = 100;
    w->tools.server.seal_key = key;
    w->tools.server.seal_key_len = sizeof key - 1;
    w->origin = (struct mcp_origin){
        .http = true, .tenant = "me", .cancel_fd = -1, .edge = &w->edge};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    unit_remove_tree(w->folder);
    close(w->tools.server.sessions_fd);
    tools_world_clear(&w->tools);
    node_set(NULL);
    free(w);
    return 0;
}

static struct asked ask_method(struct world *w, const char *method, const char *params)
{
    AUTO_FREE char *text = mem_printf(
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}", method, params);

    return ask(&w->tools.server, &w->origin, text);
}

static struct asked call_tool(struct world *w, const char *tool, const char *arguments)
{
    AUTO_FREE char *params = mem_printf("{\"name\":\"%s\",\"arguments\":%s}", tool, arguments);

    return ask_method(w, "tools/call", params);
}

/* Where it is sent: "key …", "node …", or "" when it stays. */
static void expect(const struct asked *a, const char *where)
{
    static const char *const by[] = {"", "key ", "node "};
    AUTO_FREE char *to = mem_printf("%s%s", by[a->answer.to.by], a->answer.to.name);

    if (strcmp(to, where) != 0)
        fail_msg("\"%s\", not \"%s\"; %s", to, where, a->text);
    if (a->answer.to.by != MCP_STAYS)
        assert_string_equal(a->text, ""); /* nothing of it was done */
}

static void expect_call(struct world *w, const char *tool, const char *arguments, const char *where)
{
    struct asked a = call_tool(w, tool, arguments);

    expect(&a, where);
    asked_clear(&a);
}

static void expect_method(struct world *w, const char *method, const char *params,
                          const char *where)
{
    struct asked a = ask_method(w, method, params);

    expect(&a, where);
    asked_clear(&a);
}

static void a_conversation_is_its_key(void **state)
{
    static const struct {
        const char *conversation, *key;
    } cases[] = {
        {"a", "a"},
        {"two words", "two words"},
        {" a", "=?base64?IGE=?="},
        {"=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="},
        {"\xC3\xA9", "=?base64?w6k=?="},
    };
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *arguments = mem_printf("{\"conversationId\":\"%s\",\"filename\":\"f\"}",
                                               cases[i].conversation);
        AUTO_FREE char *where = mem_printf("key %s", cases[i].key);
        AUTO_FREE char *route = mem_printf("me:%s", cases[i].key);

        w->edge.route = NULL;
        expect_call(w, "read_file", arguments, where);
        w->edge.route = "me:b";
        expect_call(w, "read_file", arguments, where);
        w->edge.route = "m:e:a"; /* of another tenant */
        expect_call(w, "read_file", arguments, where);
        w->edge.route = route;
        expect_call(w, "read_file", arguments, "");
    }
}

static void what_has_an_id_is_on_the_node_that_it_names(void **state)
{
    struct world *w = *state;

    w->edge.route = "me:a";
    expect_call(w, "get_run", "{\"runId\":\"n2-" RUN_ID "\"}", "node n2");
    expect_call(w, "cancel_run", "{\"runId\":\"n2-" RUN_ID "\"}", "node n2");
    expect_call(w, "get_run", "{\"runId\":\"n1-" RUN_ID "\"}", "");
    expect_call(w, "get_run", "{\"runId\":\"" RUN_ID "\"}", "");
    expect_call(w, "exec", "{\"sandboxId\":\"n3-" SANDBOX_ID "\",\"command\":\"x\"}", "node n3");
    expect_call(w, "get_sandbox_status", "{\"sandboxId\":\"n3-" SANDBOX_ID "\"}", "node n3");
    expect_call(w, "get_sandbox_status", "{\"conversationId\":\"b\"}", "key b");
    expect_call(w, "get_sandbox_status", "{\"conversation_id\":\"b\"}", "key b");
    expect_call(w, "get_sandbox_status", "{\"conversation_id\":\"a\",\"conversationId\":\"b\"}",
                "key b");
    expect_call(w, "get_sandbox_status", "{\"conversationId\":\"\"}", "");
    expect_call(w, "get_sandbox_status", "{}", "");
    expect_method(w, "resources/read", "{\"uri\":\"sandbox://b/f.txt\"}", "key b");
    expect_method(w, "resources/read", "{\"uri\":\"sandbox://a/f.txt\"}", "");
    expect_method(w, "resources/read", "{\"uri\":\"containers://n2-" SANDBOX_ID "/logs\"}",
                  "node n2");
    expect_method(w, "resources/read", "{\"uri\":\"other://x\"}", "");
    expect_method(w, "tools/list", "{}", "");
    expect_method(w, "ping", "{}", "");
}

static void a_mistaken_call_is_answered_where_it_is(void **state)
{
    static const char *const arguments[] = {
        "{}",
        "{\"conversationId\":7,\"filename\":\"f\"}",
        "{\"conversationId\":\"\",\"filename\":\"f\"}",
        "{\"conversationId\":\"a\\u0000b\",\"filename\":\"f\"}",
    };
    AUTO_BUF struct buf name = BUF_INIT(400);
    struct world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
        expect_call(w, "read_file", arguments[i], "");
    for (size_t i = 0; i < 256; i++)
        buf_add_char(&name, 'x');
    AUTO_FREE char *longest = mem_printf("{\"conversationId\":\"%s\",\"filename\":\"f\"}",
                                         buf_str(&name));
    AUTO_FREE char *its_key = mem_printf("key %s", buf_str(&name));
    expect_call(w, "read_file", longest, its_key);
    AUTO_FREE char *too_long = mem_printf("{\"conversationId\":\"x%s\",\"filename\":\"f\"}",
                                          buf_str(&name));
    expect_call(w, "read_file", too_long, "");
    expect_call(w, "no_such_tool", "{\"conversationId\":\"a\"}", "");
    expect_method(w, "tools/call", "{\"arguments\":{\"conversationId\":\"a\"}}", "");
}

static void a_new_conversation_gets_its_name_before_its_home(void **state)
{
    struct world *w = *state;
    struct asked a = call_tool(w, "run_code", "{\"language\":\"bash\",\"code\":\":\"}");
    char key[MCP_KEY_MAX + 3];

    expect_call(w, "read_file", "{\"conversationId\":\" \\n\",\"filename\":\"f\"}", "");
    struct asked blank = call_tool(
        w, "run_code", "{\"language\":\"bash\",\"code\":\":\",\"conversationId\":\" \"}");
    assert_int_equal(strlen(blank.answer.to.name), 21); /* as if it were left out */
    asked_clear(&blank);
    assert_int_equal(a.answer.to.by, MCP_BY_KEY);
    assert_int_equal(strlen(a.answer.to.name), 21);
    assert_int_equal(json_array_size(fake_broker.runs), 0);
    snprintf(key, sizeof key, "me:%s", a.answer.to.name);
    asked_clear(&a);

    w->edge.route = key;
    w->edge.again = true;
    fake_broker_push_ok("", "[]");
    a = call_tool(w, "run_code", "{\"language\":\"bash\",\"code\":\":\"}");
    expect(&a, "");
    assert_int_equal(json_array_size(fake_broker.runs), 1);
    assert_string_equal(json_get_string(json_array_get(fake_broker.runs, 0), "conversationId"),
                        key + 3);
    asked_clear(&a);
}

static void a_call_is_sent_on_once(void **state)
{
    struct world *w = *state;

    w->edge.again = true;
    w->edge.route = "other:a";
    struct asked a = call_tool(w, "read_file", "{\"conversationId\":\"a\",\"filename\":\"f\"}");
    expect(&a, "");
    assert_int_equal(a.answer.status, 500);
    assert_contains(a.text, "the nodes have different tokens");
    asked_clear(&a);
    a = call_tool(w, "get_run", "{\"runId\":\"n2-" RUN_ID "\"}"); /* there is no such node */
    expect(&a, "");
    assert_int_equal(a.answer.status, 200);
    asked_clear(&a);
}

static void what_is_away_says_so(void **state)
{
    struct world *w = *state;

    w->edge.home = "10.0.0.2:8080";
    struct asked a = call_tool(w, "get_run", "{\"runId\":\"n2-" RUN_ID "\"}");
    assert_int_equal(a.answer.status, 503);
    assert_contains(a.text, "the machine n2 that has this is away");
    assert_contains(a.text, "\"retryAfterMs\":5000");
    asked_clear(&a);
    w->edge.route = "me:a";
    w->edge.refuses = true;
    a = call_tool(w, "read_file", "{\"conversationId\":\"a\",\"filename\":\"f\"}");
    assert_int_equal(a.answer.status, 503);
    assert_contains(a.text, "the machine that has the files of this conversation is away");
    asked_clear(&a);
}

/* The note that is in force; a new reference. */
static json_t *json_load_note(struct world *w)
{
    AUTO_FREE char *path = mem_printf("%s/" STAND_IN_DIR, w->folder);
    DIR *dir = opendir(path);
    struct dirent *entry;
    json_t *note = NULL;

    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        AUTO_FREE char *file = mem_printf("%s/%s", path, entry->d_name);
        if (strlen(entry->d_name) == 32 && !note)
            note = json_load_file(file, 0, NULL);
    }
    closedir(dir);
    assert_non_null(note);
    return note;
}

static void a_home_that_is_away_has_other_files(void **state)
{
    struct world *w = *state;
    char names[3][300];

    w->edge.route = "me:a";
    for (size_t i = 0; i < 3; i++) {
        /* Another home: an absence of its own. */
        w->edge.home = i < 2 ? "127.0.0.1:1" : "127.0.0.1:2";
        fake_broker_push_ok("", "[]");
        struct asked a = call_tool(
            w, "run_code", "{\"conversationId\":\"a\",\"language\":\"bash\",\"code\":\":\"}");
        assert_contains(a.text, "has an empty /data on another machine");
        asked_clear(&a);
        assert_false(node_stands_in());
        json_auto_t *note = json_load_note(w);
        snprintf(names[i], sizeof names[i], "%s", json_get_string(note, "inside"));
        assert_string_equal(node_outside(names[i]), "a");
    }
    assert_string_equal(names[0], names[1]);
    assert_string_not_equal(names[1], names[2]);
}

static void without_an_edge_all_is_served_here(void **state)
{
    struct world *w = *state;

    w->origin.edge = NULL;
    expect_call(w, "read_file", "{\"conversationId\":\"a\",\"filename\":\"f\"}", "");
    expect_call(w, "get_run", "{\"runId\":\"n2-" RUN_ID "\"}", "");
}

static void tools_of_other_servers_are_on_one_node_for_a_tenant(void **state)
{
    struct world *w = *state;

    tools_world_offer(&w->tools, "session");
    w->tools.server.routes_by = NULL;
    expect_call(w, "session_list", "{}", "key *");
    w->edge.route = "me:*";
    expect_call(w, "session_list", "{}", "");
}

static void clients_may_be_asked_for_headers(void **state)
{
    struct world *w = *state;
    json_auto_t *plain = tools_world_row(&w->tools, "exec");

    assert_null(json_object_get(
        json_object_get(json_object_get(json_object_get(plain, "inputSchema"), "properties"),
                        "sandboxId"),
        "x-mcp-header"));
    w->tools.app.route_headers = true;
    mcp_tools_cache_free(w->tools.server.tools_cache);
    w->tools.server.tools_cache = mcp_tools_cache_new();
    json_auto_t *asked = tools_world_row(&w->tools, "run_code");
    assert_string_equal(
        json_get_string(
            json_object_get(json_object_get(json_object_get(asked, "inputSchema"), "properties"),
                            "conversationId"),
            "x-mcp-header"),
        "Conversation");
}

static void a_list_says_of_which_node_it_is(void **state)
{
    struct world *w = *state;

    fake_broker.run_list = json_pack("{s:[]}", "runs");
    json_auto_t *result = tools_world_call(&w->tools, "list_runs", "{}");
    assert_string_equal(json_get_string(json_object_get(result, "structuredContent"), "node"),
                        "n1");
}

static void a_batch_goes_as_one(void **state)
{
    static const char batch[] = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},"
                                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
                                "call\",\"params\":{\"name\":\"read_file\","
                                "\"arguments\":{\"conversationId\":\"a\",\"filename\":\"f\"}}},"
                                "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/"
                                "call\",\"params\":{\"name\":\"read_file\","
                                "\"arguments\":{\"conversationId\":\"b\",\"filename\":\"f\"}}}]";
    struct world *w = *state;

    w->origin.protocol_version = "2025-03-26";
    struct asked a = ask(&w->tools.server, &w->origin, batch);
    expect(&a, "key a");
    asked_clear(&a);
    w->edge.route = "me:a";
    w->edge.again = true;
    a = ask(&w->tools.server, &w->origin, batch);
    expect(&a, "");
    assert_contains(a.text, "it is in a batch with calls for others");
    assert_contains(a.text, "\"id\":2,\"result\"");
    asked_clear(&a);
}

/* ---- sessions ---- */

static void start_session(struct world *w, char session[MCP_SESSION_MAX])
{
    struct asked a = ask_method(
        w, "initialize",
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{\"form\":{}},"
        "\"roots\":{}},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}");

    expect(&a, "");
    assert_int_equal(strlen(a.answer.session), 3 + MCP_SESSION_ID_LEN);
    memcpy(session, a.answer.session, MCP_SESSION_MAX);
    asked_clear(&a);
    w->origin.session = session;
}

static void a_session_is_known_at_every_node(void **state)
{
    struct world *w = *state;
    char session[MCP_SESSION_MAX];
    struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;

    start_session(w, session);
    assert_int_equal(strncmp(session, "n1-", 3), 0);
    node_set("n2");
    assert_int_equal(mcp_session_load(&w->tools.server, session, "me", &s, &e), 0);
    assert_string_equal(s.node, "n1");
    assert_int_equal(s.revision, MCP_2025_11_25);
    AUTO_FREE char *can = json_dumps(json_object_get(s.record, "capabilities"),
                                     JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(can, "{\"elicitation\":{\"form\":{}},\"roots\":{}}");
    mcp_session_clear(&s);
    expect_method(w, "ping", "{}", "");
    /* What is set is set where the record is. */
    expect_method(w, "logging/setLevel", "{\"level\":\"info\"}", "node n1");
    expect_method(w, "resources/subscribe", "{\"uri\":\"sandbox://a/f\"}", "node n1");
}

static void a_session_cannot_be_forged(void **state)
{
    struct world *w = *state;
    char session[MCP_SESSION_MAX], wrong[MCP_SESSION_MAX];
    struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;

    start_session(w, session);
    node_set("n2");
    for (size_t i = 3; session[i]; i++) {
        memcpy(wrong, session, sizeof wrong);
        wrong[i] = wrong[i] == '0' ? '1' : '0';
        assert_int_equal(mcp_session_load(&w->tools.server, wrong, "me", &s, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
    }
    assert_int_equal(mcp_session_load(&w->tools.server, session, "you", &s, &e), -1);
    memcpy(wrong, session, sizeof wrong);
    wrong[1] = '3'; /* another node's */
    assert_int_equal(mcp_session_load(&w->tools.server, wrong, "me", &s, &e), -1);
    w->tools.server.offer = "session";
    assert_int_equal(mcp_session_load(&w->tools.server, session, "me", &s, &e), -1);
}

static struct asked say(struct world *w, const char *text)
{
    return ask(&w->tools.server, &w->origin, text);
}

#define CANCEL(id)                                                                                 \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

static void cancelling_follows_the_call(void **state)
{
    struct world *w = *state;
    char session[MCP_SESSION_MAX];

    start_session(w, session);
    expect_call(w, "read_file", "{\"conversationId\":\"b\",\"filename\":\"f\"}", "key b");
    struct asked a = say(w, CANCEL("1"));
    expect(&a, "key b");
    asked_clear(&a);
    a = say(w, CANCEL("2"));
    expect(&a, "");
    assert_int_equal(a.answer.status, 202);
    asked_clear(&a);
    w->edge.again = true; /* it has arrived */
    a = say(w, CANCEL("1"));
    expect(&a, "");
    asked_clear(&a);
}

static void an_answer_goes_to_the_node_that_asked(void **state)
{
    struct world *w = *state;
    char session[MCP_SESSION_MAX];

    start_session(w, session);
    struct asked a = say(w, "{\"jsonrpc\":\"2.0\",\"id\":\"n2-0123456789abcdef-1\",\"result\":{}}");
    expect(&a, "node n2");
    asked_clear(&a);
    a = say(w, "{\"jsonrpc\":\"2.0\",\"id\":\"n1-0123456789abcdef-1\",\"result\":{}}");
    expect(&a, "");
    assert_int_equal(a.answer.status, 202);
    asked_clear(&a);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_conversation_is_its_key),
    TEST(what_has_an_id_is_on_the_node_that_it_names),
    TEST(a_mistaken_call_is_answered_where_it_is),
    TEST(a_new_conversation_gets_its_name_before_its_home),
    TEST(a_call_is_sent_on_once),
    TEST(what_is_away_says_so),
    TEST(a_home_that_is_away_has_other_files),
    TEST(without_an_edge_all_is_served_here),
    TEST(tools_of_other_servers_are_on_one_node_for_a_tenant),
    TEST(clients_may_be_asked_for_headers),
    TEST(a_list_says_of_which_node_it_is),
    TEST(a_batch_goes_as_one),
    TEST(a_session_is_known_at_every_node),
    TEST(a_session_cannot_be_forged),
    TEST(cancelling_follows_the_call),
    TEST(an_answer_goes_to_the_node_that_asked),
};
UNIT_TESTS(tests)
