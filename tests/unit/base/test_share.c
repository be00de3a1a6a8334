#include "config.h"

#include "common/base/share.h"
#include "tests/unit/unit.h"

static size_t taken_by_one(size_t by_others, size_t max)
{
    size_t own = 0;

    while (share_allows(own, by_others + own, max))
        own++;
    return own;
}

static void one_that_is_alone_leaves_a_fifth(void **state)
{
    (void)state;
    assert_int_equal(taken_by_one(0, 2000), 1600);
    assert_int_equal(taken_by_one(0, 5), 4);
    assert_int_equal(taken_by_one(0, 1), 1);
    assert_int_equal(taken_by_one(0, 0), 0);
}

static void the_more_is_taken_the_less_one_gets(void **state)
{
    (void)state;
    assert_int_equal(taken_by_one(1600, 2000), 320);
    assert_int_equal(taken_by_one(1999, 2000), 1); /* one that has nothing gets the last */
    assert_int_equal(taken_by_one(2000, 2000), 0);
    assert_int_equal(taken_by_one(SIZE_MAX, 2000), 0);
}

static void keys_tell_tenants_apart(void **state)
{
    (void)state;
    assert_true(share_key("alice") != share_key("dave"));
    assert_true(share_key("alice") == share_key("alice"));
    assert_true(share_key(NULL) != share_key("alice"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_that_is_alone_leaves_a_fifth),
    cmocka_unit_test(the_more_is_taken_the_less_one_gets),
    cmocka_unit_test(keys_tell_tenants_apart),
};
UNIT_TESTS(tests)
