/* Resources, prompts, completion, mirrored arguments, content that a revision does not have. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/unit/mcp/mcp_fixture.h"

#define R(method, params)                                                                          \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":{" params "}}"

static int setup(void **state)
{
    mcp_open(state);
    ((struct mcp_world *)*state)->origin.protocol_version = "2025-06-18";
    return 0;
}

struct exchange {
    const char *message, *answer; /* a part of it */
};

static void check_all(struct mcp_world *w, const struct exchange *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct asked a = mcp_world_ask(w, table[i].message);
        assert_int_equal(a.answer.status, 200);
        assert_contains(a.text, table[i].answer);
        asked_clear(&a);
    }
}

static void messages_that_end_something_are_known(void **state)
{
    static const struct {
        const char *message;
        bool frees;
    } table[] = {
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", true},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"r1\",\"result\":{}}", true}, /* a call waits for it */
        {R("tasks/cancel", "\"taskId\":\"t\""), true},
        {R("resources/unsubscribe", "\"uri\":\"test://a\""), true},
        {R("tools/call", "\"name\":\"waits\""), true},
        {R("tools/call", "\"name\":\"name\""), false},
        {R("tools/call", "\"name\":\"no such tool\""), false},
        {R("tools/call", "\"name\":7"), false},
        {R("tools/call", ""), false},
        {R("waits", ""), false},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", false},
        {"[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}]", false},
        {"{\"method\":\"notifications/cancelled\"}", false},
        {"7", false},
    };
    const struct mcp_world *w = *state;

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        json_auto_t *message = json_loads(table[i].message, JSON_DECODE_ANY, NULL);
        assert_int_equal(mcp_frees(&w->server, message), table[i].frees);
    }
}

static void resources_are_listed_and_read(void **state)
{
    static const struct exchange table[] = {
        {R("resources/list", ""),
         "\"result\":{\"resources\":[{\"uri\":\"test://a\",\"name\":\"a\"}],\"nextCursor\":\"2\"}"},
        {R("resources/list", "\"cursor\":\"2\""),
         "\"result\":{\"resources\":[{\"uri\":\"test://b\",\"name\":\"a\"}]}"},
        {R("resources/list", "\"cursor\":\"\""), "\"nextCursor\""},
        {R("resources/list", "\"cursor\":\"3\""), "-32602"},
        {R("resources/list", "\"cursor\":3"), "-32602"},
        {R("resources/templates/list", ""),
         "\"resourceTemplates\":[{\"uriTemplate\":\"test://{x}\",\"name\":\"x\"}]"},
        {R("resources/templates/list", "\"cursor\":\"x\""), "-32602"},
        {R("resources/read", "\"uri\":\"test://a\""),
         "\"contents\":[{\"uri\":\"test://a\",\"mimeType\":\"text/plain\",\"text\":\"A\"}]"},
        {R("resources/read", "\"uri\":\"test://no\""),
         "{\"code\":-32002,\"message\":\"resource not found\",\"data\":{\"uri\":\"test://no\"}}"},
        {R("resources/read", "\"uri\":\"test://big\""),
         "{\"code\":-32602,\"message\":\"too large to be read whole\"}"},
        {R("resources/read", "\"uri\":\"test://closed\""),
         "{\"code\":-32602,\"message\":\"not for this tenant\"}"},
        {R("resources/read", "\"uri\":\"test://broken\""),
         "{\"code\":-32603,\"message\":\"it cannot be read\"}"},
        {R("resources/read", ""), "-32602"},
        {R("resources/read", "\"uri\":\"test://a\\u0000\""), "-32602"},
    };

    check_all(*state, table, ARRAY_LEN(table));
}

static void modern_resources_have_hints_and_another_code(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = mcp_world_modern(w, "resources/read", "test://no", "\"uri\":\"test://no\",",
                                      "{}", "");

    assert_int_equal(a.answer.status, 200);
    assert_contains(a.text, "{\"code\":-32602,\"message\":\"resource not found\","
                            "\"data\":{\"uri\":\"test://no\"}}");
    asked_clear(&a);
    a = mcp_world_modern(w, "resources/list", NULL, "", "{}", "");
    assert_contains(a.text, "\"resultType\":\"complete\",\"ttlMs\":0,\"cacheScope\":\"private\"");
    asked_clear(&a);
    a = mcp_world_modern(w, "resources/read", "test://b", "\"uri\":\"test://a\",", "{}", "");
    assert_int_equal(a.answer.status, 400);
    assert_contains(a.text, "-32020");
    asked_clear(&a);
    a = mcp_world_modern(w, "resources/subscribe", NULL, "\"uri\":\"test://a\",", "{}", "");
    assert_int_equal(a.answer.status, 404);
    asked_clear(&a);
}

