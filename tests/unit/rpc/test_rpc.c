#include "config.h"

#include "common/rpc/json.h"
#include "common/rpc/rpc.h"
#include "tests/unit/unit.h"

static json_t *parse(const char *text)
{
    struct err e = ERR_INIT;
    json_t *value = json_parse(text, strlen(text), JSON_MAX_DEPTH, &e);
    if (!value)
        fail_msg("%s: %s", text, e.text);
    return value;
}

static void expect_text(json_t *take_value, const char *expected)
{
    AUTO_BUF struct buf out = BUF_INIT(1000);
    assert_non_null(take_value);
    assert_int_equal(json_write(take_value, &out), 0);
    assert_string_equal(buf_str(&out), expected);
    json_decref(take_value);
}

static void a_request_has_an_id_a_method_and_perhaps_params(void **state)
{
    (void)state;
    struct err e;
    struct rpc_message m;
    json_auto_t *value = parse("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\",\"more\":[1]}");
    assert_works(rpc_classify(value, &m, &e), e);
    assert_int_equal(m.kind, RPC_REQUEST);
    assert_int_equal(json_integer_value(m.id), 0);
    assert_string_equal(m.method, "ping");
    assert_null(m.params);
    assert_null(m.result);
    json_auto_t *other = parse(
        "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"x\",\"params\":{\"a\":1}}");
    assert_works(rpc_classify(other, &m, &e), e);
    assert_string_equal(json_string_value(m.id), "");
    assert_int_equal(json_object_size(m.params), 1);
}

static void a_notification_has_no_id(void **state)
{
    (void)state;
    struct err e;
    struct rpc_message m;
    json_auto_t *value = parse("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_works(rpc_classify(value, &m, &e), e);
    assert_int_equal(m.kind, RPC_NOTIFICATION);
    assert_null(m.id);
}

static void a_response_has_a_result_or_an_error(void **state)
{
    (void)state;
    struct err e;
    struct rpc_message m;
    json_auto_t *result = parse("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_works(rpc_classify(result, &m, &e), e);
    assert_int_equal(m.kind, RPC_RESPONSE);
    assert_non_null(m.result);
    assert_null(m.error);
    assert_null(m.method);
    json_auto_t *error = parse("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-1,\"message\":\"m\"}}");
    assert_works(rpc_classify(error, &m, &e), e);
    assert_int_equal(m.kind, RPC_RESPONSE);
    assert_non_null(m.error);
    assert_null(m.id);
}

struct bad_row {
    const char *text, *part;
    bool has_id;
};

static const struct bad_row bad[] = {
    {"[]", "object", false},
    {"17", "object", false},
    {"null", "object", false},
    {"{}", "jsonrpc", false},
    {"{\"id\":1,\"method\":\"x\"}", "jsonrpc", true},
    {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"x\"}", "jsonrpc", true},
    {"{\"jsonrpc\":2.0,\"id\":\"i\",\"method\":\"x\"}", "jsonrpc", true},
    {"{\"jsonrpc\":\"2.0\\u0000\",\"id\":1,\"method\":\"x\"}", "jsonrpc", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}", "\"id\"", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}", "\"id\"", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"x\"}", "\"id\"", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}", "\"id\"", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":true,\"result\":{}}", "\"id\"", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", "\"method\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":null}", "\"method\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", "\"method\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\\u0000x\"}", "\"method\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":[]}", "\"params\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":null}", "\"params\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"result\":{}}", "beside", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1}", "\"method\" is missing", true},
    {"{\"jsonrpc\":\"2.0\",\"result\":{}}", "\"id\" is missing", false},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", "both", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"x\"}", "\"error\"", true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":\"1\",\"message\":\"m\"}}", "\"error\"",
     true},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1}}", "\"error\"", true},
};

static void other_values_are_refused_by_name_but_keep_a_usable_id(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e;
        struct rpc_message m;
        json_auto_t *value = parse(bad[i].text);
        assert_fails(rpc_classify(value, &m, &e), ERR_INVALID, e);
        assert_contains(e.text, bad[i].part);
        if ((m.id != NULL) != bad[i].has_id)
            fail_msg("%s: the id was %s", bad[i].text, m.id ? "found" : "lost");
    }
    struct err e;
    struct rpc_message m;
    assert_fails(rpc_classify(NULL, &m, &e), ERR_INVALID, e);
}

static void answers_echo_the_id_as_it_came(void **state)
{
    (void)state;
    json_auto_t *number = json_integer(9007199254740993), *text = json_string("a\"b");
    expect_text(rpc_result_new(number, json_pack("{s:i}", "x", 1)),
                "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"result\":{\"x\":1}}");
    expect_text(
        rpc_error_new(text, RPC_METHOD_NOT_FOUND, "no such method", NULL),
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"b\",\"error\":{\"code\":-32601,\"message\":\"no such "
        "method\"}}");
}

static void an_error_without_an_id_has_no_id_member(void **state)
{
    (void)state;
    expect_text(rpc_error_new(NULL, RPC_PARSE_ERROR, "x\xff", json_pack("{s:b}", "d", 1)),
                "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"x\uFFFD\",\"data\":{"
                "\"d\":true}}}");
}

static void a_result_that_could_not_be_made_gives_no_answer(void **state)
{
    (void)state;
    json_auto_t *id = json_integer(1);
    assert_null(rpc_result_new(id, NULL));
}

static void the_answer_outlives_the_request(void **state)
{
    (void)state;
    struct err e;
    struct rpc_message m;
    json_t *value = parse("{\"jsonrpc\":\"2.0\",\"id\":\"abc\",\"method\":\"x\"}");
    assert_works(rpc_classify(value, &m, &e), e);
    json_t *answer = rpc_result_new(m.id, json_object());
    json_decref(value);
    expect_text(answer, "{\"jsonrpc\":\"2.0\",\"id\":\"abc\",\"result\":{}}");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_request_has_an_id_a_method_and_perhaps_params),
    cmocka_unit_test(a_notification_has_no_id),
    cmocka_unit_test(a_response_has_a_result_or_an_error),
    cmocka_unit_test(other_values_are_refused_by_name_but_keep_a_usable_id),
    cmocka_unit_test(answers_echo_the_id_as_it_came),
    cmocka_unit_test(an_error_without_an_id_has_no_id_member),
    cmocka_unit_test(a_result_that_could_not_be_made_gives_no_answer),
    cmocka_unit_test(the_answer_outlives_the_request),
};
UNIT_TESTS(tests)
