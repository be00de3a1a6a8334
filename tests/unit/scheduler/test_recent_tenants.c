#include "config.h"

#include "common/scheduler/recent_tenants.h"
#include "tests/unit/unit.h"

static void whoever_is_alone_has_no_company(void **state)
{
    struct recent_tenants c = {0};

    (void)state;
    assert_false(recent_tenants_has_others(&c, "a", 0));
    for (int64_t now = 0; now < 5; now++)
        recent_tenants_note(&c, "a", now);
    assert_false(recent_tenants_has_others(&c, "a", 5));
    assert_true(recent_tenants_has_others(&c, "b", 5));
    recent_tenants_clear(&c);
}

static void others_are_remembered_for_a_while(void **state)
{
    struct recent_tenants c = {0};

    (void)state;
    recent_tenants_note(&c, "b", 0);
    for (int64_t now = 1; now < RECENT_TENANTS_MS; now += 100)
        recent_tenants_note(&c, "a", now);
    assert_true(recent_tenants_has_others(&c, "a", RECENT_TENANTS_MS - 1));
    assert_false(recent_tenants_has_others(&c, "a", RECENT_TENANTS_MS));
    recent_tenants_clear(&c);
}

static void of_three_each_has_company(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct recent_tenants c = {0};

    (void)state;
    for (int64_t now = 0; now < 9; now++)
        recent_tenants_note(&c, names[now % 3], now);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(recent_tenants_has_others(&c, names[i], 9));
    recent_tenants_clear(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_is_alone_has_no_company),
        cmocka_unit_test(others_are_remembered_for_a_while),
        cmocka_unit_test(of_three_each_has_company),
    };
    return RUN_TESTS(tests);
}