static void prompts_are_listed_and_made(void **state)
{
    static const struct exchange table[] = {
        {R("prompts/list", ""),
         "\"prompts\":[{\"name\":\"plain\",\"title\":\"Plain\",\"description\":\"says it\","
         "\"arguments\":[{\"name\":\"topic\",\"title\":\"Topic\",\"description\":\"what it is "
         "about\",\"required\":true}]},{\"name\":\"asking\",\"arguments\":[]}]"},
        {R("prompts/list", "\"cursor\":\"x\""), "-32602"},
        {R("prompts/get", "\"name\":\"plain\",\"arguments\":{\"topic\":\"x\",\"more\":\"y\"}"),
         "\"result\":{\"description\":\"says it\",\"messages\":[{\"role\":\"user\",\"content\":{"
         "\"type\":\"text\",\"text\":\"x\"}}]}"},
        {R("prompts/get", "\"name\":\"plain\""), "missing argument: topic"},
        {R("prompts/get", "\"name\":\"plain\",\"arguments\":{\"topic\":1}"), "-32602"},
        {R("prompts/get", "\"name\":\"plain\",\"arguments\":[]"), "-32602"},
        {R("prompts/get", "\"name\":\"plain\",\"arguments\":{\"topic\":\"bad\"}"),
         "{\"code\":-32602,\"message\":\"no such topic\"}"},
        {R("prompts/get", "\"name\":\"no\""), "-32602"},
        {R("prompts/get", "\"name\":\"plain\\u0000\""), "-32602"},
        {R("prompts/get", ""), "-32602"},
        {R("prompts/get", "\"name\":\"asking\""), "-32603"}, /* no session to ask in */
    };

    check_all(*state, table, ARRAY_LEN(table));
}

static void a_prompt_may_ask_in_both_eras(void **state)
{
    struct mcp_world *w = *state;
    struct asked a;

    a = mcp_world_modern(w, "prompts/get", "asking", "\"name\":\"asking\",", "{\"elicitation\":{}}",
                         "");
    assert_contains(a.text,
                    "\"resultType\":\"input_required\",\"inputRequests\":{\"user_context\"");
    asked_clear(&a);
    a = mcp_world_modern(w, "prompts/get", "asking",
                         "\"name\":\"asking\",\"inputResponses\":{\"user_context\":{\"action\":"
                         "\"accept\",\"content\":{\"name\":\"birds\"}}},",
                         "{\"elicitation\":{}}", "");
    assert_contains(a.text, "\"text\":\"birds\"");
    asked_clear(&a);
    json_object_set_new(
        w->replies, "elicitation/create",
        json_loads("{\"action\":\"accept\",\"content\":{\"name\":\"fish\"}}", 0, NULL));
    w->origin.protocol_version = NULL;
    mcp_world_start(w, "2025-06-18", "{\"elicitation\":{}}");
    a = mcp_world_ask(w, R("prompts/get", "\"name\":\"asking\""));
    assert_contains(a.text, "\"text\":\"fish\"");
    asked_clear(&a);
}

static void completion_is_bounded_and_checks_what_it_refers_to(void **state)
{
    static const struct exchange table[] = {
        {R("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"plain\"},"
                                  "\"argument\":{\"name\":\"topic\",\"value\":\"v\"}"),
         "\"v99\"],\"total\":120,\"hasMore\":true}"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"plain\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"v\"}"),
         "\"completion\":{\"values\":[],\"total\":0,\"hasMore\":false}"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"asking\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "\"values\":[]"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://{x}\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "\"values\":[]"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"x\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "-32602"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"no\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "-32602"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/x\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "-32602"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"plain\"},"
                                  "\"argument\":{\"name\":\"x\"}"),
         "-32602"},
        {R("completion/complete", ""), "-32602"},
    };

    check_all(*state, table, ARRAY_LEN(table));
}

static void a_server_without_prompts_and_resources_has_empty_lists(void **state)
{
    static const struct exchange table[] = {
        {R("resources/list", ""), "\"resources\":[]"},
        {R("resources/list", "\"cursor\":\"x\""), "-32602"},
        {R("resources/templates/list", ""), "\"resourceTemplates\":[]"},
        {R("prompts/list", ""), "\"prompts\":[]"},
        {R("resources/read", "\"uri\":\"test://a\""), "-32002"},
        {R("completion/complete", "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"x\"},"
                                  "\"argument\":{\"name\":\"x\",\"value\":\"\"}"),
         "-32602"},
    };
    struct mcp_world *w = *state;

    w->server.resources = NULL;
    w->server.n_prompts = 0;
    check_all(w, table, ARRAY_LEN(table));
}

static void capabilities_are_what_is_offered(void **state)
{
    struct mcp_world *w = *state;
    struct asked a = mcp_world_modern(w, "server/discover", NULL, "", "{}", "");

    assert_contains(
        a.text,
        "\"capabilities\":{\"tools\":{\"listChanged\":true},"
        "\"resources\":{\"listChanged\":true,\"subscribe\":true},"
        "\"prompts\":{\"listChanged\":true},\"logging\":{},\"completions\":{},\"extensions\":");
    asked_clear(&a);
}

