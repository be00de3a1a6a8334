#include "config.h"

#include "common/scheduler/pool_settings.h"
#include "tests/unit/unit.h"

#define GIB (1024ull * 1024 * 1024)

static int parse(const char *warm, const char *memory, struct pool_settings *out, struct err *e)
{
    *out = (struct pool_settings){.idle_ms = 7, .starts_max = 3};
    return pool_settings_parse(warm, memory, 8 * GIB, out, e);
}

static void languages_and_numbers(void **state)
{
    struct pool_settings s;
    struct err e;

    (void)state;
    assert_works(parse(" python=2 , typescript=1,bash=4,c++=200,r=0 ,objective-c=3", "25%", &s, &e),
                 e);
    assert_int_equal(s.n, 5);
    assert_string_equal(s.items[0].language, "python");
    assert_int_equal(s.items[0].n, 2);
    assert_string_equal(s.items[1].language, "typescript");
    assert_int_equal(s.items[1].n, 1);
    assert_string_equal(s.items[2].language, "bash");
    assert_int_equal(s.items[2].n, 4);
    assert_int_equal(s.items[3].n, 200);
    assert_string_equal(s.items[4].language, "objective-c");
    assert_int_equal(s.idle_ms, 7);
    assert_int_equal(s.starts_max, 3);
}

static void automatic_numbers_grow_with_the_memory(void **state)
{
    static const struct {
        const char *memory;
        size_t python, bash, typescript;
    } cases[] = {{"0", 1, 1, 0},  {"512m", 1, 1, 0}, {"540m", 1, 1, 1},
                 {"1g", 3, 1, 1}, {"25%", 9, 1, 1},  {"32g", 22, 1, 1}};
    struct pool_settings s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_works(parse(" auto ", cases[i].memory, &s, &e), e);
        assert_true(s.automatic);
        assert_int_equal(s.n, cases[i].typescript ? 3 : 2);
        assert_string_equal(s.items[0].language, "python");
        assert_int_equal(s.items[0].n, cases[i].python);
        assert_string_equal(s.items[1].language, "bash");
        assert_int_equal(s.items[1].n, cases[i].bash);
        if (s.n == 3)
            assert_int_equal(s.items[2].n, cases[i].typescript);
    }
    assert_works(parse("python=3", "32g", &s, &e), e);
    assert_false(s.automatic);
}

static void nothing_waits_when_the_list_is_empty(void **state)
{
    static const char *const none[] = {"", "  ", "0", "python=0", "python=0,bash=0"};
    struct pool_settings s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        assert_works(parse(none[i], "0", &s, &e), e);
        assert_int_equal(s.n, 0);
    }
}

static void what_is_wrong_is_told_with_the_settings_name(void **state)
{
    static const struct {
        const char *warm, *part;
    } cases[] = {
        {"python=two", "number of python"},
        {"python=", "number of python"},
        {"python=-1", "number of python"},
        {"python=201", "0 to 200"},
        {"python=2;bash=1", "number of python"},
        {"=2", "no language's name"},
        {"python=1,", "has no number"},
        {",", "has no number"},
        {"2", "has no number"},
        {"auto,bash=1", "has no number"},
        {"python", "has no number"},
        {"python =1", "no language's name"},
        {"Python=2", "no language's name"},
        {"py thon=2", "no language's name"},
        {"a23456789012345678901234567890123=1", "no language's name"},
        {"python=1,python=2", "twice"},
        {"a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1,j=1,k=1,l=1,m=1,n=1,o=1,p=1,q=1", "more than 16"},
    };
    struct pool_settings s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_fails(parse(cases[i].warm, "25%", &s, &e), ERR_INVALID, e);
        assert_contains(e.text, "SANDBOX_WARM");
        assert_contains(e.text, cases[i].part);
        assert_int_equal(s.n, 0);
    }
}

static void memory_is_a_size_or_a_share(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"25%", 8 * GIB / 100 * 25}, {"0%", 0},         {"90%", 8 * GIB / 100 * 90},
                {"512m", GIB / 2},           {"16g", 16 * GIB}, {"0", 0}};
    static const char *const bad[] = {"", "%", "91%", "-1%", "2.5%", "much", "12mx", "25 %"};
    struct pool_settings s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_works(parse("python=1", good[i].text, &s, &e), e);
        assert_int_equal(s.memory_bytes, good[i].bytes);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_fails(parse("python=1", bad[i], &s, &e), ERR_INVALID, e);
        assert_contains(e.text, "SANDBOX_WARM_MEMORY");
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(languages_and_numbers),
    cmocka_unit_test(automatic_numbers_grow_with_the_memory),
    cmocka_unit_test(nothing_waits_when_the_list_is_empty),
    cmocka_unit_test(what_is_wrong_is_told_with_the_settings_name),
    cmocka_unit_test(memory_is_a_size_or_a_share),
};
UNIT_TESTS(tests)
