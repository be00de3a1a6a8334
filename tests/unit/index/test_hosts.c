#include "config.h"

#include "common/index/index.h"
#include "tests/unit/unit.h"

static void sources_and_their_hosts(void **state)
{
    struct index_settings s = {.private_ok = true};
    struct err e = ERR_INIT;
    struct index_host host;

    (void)state;
    assert_works(index_settings_parse("python=https://Index.test/simple/+files.test+10.0.0.7:8443, "
                                      "typescript=https://[2001:DB8::1]:4873/npm",
                                      &s, &e),
                 e);
    assert_int_equal(s.n, 2);
    assert_true(s.private_ok);
    const struct index_source *python = index_source_of(&s, "python");
    assert_string_equal(python->url, "https://Index.test/simple/");
    assert_int_equal(python->n_hosts, 3);
    assert_string_equal(python->hosts[0].name, "index.test");
    assert_int_equal(python->hosts[0].port, 443);
    assert_int_equal(python->hosts[2].port, 8443);
    const struct index_source *typescript = index_source_of(&s, "typescript");
    assert_string_equal(typescript->hosts[0].name, "2001:db8::1");
    assert_int_equal(typescript->hosts[0].port, 4873);
    assert_null(index_source_of(&s, "bash"));
    assert_true(index_host_parse("INDEX.test:443", 14, 0, &host) &&
                index_source_allows(python, &host));
    assert_true(index_host_parse("index.test:444", 14, 0, &host));
    assert_false(index_source_allows(python, &host));
    assert_false(index_source_allows(typescript, &python->hosts[0]));
}

static void none_is_a_choice(void **state)
{
    struct index_settings s = {.n = 1};
    struct err e = ERR_INIT;

    (void)state;
    assert_works(index_settings_parse("", &s, &e), e);
    assert_int_equal(s.n, 0);
}

static void what_is_wrong_is_told_with_the_settings_name(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"python", "is not language="},
        {",", "is not language="},
        {"python=", "must begin with https://"},
        {"python=http://index.test", "must begin with https://"},
        {"python=https://user:word@index.test/", "must be plain"},
        {"python=https://index.test/?q", "must be plain"},
        {"python=https://", "is no host"},
        {"python=https:///simple", "is no host"},
        {"python=https://index.test:0/", "is no host"},
        {"python=https://index.test:65536/", "is no host"},
        {"python=https://index.test:x/", "is no host"},
        {"python=https://[::1/", "is no host"},
        {"python=https://[::g]/", "is no host"},
        {"python=https://in_dex.test/", "is no host"},
        {"python=https://index.test+", "is no host"},
        {"python=https://a+b+c+d+e+f+g+h+i", "more than 8 hosts"},
        {"bash=https://index.test", "cannot be installed"},
        {"python=https://a,python=https://b", "twice"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct index_settings s = {.n = 3};
        struct err e = ERR_INIT;
        assert_int_equal(index_settings_parse(cases[i].text, &s, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        if (!strstr(e.text, "SANDBOX_INDEXES") || !strstr(e.text, cases[i].part))
            fail_msg("%s: %s", cases[i].text, e.text);
        assert_int_equal(s.n, 3);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sources_and_their_hosts),
    cmocka_unit_test(none_is_a_choice),
    cmocka_unit_test(what_is_wrong_is_told_with_the_settings_name),
};
UNIT_TESTS(tests)
