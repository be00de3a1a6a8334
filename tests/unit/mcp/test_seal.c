#include "config.h"

#include "tests/unit/unit.h"

#include "common/mcp/client/seal.h"
#include "common/rpc/json.h"

static const char key[] = "0123456789abcdef0123456789abcdef";
static const struct mcp_server server = {.seal_key = key, .seal_key_len = sizeof key - 1};
static const struct mcp_seal_bind bind = {.tenant = "me", .method = "tools/call", .name = "x"};

static json_t *open_it(const struct mcp_server *s, const struct mcp_seal_bind *b, const char *text)
{
    struct err e = ERR_INIT;
    json_t *value = mcp_unseal(s, b, text, strlen(text), &e);

    if (!value)
        assert_int_equal(e.kind, ERR_INVALID);
    return value;
}

static char *sealed_new(void)
{
    json_auto_t *value = json_pack("{s:i}", "round", 3);
    struct err e = ERR_INIT;
    char *sealed = mcp_seal(&server, &bind, value, &e);

    assert_non_null(sealed);
    return sealed;
}

static void a_value_survives_the_journey(void **state)
{
    AUTO_FREE char *sealed = sealed_new();
    json_auto_t *value = open_it(&server, &bind, sealed);

    (void)state;
    assert_int_equal(json_get_integer(value, "round", 0), 3);
    assert_null(strpbrk(sealed, "+/="));
}

static void every_changed_character_breaks_the_seal(void **state)
{
    AUTO_FREE char *sealed = sealed_new();
    AUTO_FREE char *longer = NULL;

    (void)state;
    for (size_t i = 0; sealed[i]; i++) {
        char was = sealed[i];
        sealed[i] = was == 'A' ? 'B' : 'A';
        assert_null(open_it(&server, &bind, sealed));
        sealed[i] = was;
    }
    assert_int_not_equal(asprintf(&longer, "%s-TAMPERED", sealed), -1);
    assert_null(open_it(&server, &bind, longer));
    sealed[strlen(sealed) - 1] = '\0';
    assert_null(open_it(&server, &bind, sealed));
    assert_null(open_it(&server, &bind, ""));
    assert_null(open_it(&server, &bind, "v1."));
    assert_null(open_it(&server, &bind, "v1.."));
}

static void a_state_opens_only_where_it_belongs(void **state)
{
    AUTO_FREE char *sealed = sealed_new();
    json_auto_t *empty = json_object();
    json_auto_t *other = json_pack("{s:i}", "a", 1);
    const struct mcp_seal_bind wrong[] = {
        {.tenant = "you", .method = "tools/call", .name = "x"},
        {.tenant = "me", .method = "prompts/get", .name = "x"},
        {.tenant = "me", .method = "tools/call", .name = "y"},
        {.tenant = "me", .method = "tools/call", .name = "x", .arguments = other},
    };
    const struct mcp_seal_bind same = {
        .tenant = "me", .method = "tools/call", .name = "x", .arguments = empty};
    static const char other_key[] = "0123456789abcdef0123456789abcdeX";
    const struct mcp_server other_server = {.seal_key = other_key,
                                            .seal_key_len = sizeof other_key - 1};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_null(open_it(&server, &wrong[i], sealed));
    assert_null(open_it(&other_server, &bind, sealed));
    json_auto_t *value = open_it(&server, &same, sealed);
    assert_non_null(value);
}

static void the_order_of_arguments_does_not_matter(void **state)
{
    json_auto_t *ab = json_loads("{\"a\":1,\"b\":2}", 0, NULL);
    json_auto_t *ba = json_loads("{\"b\":2,\"a\":1}", 0, NULL);
    json_auto_t *value = json_true();
    struct mcp_seal_bind b = bind;
    struct err e = ERR_INIT;

    (void)state;
    b.arguments = ab;
    AUTO_FREE char *sealed = mcp_seal(&server, &b, value, &e);
    b.arguments = ba;
    json_auto_t *back = open_it(&server, &b, sealed);
    assert_true(json_is_true(back));
}

static void without_a_key_and_over_the_limit_nothing_is_sealed(void **state)
{
    const struct mcp_server keyless = {.name = "t"};
    AUTO_FREE char *text = calloc(1, MCP_SEALED_MAX + 1);
    struct err e = ERR_INIT;

    (void)state;
    memset(text, 'x', MCP_SEALED_MAX);
    json_auto_t *big = json_string(text);
    assert_null(mcp_seal(&keyless, &bind, json_true(), &e));
    assert_int_equal(e.kind, ERR_INTERNAL);
    assert_null(mcp_seal(&server, &bind, big, &e));
    assert_int_equal(e.kind, ERR_LIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_value_survives_the_journey),
    cmocka_unit_test(every_changed_character_breaks_the_seal),
    cmocka_unit_test(a_state_opens_only_where_it_belongs),
    cmocka_unit_test(the_order_of_arguments_does_not_matter),
    cmocka_unit_test(without_a_key_and_over_the_limit_nothing_is_sealed),
};
UNIT_TESTS(tests)
