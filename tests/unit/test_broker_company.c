#include "config.h"

#include "common/broker/company.h"
#include "tests/unit/unit.h"

static void whoever_is_alone_has_no_company(void **state)
{
    struct company c = {0};

    (void)state;
    assert_false(company_has_others(&c, "a", 0));
    for (int64_t now = 0; now < 5; now++)
        company_note(&c, "a", now);
    assert_false(company_has_others(&c, "a", 5));
    assert_true(company_has_others(&c, "b", 5));
    company_clear(&c);
}

static void others_are_remembered_for_a_while(void **state)
{
    struct company c = {0};

    (void)state;
    company_note(&c, "b", 0);
    for (int64_t now = 1; now < COMPANY_MS; now += 100)
        company_note(&c, "a", now);
    assert_true(company_has_others(&c, "a", COMPANY_MS - 1));
    assert_false(company_has_others(&c, "a", COMPANY_MS));
    company_clear(&c);
}

static void of_three_each_has_company(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct company c = {0};

    (void)state;
    for (int64_t now = 0; now < 9; now++)
        company_note(&c, names[now % 3], now);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(company_has_others(&c, names[i], 9));
    company_clear(&c);
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
