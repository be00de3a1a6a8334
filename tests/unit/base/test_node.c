#include "config.h"

#include "common/base/node.h"
#include "tests/unit/unit.h"

static int teardown(void **state)
{
    (void)state;
    node_set(NULL);
    return 0;
}

static void names_are_short_and_plain(void **state)
{
    (void)state;
    assert_true(node_name_ok("n1"));
    assert_true(node_name_ok("0123456789abcdef"));
    assert_false(node_name_ok("0123456789abcdefg"));
    assert_false(node_name_ok(""));
    assert_false(node_name_ok("N1"));
    assert_false(node_name_ok("n-1"));
    assert_false(node_name_ok("n1\n"));
}

static void one_machine_leaves_ids_as_they_are(void **state)
{
    char id[64], other[NODE_NAME_MAX + 1];

    (void)state;
    node_add("abc", id, sizeof id);
    assert_string_equal(id, "abc");
    assert_string_equal(node_strip("n1-abc"), "n1-abc");
    assert_false(node_other("n1-abc", other));
}

static void ids_name_their_node(void **state)
{
    char id[64], other[NODE_NAME_MAX + 1];

    (void)state;
    node_set("n1");
    node_add("abc", id, sizeof id);
    assert_string_equal(id, "n1-abc");
    assert_string_equal(node_strip(id), "abc");
    assert_false(node_other(id, other));
    assert_string_equal(node_strip("n10-abc"), "n10-abc");
    assert_true(node_other("n10-abc", other));
    assert_string_equal(other, "n10");
}

static void the_longest_names_are_kept_whole(void **state)
{
    char id[64], other[NODE_NAME_MAX + 1];

    (void)state;
    node_set("0123456789abcdef");
    assert_string_equal(node_name(), "0123456789abcdef");
    node_add("abc", id, sizeof id);
    assert_string_equal(id, "0123456789abcdef-abc");
    assert_string_equal(node_strip(id), "abc");
    assert_true(node_other("123456789abcdefg-abc", other));
    assert_string_equal(other, "123456789abcdefg");
}

static void foreign_texts_name_no_node(void **state)
{
    static const char *const texts[] = {
        "", "-", "-a", "n2", "n2-", "N2-a", "n_2-a", "0123456789abcdef0-1", " n2-a"};
    char other[NODE_NAME_MAX + 1];

    (void)state;
    node_set("n1");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (node_other(texts[i], other))
            fail_msg("\"%s\" names %s", texts[i], other);
        assert_string_equal(node_strip(texts[i]), texts[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(names_are_short_and_plain, teardown),
    cmocka_unit_test_teardown(one_machine_leaves_ids_as_they_are, teardown),
    cmocka_unit_test_teardown(ids_name_their_node, teardown),
    cmocka_unit_test_teardown(the_longest_names_are_kept_whole, teardown),
    cmocka_unit_test_teardown(foreign_texts_name_no_node, teardown),
};
UNIT_TESTS(tests)
