/* Paths and ids that clients of other servers bring: what they lead to here, and what to nothing.
 */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/profiles/adapt.h"
#include "common/tools/profiles/container_call.h"
#include "common/tools/tools.h"
#include "tests/unit/unit.h"

static void paths_lead_below_their_roots_only(void **state)
{
    static const char *const app[] = {"/app", "/data", NULL};
    static const char *const all[] = {"/data", "/", NULL};
    static const struct {
        const char *path;
        const char *const *roots;
        const char *name; /* NULL: nowhere */
    } cases[] = {
        {"a.txt", app, "a.txt"},
        {"/app/a.txt", app, "a.txt"},
        {"/data/b/a.txt", app, "b/a.txt"},
        {"/app", app, ""},
        {"/app/", app, ""},
        {"/app//b///a", app, "b/a"},
        {"./a/./b", app, "a/b"},
        {"", app, ""},
        {"/apple/a", app, NULL},
        {"/etc/passwd", app, NULL},
        {"/", app, NULL},
        {"..", app, NULL},
        {"/app/../etc/passwd", app, NULL},
        {"a/..", app, NULL},
        {"..a/b..", app, "..a/b.."},
        {"/x/y", all, "x/y"},
        {"/data/y", all, "y"},
        {"/", all, ""},
        {"/../x", all, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = ERR_INIT;
        AUTO_FREE char *name = adapt_name(cases[i].path, cases[i].roots, &e);

        if (!name != !cases[i].name)
            fail_msg("%s: %s", cases[i].path, name ? name : e.text);
        if (name)
            assert_string_equal(name, cases[i].name);
        else
            assert_int_equal(e.kind, ERR_INVALID);
    }
}

#define BOX "sbx_0123456789abcdef01234567"

static void a_container_id_leads_back_to_its_sandbox(void **state)
{
    char id[CONTAINER_ID_LEN + 1], psandbox[CONTAINER_PSANDBOX_LEN + 1];
    struct err e = ERR_INIT;

    (void)state;
    assert_works(container_id_of("me", BOX, id, &e), e);
    assert_int_equal(strlen(id), 64);
    assert_int_equal(strspn(id, "0123456789abcdef"), 64);
    assert_works(container_psandbox_of("me", id, psandbox, &e), e);
    assert_string_equal(psandbox, BOX);
}

static void every_other_id_leads_nowhere(void **state)
{
    static const char *const others[] = {
        "",
        "x",
        BOX,
        "0123456789abcdef01234567",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "../../../../../../../../../../../../../../../../etc/passwd/0123456",
    };
    char id[CONTAINER_ID_LEN + 1], psandbox[CONTAINER_PSANDBOX_LEN + 1];
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        assert_int_equal(container_psandbox_of("me", others[i], psandbox, &e), -1);
        assert_int_equal(e.kind, ERR_NOT_FOUND);
    }
    assert_works(container_id_of("me", BOX, id, &e), e);
    assert_int_equal(container_psandbox_of("you", id, psandbox, &e), -1);
    id[63] = id[63] == '0' ? '1' : '0';
    assert_int_equal(container_psandbox_of("me", id, psandbox, &e), -1);
    assert_int_equal(container_id_of("me", "nonsense", id, &e), -1);
}

static void sets_are_found_by_their_exact_name(void **state)
{
    static const char *const names[] = {"runner", "session", "container", "interpreter"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(toolset_find(names[i]), TOOLSET_ALL + 1 + (int)i);
        assert_string_equal(toolset_theirs(TOOLSET_ALL + 1 + (int)i)->name, names[i]);
    }
    assert_int_equal(TOOLSETS, TOOLSET_ALL + 1 + ARRAY_LEN(names));
    assert_int_equal(toolset_find("core"), TOOLSET_CORE);
    assert_int_equal(toolset_find("all"), TOOLSET_ALL);
    assert_int_equal(toolset_find("files"), TOOLSET_FILES);
    assert_int_equal(toolset_find("core,files"), TOOLSET_FILES);
    assert_int_equal(toolset_find("sandboxes, admin"), TOOLSET_SANDBOXES | TOOLSET_ADMIN);
    assert_int_equal(toolset_find("transfer,all"), TOOLSET_ALL);
    for (int set = 0; set <= TOOLSET_ALL; set++)
        assert_null(toolset_theirs(set));
}

static void other_names_of_sets_lead_nowhere(void **state)
{
    static const char *const others[] = {"",       ",",           "run",     "runner|session",
                                         "RUNNER", "core,runner", "runner,", "core,nonsense",
                                         "cor",    "core;files"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        assert_int_equal(toolset_find(others[i]), -1);
}

static void a_limit_leaves_of_a_set_what_it_names(void **state)
{
    (void)state;
    assert_true(toolset_limit_ok("files, container"));
    assert_true(toolset_limit_ok("all"));
    assert_false(toolset_limit_ok("files,nonsense"));
    assert_int_equal(toolset_limit(TOOLSET_ALL, ""), TOOLSET_ALL);
    assert_int_equal(toolset_limit(TOOLSET_RUNNER, ""), TOOLSET_RUNNER);
    assert_int_equal(toolset_limit(TOOLSET_ALL, "all"), TOOLSET_ALL);
    assert_int_equal(toolset_limit(TOOLSET_ALL, "files, admin"), TOOLSET_FILES | TOOLSET_ADMIN);
    assert_int_equal(toolset_limit(TOOLSET_FILES | TOOLSET_TRANSFER, "files"), TOOLSET_FILES);
    assert_int_equal(toolset_limit(TOOLSET_ALL, "core"), TOOLSET_CORE);
    assert_int_equal(toolset_limit(TOOLSET_CONTAINER, "core,container"), TOOLSET_CONTAINER);
    assert_int_equal(toolset_limit(TOOLSET_FILES, "container"), TOOLSET_CORE);
    assert_int_equal(toolset_limit(TOOLSET_RUNNER, "all,container"), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_limit_leaves_of_a_set_what_it_names),
    cmocka_unit_test(paths_lead_below_their_roots_only),
    cmocka_unit_test(a_container_id_leads_back_to_its_sandbox),
    cmocka_unit_test(every_other_id_leads_nowhere),
    cmocka_unit_test(sets_are_found_by_their_exact_name),
    cmocka_unit_test(other_names_of_sets_lead_nowhere),
};
UNIT_TESTS(tests)
