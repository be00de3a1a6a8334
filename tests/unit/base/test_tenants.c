/* The file of tenants' limits: what it says, and what each mistake is told as. */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/tenants.h"
#include "tests/unit/unit.h"

#include <string.h>

static bool files_only(const char *list)
{
    return strcmp(list, "files") == 0;
}

static int parse(const char *text, struct tenants *out, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(text);

    tenants_init(out);
    return tenants_parse("limits.ini", copy, files_only, "files", out, e);
}

static void sections_take_from_all_others_what_they_leave_out(void **state)
{
    struct err e = ERR_INIT;
    struct tenants t;

    (void)state;
    assert_int_equal(parse("\xef\xbb\xbf# comment\n"
                           "[bob] # a comment behind it\n"
                           "  runs_per_minute = 30\r\n"
                           "languages = python, bash\n"
                           "; comment\n"
                           "[*]\n"
                           "bytes = \"1GiB\" ; comment\n"
                           "concurrent_runs=2 # comment\n"
                           "network = public\n"
                           "languages = typescript\n"
                           "[alice]\n"
                           "concurrent_runs = 0\n"
                           "network = none\n"
                           "toolsets = files\n",
                           &t, &e),
                     0);
    const struct tenant_limits *bob = tenants_find(&t, "bob"), *alice = tenants_find(&t, "alice");
    const struct tenant_limits *other = tenants_find(&t, "carol");
    assert_int_equal(bob->runs_per_minute, 30);
    assert_int_equal(bob->concurrent_runs, 2);
    assert_int_equal(bob->bytes, 1u << 30);
    assert_int_equal(bob->network, NETWORK_PUBLIC);
    assert_string_equal(bob->languages, "python,bash");
    assert_string_equal(bob->toolsets, "");
    assert_int_equal(alice->concurrent_runs, 0);
    assert_int_equal(alice->network, NETWORK_NONE);
    assert_string_equal(alice->languages, "typescript");
    assert_string_equal(alice->toolsets, "files");
    assert_int_equal(other->concurrent_runs, 2);
    assert_int_equal(other->runs_per_minute, 0);
    tenants_clear(&t);
}

static void without_a_file_there_is_no_limit(void **state)
{
    const struct tenant_limits *none = tenants_find(NULL, "alice");
    struct tenants t;

    (void)state;
    tenants_init(&t);
    assert_int_equal(none->concurrent_runs, 0);
    assert_int_equal(none->network, NETWORK_LAN);
    assert_int_equal(tenants_find(&t, "alice")->network, NETWORK_LAN);
    assert_string_equal(tenants_find(&t, "alice")->languages, "");
    tenants_clear(&t);
}

static void a_list_has_its_words_and_an_empty_one_all(void **state)
{
    (void)state;
    assert_true(tenants_list_has("", "python"));
    assert_true(tenants_list_has("bash, python", "python"));
    assert_true(tenants_list_has("python", "python"));
    assert_false(tenants_list_has("python3,bash", "python"));
    assert_false(tenants_list_has("pyth", "python"));
}

static void each_mistake_is_told_with_file_and_line(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"bytes = 1g\n", "limits.ini:1: a limit stands below the section"},
        {"[a]\n\nbyte = 1g\n", "limits.ini:3: there is no such limit; there are: concurrent_runs,"},
        {"[a]\nbytes = lots\n", "limits.ini:2: bytes is \"lots\", but must be"},
        {"[a]\nconcurrent_runs = -1\n", "limits.ini:2: concurrent_runs is \"-1\""},
        {"[a]\nconcurrent_runs = 1001\n", "a whole number from 0 to 1000"},
        {"[a]\nnetwork = all\n", "limits.ini:2: network is \"all\", but must be"},
        {"[a]\nlanguages = python;bash\n", "limits.ini:2: languages must be names"},
        {"[a]\ntoolsets = none\n", "limits.ini:2: toolsets must be of: files"},
        {"[a]\nbytes 1g\n", "limits.ini:2: expected [TENANT], or LIMIT = VALUE"},
        {"[a]\nbytes=1\nbytes=2\n", "limits.ini:3: bytes is there twice"},
        {"[a]\n[b]\n[a]\n", "limits.ini:3: [a] is there twice"},
        {"[*]\n[b]\n[*]\n", "limits.ini:3: [*] is there twice"},
        {"[a b]\n", "limits.ini:1: a section is [*], or the name of a tenant"},
        {"[]\n", "limits.ini:1: a section is [*]"},
        {"[a\n", "limits.ini:1: the section must end with ]"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = ERR_INIT;
        struct tenants t;

        assert_int_equal(parse(cases[i].text, &t, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_contains(e.text, cases[i].error);
        tenants_clear(&t);
    }
}

static void there_are_not_too_many(void **state)
{
    AUTO_BUF struct buf text = BUF_INIT(TENANTS_FILE_MAX);
    struct err e = ERR_INIT;
    struct tenants t;

    (void)state;
    for (int i = 0; i <= TENANTS_MAX; i++)
        buf_addf(&text, "[t%d]\n", i);
    assert_int_equal(parse(buf_str(&text), &t, &e), -1);
    assert_contains(e.text, "limits.ini:4097: there may be 4096 tenants");
    tenants_clear(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sections_take_from_all_others_what_they_leave_out),
    cmocka_unit_test(without_a_file_there_is_no_limit),
    cmocka_unit_test(a_list_has_its_words_and_an_empty_one_all),
    cmocka_unit_test(each_mistake_is_told_with_file_and_line),
    cmocka_unit_test(there_are_not_too_many),
};
UNIT_TESTS(tests)
