/* Rows of children. */
#include "config.h"

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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_stay_where_they_are),
    cmocka_unit_test(a_run_is_found_by_its_own_tenant_only),
};
UNIT_TESTS(tests)
