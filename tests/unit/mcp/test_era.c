#include "config.h"

#include "common/mcp/era.h"
#include "tests/unit/unit.h"

#include <string.h>

#define CAPS     "\"io.modelcontextprotocol/clientCapabilities\":{}"
#define CLAIM(v) "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" v "," CAPS "}"
#define REQ(method, params)                                                                        \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"
#define NOTE(method, params)                                                                       \
    "{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":{" params "}}"

#define V2026 "\"2026-07-28\""

struct era_case {
    const char *title;
    const char *message;
    const char *version, *method, *name; /* headers */
    int status, code;                    /* status 0: served, with revision */
    enum mcp_revision revision;
};

/* In the order of the checks; the first that fits wins, so each case breaks one rule only or two to
 * show which is first. */
static const struct era_case http_cases[] = {
    {"initialize without a header", REQ("initialize", "\"protocolVersion\":\"2025-06-18\""), NULL,
     NULL, NULL, 0, 0, MCP_2025_06_18},
    {"initialize of the oldest", REQ("initialize", "\"protocolVersion\":\"2024-11-05\""), NULL,
     NULL, NULL, 0, 0, MCP_2024_11_05},
    {"initialize of an unknown revision gets the latest legacy one",
     REQ("initialize", "\"protocolVersion\":\"1999-01-01\""), NULL, NULL, NULL, 0, 0,
     MCP_2025_11_25},
    {"initialize asking for the modern revision gets the latest legacy one",
     REQ("initialize", "\"protocolVersion\":\"2026-07-28\""), NULL, NULL, NULL, 0, 0,
     MCP_2025_11_25},
    {"initialize with a modern header", REQ("initialize", "\"protocolVersion\":\"2025-06-18\""),
     "2026-07-28", NULL, NULL, 400, -32020, 0},
    {"initialize with Mcp-Method, as one client sends it",
     REQ("initialize", "\"protocolVersion\":\"2025-11-25\""), NULL, "initialize", NULL, 0, 0,
     MCP_2025_11_25},
    {"initialize with a modern claim is a modern message", REQ("initialize", CLAIM(V2026)),
     "2026-07-28", "initialize", NULL, 0, 0, MCP_2026_07_28},
    {"initialize with a legacy claim stays a handshake", REQ("initialize", CLAIM("\"2025-06-18\"")),
     NULL, NULL, NULL, 0, 0, MCP_2025_11_25},

    {"modern", REQ("tools/list", CLAIM(V2026)), "2026-07-28", "tools/list", NULL, 0, 0,
     MCP_2026_07_28},
    {"blanks around headers", REQ("tools/list", CLAIM(V2026)), " 2026-07-28\t", "\ttools/list ",
     NULL, 0, 0, MCP_2026_07_28},
    {"no capabilities",
     REQ("tools/list", "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":" V2026 "}"),
     "2025-06-18", NULL, NULL, 400, -32602, 0},
    {"version is a number", REQ("tools/list", CLAIM("7")), "2026-07-28", "tools/list", NULL, 400,
     -32602, 0},
    {"version header differs", REQ("tools/list", CLAIM(V2026)), "2025-06-18", "tools/list", NULL,
     400, -32020, 0},
    {"method header differs", REQ("tools/list", CLAIM(V2026)), "2026-07-28", "tools/call", NULL,
     400, -32020, 0},
    {"method header differs in case", REQ("tools/list", CLAIM(V2026)), "2026-07-28", "Tools/list",
     NULL, 400, -32020, 0},
    {"a version to come", REQ("tools/list", CLAIM("\"2099-01-01\"")), "2099-01-01", "tools/list",
     NULL, 400, -32022, 0},
    {"a version to come without headers", REQ("tools/list", CLAIM("\"2099-01-01\"")), NULL, NULL,
     NULL, 400, -32022, 0},
    {"a legacy version in the claim", REQ("tools/list", CLAIM("\"2025-06-18\"")), "2025-06-18",
     "tools/list", NULL, 400, -32022, 0},
    {"nonsense that sorts behind", REQ("tools/list", CLAIM("\"v999.0.0\"")), NULL, NULL, NULL, 400,
     -32022, 0},
    {"a NUL behind the version", REQ("tools/list", CLAIM("\"2026-07-28\\u0000\"")), NULL, NULL,
     NULL, 400, -32022, 0},
    {"no version header", REQ("tools/list", CLAIM(V2026)), NULL, "tools/list", NULL, 400, -32020,
     0},
    {"empty version header", REQ("tools/list", CLAIM(V2026)), "", "tools/list", NULL, 400, -32020,
     0},
    {"no method header", REQ("tools/list", CLAIM(V2026)), "2026-07-28", NULL, NULL, 400, -32020, 0},
    {"no name header", REQ("tools/call", "\"name\":\"x\"," CLAIM(V2026)), "2026-07-28",
     "tools/call", NULL, 400, -32020, 0},
    {"name header", REQ("tools/call", "\"name\":\"x\"," CLAIM(V2026)), "2026-07-28", "tools/call",
     " x ", 0, 0, MCP_2026_07_28},
    {"name header differs", REQ("tools/call", "\"name\":\"x\"," CLAIM(V2026)), "2026-07-28",
     "tools/call", "X", 400, -32020, 0},
    {"name header in base64", REQ("tools/call", "\"name\":\"\xC3\xA9\"," CLAIM(V2026)),
     "2026-07-28", "tools/call", "=?base64?w6k=?=", 0, 0, MCP_2026_07_28},
    {"name header in sloppy base64", REQ("tools/call", "\"name\":\"\xC3\xA9\"," CLAIM(V2026)),
     "2026-07-28", "tools/call", "=?base64?w6k?=", 400, -32020, 0},
    {"no name in the body, none needed in the header", REQ("tools/call", CLAIM(V2026)),
     "2026-07-28", "tools/call", NULL, 0, 0, MCP_2026_07_28},

    {"no claim but a modern header", REQ("tools/list", ""), "2026-07-28", "tools/list", NULL, 400,
     -32602, 0},
    {"a claim that is no object member", REQ("tools/list", "\"_meta\":[]"), "2026-07-28",
     "tools/list", NULL, 400, -32602, 0},
    {"no claim, no header", REQ("tools/list", ""), NULL, NULL, NULL, 0, 0, MCP_2025_03_26},
    {"no claim, legacy header", REQ("tools/list", ""), "2025-11-25", NULL, NULL, 0, 0,
     MCP_2025_11_25},
    {"no claim, unknown legacy header", REQ("tools/list", ""), "1999-01-01", NULL, NULL, 400,
     -32600, 0},
    {"legacy ignores Mcp-Method", REQ("tools/list", ""), "2025-06-18", "initialize", "x", 0, 0,
     MCP_2025_06_18},

    {"notification, modern", NOTE("notifications/cancelled", CLAIM(V2026)), NULL, NULL, NULL, 0, 0,
     MCP_2026_07_28},
    {"notification, malformed claim", NOTE("notifications/cancelled", CLAIM("1")), NULL, NULL, NULL,
     400, -32602, 0},
    {"notification, version header differs", NOTE("notifications/cancelled", CLAIM(V2026)),
     "2025-06-18", NULL, NULL, 400, -32020, 0},
    {"notification, method header differs", NOTE("notifications/cancelled", CLAIM(V2026)), NULL,
     "x", NULL, 400, -32020, 0},
    {"notification, only a modern header", NOTE("notifications/cancelled", ""), "2026-07-28", NULL,
     NULL, 0, 0, MCP_2026_07_28},
    {"notification, legacy", NOTE("notifications/initialized", ""), "2025-06-18", NULL, NULL, 0, 0,
     MCP_2025_06_18},
    {"notification, unknown legacy header", NOTE("notifications/initialized", ""), "1999-01-01",
     NULL, NULL, 400, -32600, 0},
    {"response", "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}", NULL, NULL, NULL, 0, 0,
     MCP_2025_03_26},
};

