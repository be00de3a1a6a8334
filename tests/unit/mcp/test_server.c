#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/mcp/features/tool.h"
#include "common/rpc/json.h"
#include "tests/fakes/fake_client.h"
#include "tests/unit/unit.h"

#include <string.h>

#define META                                                                                       \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                       \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define SERVER_META                                                                                \
    "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"t\",\"title\":\"Test\","        \
    "\"version\":\"1\"}}"
#define CAPABILITIES "{\"tools\":{},\"resources\":{},\"prompts\":{},\"logging\":{}}"
#define R(id, rest)  "{\"jsonrpc\":\"2.0\",\"id\":" id "," rest "}"
#define ECHO_CALL    "\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"a\":1}"

/* ---- two tools ---- */

static unsigned described; /* how often */
static uint64_t echo_version;

static char *describe(void *app)
{
    (void)app;
    described++;
    return mem_strdup("says it again");
}

static const char input_schema[] = "{\"type\":\"object\"}";

static uint64_t version(void *app)
{
    (void)app;
    return echo_version;
}

static void echo(const struct mcp_tool_call *c, struct mcp_result *out)
{
    out->structured = c->arguments ? json_deep_copy(c->arguments) : json_object();
    mcp_result_add(out, content_link_new("https://x.test/a", "a\nb", "text/plain", 3));
}

static void break_down(const struct mcp_tool_call *c, struct mcp_result *out)
{
    mcp_result_add(out, content_text_new("not seen", 8));
    mcp_result_fail(out, "tenant %s: broken", c->tenant);
}

static const char *const echo_aliases[] = {"old.echo", NULL};
static const struct mcp_tool tool_echo = {.name = "echo",
                                          .aliases = echo_aliases,
                                          .title = "Echo",
                                          .hints = {.read_only = true},
                                          .output_schema = "{\"type\":\"object\"}",
                                          .describe = describe,
                                          .input_schema = input_schema,
                                          .version = version,
                                          .call = echo};
static const struct mcp_tool tool_break = {.name = "break",
                                           .title = "Break",
                                           .output_schema = "{\"type\":\"object\"}",
                                           .describe = describe,
                                           .input_schema = input_schema,
                                           .call = break_down};
static const struct mcp_tool *const tools[] = {&tool_echo, &tool_break};

static struct mcp_server server = {.name = "t",
                                   .title = "Test",
                                   .version = "1",
                                   .instructions = "be kind",
                                   .tools = tools,
                                   .n_tools = 2,
                                   .sessions_fd = -1};

/* ---- tables of questions and answers ---- */

struct exchange {
    const char *title;
    const char *version, *method, *name; /* headers */
    const char *message;
    int status;
    const char *body; /* exact; NULL: only the code below matters */
    int code;         /* of the error, when body is NULL */
};

static void check(const struct exchange *x)
{
    struct mcp_origin origin = {.http = true,
                                .tenant = "me",
                                .cancel_fd = -1,
                                .protocol_version = x->version,
                                .method = x->method,
                                .name = x->name};
    struct asked a = ask(&server, &origin, x->message);
    const json_t *error = json_object_get(a.answer.body, "error");

    if (a.answer.status != x->status || (x->body && strcmp(a.text, x->body) != 0))
        print_error("%s: %d\n%s\nwanted\n%s\n", x->title, a.answer.status, a.text,
                    x->body ? x->body : "(an error)");
    assert_int_equal(a.answer.status, x->status);
    if (x->body)
        assert_string_equal(a.text, x->body);
    else
        assert_int_equal(json_get_integer(error, "code", 0), x->code);
    asked_clear(&a);
}

static void check_all(const struct exchange *table, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check(&table[i]);
}

