/* What may be handed to an installer: a package's name with its version, and nothing that an
 * installer would take for something else. */
#include "config.h"

#include "common/base/mem.h"
#include "common/index/index.h"
#include "tests/unit/unit.h"

struct names {
    const char *language;
    const char *const *good, *const *bad;
};

static const char *const python_good[] = {"a",
                                          "polars",
                                          "Zope.Interface",
                                          "ruamel_yaml-clib2",
                                          "httpx[http2]",
                                          "httpx[http2, socks]>=0.27",
                                          "pandas>=2,<3",
                                          "pandas >= 2.0, != 2.1.*",
                                          "x~=1.0",
                                          "x==1!2.0.post1+local.7",
                                          NULL};
static const char *const python_bad[] = {"",
                                         "-r",
                                         "--index-url=https://x.test",
                                         ".",
                                         "./x",
                                         "/etc/passwd",
                                         "x/y",
                                         "x;y",
                                         "x; python_version>'3'",
                                         "x @ https://x.test/x.whl",
                                         "git+https://x.test/x",
                                         "x y",
                                         "x\ny",
                                         "x-",
                                         "_x",
                                         "x==",
                                         "x==1,",
                                         "x===1",
                                         "x=1",
                                         "x==-1",
                                         "x==1 2",
                                         "x[",
                                         "x[]",
                                         "x[a",
                                         "x[a]b",
                                         "x[a,]",
                                         "x.whl",
                                         "x.tar.gz",
                                         "X.ZIP",
                                         "$(id)",
                                         "x\xc3\xa9",
                                         NULL};
static const char *const npm_good[] = {"zod",
                                       "is-odd@3.0.1",
                                       "@types/node",
                                       "@types/node@^22",
                                       "left_pad@latest",
                                       "a@>=1.0 <2.0",
                                       "a@1.x || >=2.5",
                                       "JSONStream@~1.3",
                                       "lodash.merge@4.6.2",
                                       "zod@*",
                                       NULL};
static const char *const npm_bad[] = {"",
                                      "-g",
                                      "--registry=https://x.test",
                                      "../x",
                                      ".x",
                                      "_x",
                                      "x/y",
                                      "github:x/y",
                                      "@x",
                                      "@x/",
                                      "@/x",
                                      "@x/y/z",
                                      "@../x",
                                      "x@",
                                      "x@=",
                                      "x@^ -",
                                      "a..b",
                                      "@t../n",
                                      "@t/n..",
                                      "@t../n@=",
                                      "x@npm:y@1",
                                      "x@file:../y",
                                      "x@https://x.test/y.tgz",
                                      "x@../y",
                                      "x@..",
                                      "x@./y",
                                      "x@y/z",
                                      "x@workspace:*",
                                      "x@git+ssh://h/r",
                                      "x.tgz",
                                      "x@y.tgz",
                                      "x@1;id",
                                      "x y",
                                      "x@1\n",
                                      "x@\"1\"",
                                      NULL};

static void names_and_versions_pass_and_nothing_else(void **state)
{
    static const struct names all[] = {{"python", python_good, python_bad},
                                       {"typescript", npm_good, npm_bad}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct index_ecosystem *eco = index_ecosystem_of(all[i].language);
        assert_non_null(eco);
        for (const char *const *name = all[i].good; *name; name++) {
            struct err e = ERR_INIT;
            assert_works(index_check_package(eco, *name, &e), e);
        }
        for (const char *const *name = all[i].bad; *name; name++) {
            struct err e = ERR_INIT;
            if (index_check_package(eco, *name, &e) == 0)
                fail_msg("%s: \"%s\" passed", all[i].language, *name);
            assert_int_equal(e.kind, ERR_INVALID);
            assert_non_null(strstr(e.text, "packages: "));
        }
    }
}

static void long_names_are_refused_with_the_limit(void **state)
{
    AUTO_FREE char *name = mem_alloc(INDEX_PACKAGE_MAX + 2);
    struct err e = ERR_INIT;

    (void)state;
    memset(name, 'x', INDEX_PACKAGE_MAX + 1);
    assert_int_equal(index_check_package(index_ecosystem_of("python"), name, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_non_null(strstr(e.text, "256"));
}

static void other_languages_have_no_packages(void **state)
{
    size_t n;

    (void)state;
    assert_null(index_ecosystem_of("bash"));
    assert_null(index_ecosystem_of(""));
    assert_string_equal(index_ecosystems(&n)[0].language, "python");
    assert_int_equal(n, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_and_versions_pass_and_nothing_else),
    cmocka_unit_test(long_names_are_refused_with_the_limit),
    cmocka_unit_test(other_languages_have_no_packages),
};
UNIT_TESTS(tests)