static const char *name_param(const struct rpc_message *m)
{
    return m->method && strcmp(m->method, "tools/call") == 0 ? "name" : NULL;
}

static void check_case(const struct era_case *c)
{
    json_auto_t *value = json_loads(c->message, JSON_ALLOW_NUL, NULL);
    struct mcp_origin origin = {.http = true,
                                .cancel_fd = -1,
                                .protocol_version = c->version,
                                .method = c->method,
                                .name = c->name};
    struct rpc_message m = {0};
    struct err e = ERR_INIT;
    struct mcp_era v = {0};
    AUTO_MCP_FAILURE struct mcp_failure f = {0};

    assert_non_null(value);
    assert_int_equal(rpc_classify(value, &m, &e), 0);
    int r = era_decide(&m, &origin, name_param(&m), &v, &f);
    if (f.status != c->status || f.code != c->code || (r == 0 && v.revision != c->revision))
        print_error("case: %s: %d %d %s\n", c->title, f.status, f.code, f.message);
    assert_int_equal(r, c->status ? -1 : 0);
    assert_int_equal(f.status, c->status);
    assert_int_equal(f.code, c->code);
    if (r == 0)
        assert_int_equal(v.revision, c->revision);
}

static void decides_every_case_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(http_cases); i++)
        check_case(&http_cases[i]);
}