static void answers_legacy_clients(void **state)
{
    static const struct exchange table[] = {
        {"initialize 2025-06-18", NULL, NULL, NULL,
         R("0", "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\","
                "\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}"),
         200,
         R("0", "\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":" CAPABILITIES ","
                "\"serverInfo\":{\"name\":\"t\",\"title\":\"Test\",\"version\":\"1\"},"
                "\"instructions\":\"be kind\"}"),
         0},
        {"initialize 2024-11-05 has no title", NULL, NULL, NULL,
         R("\"i\"", "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2024-11-05\"}"),
         200,
         R("\"i\"",
           "\"result\":{\"protocolVersion\":\"2024-11-05\",\"capabilities\":" CAPABILITIES ","
           "\"serverInfo\":{\"name\":\"t\",\"version\":\"1\"},"
           "\"instructions\":\"be kind\"}"),
         0},
        {"initialize without params is forgiven", NULL, NULL, NULL,
         R("1", "\"method\":\"initialize\""), 200,
         R("1", "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":" CAPABILITIES ","
                "\"serverInfo\":{\"name\":\"t\",\"title\":\"Test\",\"version\":\"1\"},"
                "\"instructions\":\"be kind\"}"),
         0},
        {"initialize with a number as version", NULL, NULL, NULL,
         R("1", "\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}"), 200, NULL, -32602},
        {"ping stays empty", "2025-06-18", NULL, NULL, R("9007199254740993", "\"method\":\"ping\""),
         200, R("9007199254740993", "\"result\":{}"), 0},
        {"unknown method", "2025-06-18", NULL, NULL, R("\"1\"", "\"method\":\"nope\""), 200, NULL,
         -32601},
        {"a modern method", "2025-06-18", NULL, NULL, R("1", "\"method\":\"server/discover\""), 200,
         NULL, -32601},
        {"a notification's name as a request", NULL, NULL, NULL,
         R("1", "\"method\":\"notifications/initialized\""), 200, NULL, -32601},
        {"notification", NULL, NULL, NULL,
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202, "", 0},
        {"unknown notification", NULL, NULL, NULL, "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", 202,
         "", 0},
        {"a request's name as a notification is not answered", NULL, NULL, NULL,
         "{\"jsonrpc\":\"2.0\",\"method\":\"tools/list\"}", 202, "", 0},
        {"response", NULL, NULL, NULL, R("7", "\"result\":{}"), 202, "", 0},
        {"header of an unknown revision", "1999-01-01", NULL, NULL, R("1", "\"method\":\"ping\""),
         400, NULL, -32600},
    };

    (void)state;
    check_all(table, ARRAY_LEN(table));
}

static void answers_modern_clients(void **state)
{
    static const struct exchange table[] = {
        {"discover", "2026-07-28", "server/discover", NULL,
         R("1", "\"method\":\"server/discover\",\"params\":{" META "}"), 200,
         R("1",
           "\"result\":{\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":" CAPABILITIES ","
           "\"instructions\":\"be kind\",\"resultType\":\"complete\",\"ttlMs\":3600000,"
           "\"cacheScope\":\"public\"," SERVER_META "}"),
         0},
        {"ping is gone", "2026-07-28", "ping", NULL,
         R("1", "\"method\":\"ping\",\"params\":{" META "}"), 404, NULL, -32601},
        {"initialize is gone", "2026-07-28", "initialize", NULL,
         R("1", "\"method\":\"initialize\",\"params\":{" META "}"), 404, NULL, -32601},
        {"unknown method", "2026-07-28", "nope", NULL,
         R("1", "\"method\":\"nope\",\"params\":{" META "}"), 404, NULL, -32601},
        {"no _meta", "2026-07-28", "tools/list", NULL, R("1", "\"method\":\"tools/list\""), 400,
         NULL, -32602},
        {"version to come", "2099-01-01", "tools/list", NULL,
         R("5", "\"method\":\"tools/list\",\"params\":{\"_meta\":{"
                "\"io.modelcontextprotocol/protocolVersion\":\"2099-01-01\","
                "\"io.modelcontextprotocol/clientCapabilities\":{}}}"),
         400,
         R("5", "\"error\":{\"code\":-32022,\"message\":\"unsupported protocol version\","
                "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"}}"),
         0},
        {"header mismatch echoes the id", "2026-07-28", "x", NULL,
         R("\"q\"", "\"method\":\"tools/list\",\"params\":{" META "}"), 400,
         R("\"q\"", "\"error\":{\"code\":-32020,"
                    "\"message\":\"the header Mcp-Method differs from method\"}"),
         0},
        {"bad cursor", "2026-07-28", "tools/list", NULL,
         R("1", "\"method\":\"tools/list\",\"params\":{\"cursor\":\"x\"," META "}"), 200, NULL,
         -32602},
        {"unknown tool", "2026-07-28", "tools/call", "nope",
         R("1", "\"method\":\"tools/call\",\"params\":{\"name\":\"nope\"," META "}"), 200,
         R("1", "\"error\":{\"code\":-32602,"
                "\"message\":\"unknown tool: this server has echo, break\"}"),
         0},
        {"no name", "2026-07-28", "tools/call", NULL,
         R("1", "\"method\":\"tools/call\",\"params\":{" META "}"), 200, NULL, -32602},
        {"call", "2026-07-28", "tools/call", "echo", R("1", ECHO_CALL "," META "}"), 200,
         R("1", "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"a\\\":1}\"},"
                "{\"type\":\"resource_link\",\"uri\":\"https://x.test/a\","
                "\"name\":\"a\xEF\xBF\xBD"
                "b\",\"mimeType\":\"text/plain\",\"size\":3}],"
                "\"structuredContent\":{\"a\":1},\"isError\":false,"
                "\"resultType\":\"complete\"," SERVER_META "}"),
         0},
        {"notification", NULL, NULL, NULL,
         "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{" META "}}", 202,
         "", 0},
    };

    (void)state;
    check_all(table, ARRAY_LEN(table));
}