/* ---- mirrored arguments ---- */

static const char *const *mirrored; /* name, value, …, NULL */

static const char *param_header(void *ctx, const char *name)
{
    (void)ctx;
    for (const char *const *p = mirrored; *p; p += 2)
        if (strcasecmp(*p, name) == 0)
            return p[1];
    return NULL;
}

static void mirrored_arguments_must_agree(void **state)
{
    struct mcp_world *w = *state;
    static const struct {
        const char *arguments;
        const char *headers[3];
        bool good;
    } cases[] = {
        {"{}", {NULL}, true},
        {"{\"region\":null}", {NULL}, true},
        {"{\"region\":\"Hello\"}", {"region", "Hello"}, true},
        {"{\"region\":\"Hello\"}", {"Region", " Hello\t"}, true},
        {"{\"region\":\"Hello\"}", {"Region", "=?base64?SGVsbG8=?="}, true},
        {"{\"region\":\"Hello\"}", {NULL}, false},
        {"{\"region\":\"Hello\"}", {"Region", "hello"}, false},
        {"{\"region\":\"Hello\"}", {"Region", "=?base64?SGVsbG8?="}, false},
        {"{\"region\":\"Hello\"}", {"Region", "=?base64?SGVs!!!bG8=?="}, false},
        {"{\"region\":\"SGVsbG8=\"}", {"Region", "SGVsbG8="}, true},
        {"{\"region\":\"=?base64?SGVsbG8=\"}", {"Region", "=?base64?SGVsbG8="}, true},
        {"{\"region\":[]}", {"Region", "[]"}, false},
        {"{\"n\":-12}", {"N", "-12"}, true},
        {"{\"n\":12}", {"N", "012"}, true},
        {"{\"n\":12}", {"N", "12x"}, false},
        {"{\"n\":12}", {"N", ""}, false},
        {"{\"n\":12}", {"N", "99999999999999999999999999"}, false},
        {"{\"yes\":true}", {"Yes", "true"}, true},
        {"{\"yes\":true}", {"Yes", "1"}, false},
        {"{\"yes\":false}", {"Yes", "true"}, false},
        {"{\"deep\":{\"a\":\"x\"}}", {"A", "x"}, true},
        {"{\"deep\":{\"a\":\"x\"}}", {"A", "y"}, false},
        {"{\"other\":\"x\"}", {"Other", "y"}, true},
    };

    w->origin.param_header = param_header;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *params = mem_printf("\"name\":\"region\",\"arguments\":%s,",
                                            cases[i].arguments);
        mirrored = cases[i].headers;
        struct asked a = mcp_world_modern(w, "tools/call", "region", params, "{}", "");
        if (cases[i].good != (a.answer.status == 200))
            print_error("case %zu: %s\n", i, a.text);
        assert_int_equal(a.answer.status, cases[i].good ? 200 : 400);
        if (!cases[i].good)
            assert_contains(a.text, "-32020");
        asked_clear(&a);
    }
    w->origin.param_header = NULL;
    struct asked a = mcp_world_modern(w, "tools/call", "region",
                                      "\"name\":\"region\",\"arguments\":{\"n\":1},", "{}", "");
    assert_int_equal(a.answer.status, 400);
    asked_clear(&a);
}

static void audio_is_told_in_words_where_it_does_not_exist(void **state)
{
    struct mcp_world *w = *state;
    static const char call[] = R("tools/call", "\"name\":\"sounds\"");
    struct asked a = mcp_world_ask(w, call);

    assert_contains(a.text, "\"type\":\"audio\"");
    asked_clear(&a);
    w->origin.protocol_version = "2024-11-05";
    a = mcp_world_ask(w, call);
    assert_null(strstr(a.text, "\"type\":\"audio\""));
    assert_contains(a.text, "audio/wav");
    asked_clear(&a);
}

static void tools_without_a_title_or_an_output_schema_are_listed_without(void **state)
{
    struct asked a = mcp_world_ask(*state, R("tools/list", ""));

    assert_null(strstr(a.text, "outputSchema"));
    assert_null(strstr(a.text, "title"));
    asked_clear(&a);
}

static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, mcp_close)
    TEST(messages_that_end_something_are_known),
    TEST(resources_are_listed_and_read),
    TEST(modern_resources_have_hints_and_another_code),
    TEST(prompts_are_listed_and_made),
    TEST(a_prompt_may_ask_in_both_eras),
    TEST(completion_is_bounded_and_checks_what_it_refers_to),
    TEST(a_server_without_prompts_and_resources_has_empty_lists),
    TEST(capabilities_are_what_is_offered),
    TEST(mirrored_arguments_must_agree),
    TEST(audio_is_told_in_words_where_it_does_not_exist),
    TEST(tools_without_a_title_or_an_output_schema_are_listed_without),
};
UNIT_TESTS(tests)
