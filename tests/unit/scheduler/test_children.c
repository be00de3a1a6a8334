/* Rows of children. */
#include "config.h"

#include "common/base/mem.h"
#include "common/scheduler/children.h"
#include "tests/unit/unit.h"

static bool is_claimed(const struct child *c, const void *ctx)
{
    (void)ctx;
    return c->claimed;
}

static void rows_stay_where_they_are(void **state)
{
    struct children *list = children_new();
    struct child *rows[50];

    (void)state;
    for (int i = 0; i < 50; i++) {
        rows[i] = children_add(list, i % 2 ? CHILD_JOB : CHILD_SUPERVISOR);
        rows[i]->pid = 100 + i;
        rows[i]->claimed = i % 5 == 0;
    }
    assert_ptr_equal(children_find_pid(list, 149), rows[49]);
    children_remove(list, rows[49]);
    children_remove(list, rows[0]);
    children_remove(list, rows[25]);
    assert_null(children_find_pid(list, 149));
    assert_null(children_find_pid(list, 125));
    assert_ptr_equal(children_find_pid(list, 126), rows[26]);
    struct child *last = children_add(list, CHILD_JOB);
    assert_int_equal(children_count(list, NULL, NULL), 48);
    assert_int_equal(children_count(list, is_claimed, NULL), 8);
    size_t n = 0;
    struct child *at = NULL, *before = NULL;
    for (; (at = children_next(list, at)); before = at)
        n++;
    assert_int_equal(n, 48);
    assert_ptr_equal(before, last);
    children_free(list);
}

static void a_run_is_found_by_its_own_tenant_only(void **state)
{
    struct children *list = children_new();
    struct child *c = children_add(list, CHILD_SUPERVISOR);

    (void)state;
    snprintf(c->run_id, sizeof c->run_id, "%s", "0123456789abcdef01234567");
    assert_null(children_find_run(list, "t", c->run_id));
    c->claimed = true;
    child_set_owner(c, "t", "conversationId");
    assert_ptr_equal(children_find_run(list, "t", c->run_id), c);
    assert_null(children_find_run(list, "other", c->run_id));
    assert_null(children_find_run(list, "t", ""));
    children_free(list);
}

static struct child *add_kept(struct children *list, const char *dir, const char *language,
                              const char *image)
{
    struct child *c = children_add(list, CHILD_PSANDBOX);

    c->session = true;
    snprintf(c->sandbox_dir, sizeof c->sandbox_dir, "%s", dir);
    snprintf(c->language, sizeof c->language, "%s", language);
    c->image = mem_strdup(image);
    return c;
}

static void a_session_is_found_by_its_language_or_its_image(void **state)
{
    static const struct {
        const char *dir, *language, *image;
        bool found;
    } cases[] = {{"a", "python", NULL, true},       {"a", "perl", NULL, true},
                 {"a", "bun", "both:latest", true}, {"a", "bun", NULL, false},
                 {"a", "bun", "bun:latest", false}, {"b", "python", "both:latest", false}};
    struct children *list = children_new();
    struct child *c = add_kept(list, "a", "perl python", "both:latest"); /* it was adopted */

    (void)state;
    c->session_network = NETWORK_PUBLIC; /* another one takes its place for a call without */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_ptr_equal(
            children_find_session(list, cases[i].dir, cases[i].language, cases[i].image),
            cases[i].found ? c : NULL);
    struct child *own = add_kept(list, "a", "bun", "bun:latest");
    assert_ptr_equal(children_find_session(list, "a", "bun", "both:latest"), own);
    assert_ptr_equal(children_find_session(list, "a", "python", "bun:latest"), c);
    child_set_state(c, CHILD_ENDED);
    assert_null(children_find_session(list, "a", "python", "both:latest"));
    children_free(list);
}

static struct child *add_session(struct children *list, const char *tenant, int64_t used_us)
{
    struct child *c = children_add(list, CHILD_PSANDBOX);

    child_set_owner(c, tenant, "conversationId");
    c->session = true;
    c->used_us = used_us;
    return c;
}

static void the_session_that_is_unused_longest_is_found_among_those_that_run_nothing(void **state)
{
    struct children *list = children_new();
    struct child *newer = add_session(list, "t", 20), *older = add_session(list, "t", 10);
    struct child *made = add_session(list, "t", 1);

    (void)state;
    add_session(list, "other", 5);
    made->session = false; /* of create_sandbox */
    assert_ptr_equal(children_find_idle_session(list, "t"), older);
    older->n_handed = 1;
    assert_ptr_equal(children_find_idle_session(list, "t"), newer);
    older->n_handed = 0;
    older->calls = json_pack("[{}]");
    assert_ptr_equal(children_find_idle_session(list, "t"), newer);
    newer->reattaching = true;
    assert_null(children_find_idle_session(list, "t"));
    newer->reattaching = false;
    newer->ending = true;
    assert_null(children_find_idle_session(list, "t"));
    newer->ending = false;
    child_set_state(newer, CHILD_ENDED);
    assert_null(children_find_idle_session(list, "t"));
    children_free(list);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_session_that_is_unused_longest_is_found_among_those_that_run_nothing),
    cmocka_unit_test(a_session_is_found_by_its_language_or_its_image),
    cmocka_unit_test(rows_stay_where_they_are),
    cmocka_unit_test(a_run_is_found_by_its_own_tenant_only),
};
UNIT_TESTS(tests)