static void refuses_what_is_no_message(void **state)
{
    static const struct exchange table[] = {
        {"not JSON", NULL, NULL, NULL, "{", 400, NULL, -32700},
        {"nothing", NULL, NULL, NULL, "", 400, NULL, -32700},
        {"a number", NULL, NULL, NULL, "1", 400, NULL, -32600},
        {"a null id", NULL, NULL, NULL, R("null", "\"method\":\"ping\""), 400, NULL, -32600},
        {"version 1.0", NULL, NULL, NULL, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400,
         NULL, -32600},
        {"params are an array", NULL, NULL, NULL, R("1", "\"method\":\"ping\",\"params\":[]"), 400,
         NULL, -32600},
        {"a NUL behind a tool's name", NULL, NULL, NULL,
         R("1", "\"method\":\"tools/call\",\"params\":{\"name\":\"echo\\u0000\"}"), 200, NULL,
         -32602},
        {"arguments are an array", NULL, NULL, NULL,
         R("1", "\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":[]}"), 200,
         NULL, -32602},
        {"a tool's name is a number", NULL, NULL, NULL,
         R("1", "\"method\":\"tools/call\",\"params\":{\"name\":1}"), 200, NULL, -32602},
    };
    struct mcp_origin origin = {.http = true, .cancel_fd = -1};

    (void)state;
    check_all(table, ARRAY_LEN(table));
    struct asked a = ask(&server, &origin, "[");
    assert_null(json_object_get(a.answer.body, "id"));
    asked_clear(&a);
}

static void runs_batches_of_the_revision_that_has_them(void **state)
{
    static const struct exchange table[] = {
        {"two requests and a notification", NULL, NULL, NULL,
         "[" R("1", "\"method\":\"ping\"") ",{\"jsonrpc\":\"2.0\",\"method\":\"x\"}," R(
             "\"b\"", "\"method\":\"nope\"") "]",
         200,
         "[" R("1", "\"result\":{}") "," R(
             "\"b\"", "\"error\":{\"code\":-32601,"
                      "\"message\":\"there is no such method in revision 2025-03-26\"}") "]",
         0},
        {"only notifications", "2025-03-26", NULL, NULL, "[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]",
         202, "", 0},
        {"only responses", NULL, NULL, NULL, "[" R("1", "\"result\":{}") "]", 202, "", 0},
        {"empty", NULL, NULL, NULL, "[]", 400, NULL, -32600},
        {"an element that is no message", NULL, NULL, NULL, "[" R("1", "\"method\":\"ping\"") ",1]",
         400, NULL, -32600},
        {"initialize inside", NULL, NULL, NULL, "[" R("1", "\"method\":\"initialize\"") "]", 400,
         NULL, -32600},
        {"a modern message inside", NULL, NULL, NULL,
         "[" R("1", "\"method\":\"tools/list\",\"params\":{" META "}") "]", 400, NULL, -32600},
        {"in a later revision", "2025-06-18", NULL, NULL, "[" R("1", "\"method\":\"ping\"") "]",
         400, NULL, -32600},
        {"in the modern revision", "2026-07-28", NULL, NULL, "[" R("1", "\"method\":\"ping\"") "]",
         400, NULL, -32600},
        {"a batch inside a batch", NULL, NULL, NULL, "[[]]", 400, NULL, -32600},
    };

    (void)state;
    check_all(table, ARRAY_LEN(table));
}