static void a_silent_legacy_client_gets_later_members_but_no_new_content(void **state)
{
    json_auto_t *value = json_loads(REQ("tools/list", ""), 0, NULL);
    struct mcp_origin origin = {.http = true};
    struct rpc_message m = {0};
    struct err e = ERR_INIT;
    struct mcp_era v = {0};
    struct mcp_failure f = {0};

    (void)state;
    rpc_classify(value, &m, &e);
    assert_int_equal(era_decide(&m, &origin, NULL, &v, &f), 0);
    assert_true(v.features & MCP_CAN_STRUCTURE);
    assert_false(v.features & MCP_CAN_LINK);
    assert_true(v.features & MCP_CAN_BATCH);
}

static void the_version_error_names_what_is_served_and_what_was_asked(void **state)
{
    json_auto_t *value = json_loads(REQ("tools/list", CLAIM("\"2099-01-01\"")), 0, NULL);
    struct mcp_origin origin = {.http = true};
    struct rpc_message m = {0};
    struct err e = ERR_INIT;
    struct mcp_era v = {0};
    AUTO_MCP_FAILURE struct mcp_failure f = {0};

    (void)state;
    rpc_classify(value, &m, &e);
    assert_int_equal(era_decide(&m, &origin, NULL, &v, &f), -1);
    AUTO_FREE char *text = json_dumps(f.data, JSON_COMPACT);
    assert_string_equal(text, "{\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"}");
}

static void batches_are_for_the_revision_that_has_them(void **state)
{
    static const struct {
        const char *version;
        int result;
    } cases[] = {{NULL, 0},          {"", 0},
                 {"2025-03-26", 0},  {"2024-11-05", -1},
                 {"2025-06-18", -1}, {"2026-07-28", -1},
                 {"2099-01-01", -1}, {"nonsense", -1}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct mcp_origin origin = {.http = true, .protocol_version = cases[i].version};
        struct mcp_era v = {0};
        struct mcp_failure f = {0};

        assert_int_equal(era_decide_batch(&origin, &v, &f), cases[i].result);
        if (cases[i].result < 0) {
            assert_int_equal(f.status, 400);
            assert_int_equal(f.code, -32600);
        }
    }
}

static void header_values_in_base64_are_decoded_strictly(void **state)
{
    static const struct {
        const char *value, *text;
        bool equal;
    } cases[] = {
        {"abc", "abc", true},
        {"=?base64?YWJj?=", "abc", true},
        {"=?base64?"
         "?=",
         "", true},
        {"=?base64?YWJj", "=?base64?YWJj", true}, /* one end only: literal */
        {"=?BASE64?YWJj?=", "abc", false},
        {"=?base64?YWJj?=", "=?base64?YWJj?=", false},
        {"=?base64?YW Jj?=", "abc", false},
        {"=?base64?YQ?=", "a", false},
        {"=?base64?YR==?=", "a", false},        /* leftover bits */
        {"=?base64?_-8=?=", "\xFF\xEF", false}, /* the other alphabet */
        {"=?base64?/w==?=", "\xFF", false},     /* not UTF-8 */
        {"=?base64?=", "", false},
        {"=?base64?YWJjYWJjYWJjYWJj?=", "abc", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool equal = era_header_equals(cases[i].value, strlen(cases[i].value), cases[i].text,
                                       strlen(cases[i].text));
        if (equal != cases[i].equal)
            print_error("value: %s\n", cases[i].value);
        assert_int_equal(equal, cases[i].equal);
    }
}

static void only_texts_from_the_modern_revision_on_are_modern(void **state)
{
    static const struct {
        const char *text;
        bool modern;
    } cases[] = {{"2026-07-28", true}, {"2026-07-27", false}, {"2026-07-2", false},
                 {"", false},          {"2026-07-28x", true}, {"2027", true},
                 {"v1", true},         {"1999", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(mcp_version_is_modern(cases[i].text, strlen(cases[i].text)),
                         cases[i].modern);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(decides_every_case_of_the_table),
    cmocka_unit_test(a_silent_legacy_client_gets_later_members_but_no_new_content),
    cmocka_unit_test(the_version_error_names_what_is_served_and_what_was_asked),
    cmocka_unit_test(batches_are_for_the_revision_that_has_them),
    cmocka_unit_test(header_values_in_base64_are_decoded_strictly),
    cmocka_unit_test(only_texts_from_the_modern_revision_on_are_modern),
};
UNIT_TESTS(tests)