static void bounds_the_length_of_a_batch(void **state)
{
    struct mcp_origin origin = {.http = true, .cancel_fd = -1};
    json_auto_t *batch = json_array();
    struct mcp_answer answer;

    (void)state;
    for (int i = 0; i < 32; i++)
        json_array_append_new(batch, json_loads(R("1", "\"method\":\"ping\""), 0, NULL));
    mcp_handle(&server, &origin, batch, &answer);
    assert_int_equal(answer.status, 200);
    assert_int_equal(json_array_size(answer.body), 32);
    json_decref(answer.body);
    json_array_append_new(batch, json_loads(R("1", "\"method\":\"ping\""), 0, NULL));
    mcp_handle(&server, &origin, batch, &answer);
    assert_int_equal(answer.status, 400);
    json_decref(answer.body);
}

static void shapes_a_result_for_each_revision(void **state)
{
    static const struct {
        const char *version;
        bool structured, link;
    } cases[] = {{NULL, true, false},
                 {"2024-11-05", false, false},
                 {"2025-03-26", false, false},
                 {"2025-06-18", true, true},
                 {"2025-11-25", true, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_origin origin = {
            .http = true, .cancel_fd = -1, .protocol_version = cases[i].version};
        struct asked a = ask(&server, &origin, R("1", ECHO_CALL "}"));

        assert_int_equal(a.answer.status, 200);
        assert_int_equal(strstr(a.text, "structuredContent") != NULL, cases[i].structured);
        assert_int_equal(strstr(a.text, "\"type\":\"resource_link\"") != NULL, cases[i].link);
        assert_int_equal(strstr(a.text, "b (text/plain, 3 bytes): https://x.test/a") != NULL,
                         !cases[i].link);
        assert_null(strstr(a.text, "resultType"));
        asked_clear(&a);
    }
}

static void shapes_the_list_for_each_revision(void **state)
{
    static const struct {
        const char *version;
        bool title, schema, annotations;
    } cases[] = {{NULL, true, true, true},
                 {"2024-11-05", false, false, false},
                 {"2025-03-26", false, false, true},
                 {"2025-06-18", true, true, true},
                 {"2025-11-25", true, true, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_origin origin = {
            .http = true, .cancel_fd = -1, .protocol_version = cases[i].version};
        struct asked a = ask(&server, &origin, R("1", "\"method\":\"tools/list\""));
        const json_t *list = json_object_get(json_object_get(a.answer.body, "result"), "tools");
        const json_t *row = json_array_get(list, 0);

        assert_int_equal(json_array_size(list), 2);
        assert_string_equal(json_get_string(row, "name"), "echo");
        assert_int_equal(json_object_get(row, "title") != NULL, cases[i].title);
        assert_int_equal(json_object_get(row, "outputSchema") != NULL, cases[i].schema);
        assert_int_equal(json_object_get(row, "annotations") != NULL, cases[i].annotations);
        asked_clear(&a);
    }
}

static void answers_to_aliases_without_listing_them(void **state)
{
    struct mcp_origin origin = {.http = true, .cancel_fd = -1};
    struct asked list = ask(&server, &origin, R("1", "\"method\":\"tools/list\""));
    struct asked call = ask(&server, &origin,
                            R("1", "\"method\":\"tools/call\",\"params\":{\"name\":\"old.echo\"}"));

    (void)state;
    assert_null(strstr(list.text, "old.echo"));
    assert_non_null(strstr(call.text, "\"isError\":false"));
    assert_string_equal(call.answer.detail, "echo");
    assert_string_equal(call.answer.method, "tools/call");
    asked_clear(&list);
    asked_clear(&call);
}

static void a_tool_that_fails_is_a_result_with_its_reason_only(void **state)
{
    struct mcp_origin origin = {.http = true, .tenant = "me", .cancel_fd = -1};
    struct asked a = ask(&server, &origin,
                         R("1", "\"method\":\"tools/call\",\"params\":{\"name\":\"break\"}"));

    (void)state;
    assert_string_equal(a.text, R("1", "\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
                                       "\"tenant me: broken\"}],\"isError\":true}"));
    asked_clear(&a);
}

static void foreign_method_names_do_not_reach_the_log(void **state)
{
    struct mcp_origin origin = {.http = true, .cancel_fd = -1};
    struct asked a = ask(&server, &origin, R("1", "\"method\":\"evil\\nline\""));

    (void)state;
    assert_string_equal(a.answer.method, "-");
    assert_string_equal(a.answer.detail, "");
    asked_clear(&a);
}

static void the_list_is_built_once_until_a_tool_changes(void **state)
{
    struct mcp_origin origin = {.http = true, .cancel_fd = -1};
    struct mcp_server cached = server;

    (void)state;
    cached.tools_cache = mcp_tools_cache_new();
    described = 0;
    for (int i = 0; i < 3; i++) {
        struct asked a = ask(&cached, &origin, R("1", "\"method\":\"tools/list\""));
        asked_clear(&a);
    }
    assert_int_equal(described, 2); /* two tools, once each */
    echo_version++;
    struct asked a = ask(&cached, &origin, R("1", "\"method\":\"tools/list\""));
    asked_clear(&a);
    assert_int_equal(described, 4);
    mcp_tools_cache_free(cached.tools_cache);
}

static void stdio_pins_its_era(void **state)
{
    struct mcp_stdio_client stdio_client = MCP_STDIO_CLIENT_INIT;
    struct mcp_origin origin = {.cancel_fd = -1, .stdio_client = &stdio_client};
    struct asked a;

    (void)state;
    /* Asking what there is pins nothing; headers are not looked at. */
    a = ask(&server, &origin, R("\"p\"", "\"method\":\"server/discover\",\"params\":{" META "}"));
    assert_int_equal(a.answer.status, 200);
    assert_false(stdio_client.modern);
    asked_clear(&a);
    a = ask(&server, &origin,
            R("1", "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}"));
    assert_string_equal(stdio_client.negotiated, "2025-06-18");
    asked_clear(&a);
    a = ask(&server, &origin, R("2", ECHO_CALL "}"));
    assert_non_null(strstr(a.text, "resource_link"));
    asked_clear(&a);
    a = ask(&server, &origin, R("3", ECHO_CALL "," META "}"));
    assert_true(stdio_client.modern);
    assert_non_null(strstr(a.text, "resultType"));
    asked_clear(&a);
    a = ask(&server, &origin,
            R("4", "\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}"));
    assert_non_null(strstr(a.text, "-32022"));
    asked_clear(&a);
    a = ask(&server, &origin, R("5", "\"method\":\"tools/list\""));
    assert_non_null(strstr(a.text, "-32602"));
    asked_clear(&a);
}

/* What is written once must be what would be written each time, whatever the id and the revision.
 */
static void a_list_that_is_written_already_says_the_same(void **state)
{
    static const char *const ids[] = {"1", "\"a \\\" b\"", "-9007199254740993"};
    static const char *const versions[] = {NULL, "2025-03-26", "2025-06-18", "2025-11-25", NULL};
    struct mcp_server cached = server;
    struct mcp_origin plain = {.http = true, .tenant = "t", .cancel_fd = -1};
    (void)state;

    cached.tools_cache = mcp_tools_cache_new();
    for (size_t i = 0; i < 5 * ARRAY_LEN(ids); i++) {
        AUTO_FREE char *message = mem_printf(
            "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"tools/list\"}", ids[i % ARRAY_LEN(ids)]);
        plain.protocol_version = versions[i % 5];
        struct mcp_origin texted = plain;
        texted.takes_text = true;
        struct asked a = ask(&cached, &plain, message);
        struct asked b = ask(&cached, &texted, message);
        assert_null(b.answer.body);
        assert_string_equal(a.text, buf_str(&b.answer.text));
        buf_clear(&b.answer.text);
        asked_clear(&a);
        asked_clear(&b);
    }
    mcp_tools_cache_free(cached.tools_cache);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_list_that_is_written_already_says_the_same),
    cmocka_unit_test(answers_legacy_clients),
    cmocka_unit_test(answers_modern_clients),
    cmocka_unit_test(refuses_what_is_no_message),
    cmocka_unit_test(runs_batches_of_the_revision_that_has_them),
    cmocka_unit_test(bounds_the_length_of_a_batch),
    cmocka_unit_test(shapes_a_result_for_each_revision),
    cmocka_unit_test(shapes_the_list_for_each_revision),
    cmocka_unit_test(answers_to_aliases_without_listing_them),
    cmocka_unit_test(a_tool_that_fails_is_a_result_with_its_reason_only),
    cmocka_unit_test(foreign_method_names_do_not_reach_the_log),
    cmocka_unit_test(the_list_is_built_once_until_a_tool_changes),
    cmocka_unit_test(stdio_pins_its_era),
};
UNIT_TESTS(tests)
