/* How many jobs there may be of a kind, a tenant, and in all. */
#include "config.h"

#include "common/scheduler/children.h"
#include "tests/unit/unit.h"

/* Begins jobs until one may not; how many began. */
static size_t begin_all(struct children *list, enum job_limit limit, const char *tenant,
                        enum job_answer last, const char *busy)
{
    struct err e = ERR_INIT;
    enum job_answer answer;
    size_t n = 0;

    for (; (answer = job_limits_ask(list, limit, tenant, &e)) == JOB_MAY_BEGIN; n++) {
        struct child *c = children_add(list, CHILD_JOB);
        c->limit = limit;
        child_set_owner(c, tenant, NULL);
    }
    assert_int_equal(answer, last);
    if (answer == JOB_IS_BUSY) {
        assert_int_equal(e.kind, ERR_BUSY);
        assert_contains(e.text, busy);
    }
    return n;
}

static void what_may_last_has_shares_of_tenant_and_server(void **state)
{
    static const struct {
        enum job_limit limit;
        const char *busy;
        size_t tenant;
    } kinds[] = {{JOB_LIMIT_IMPORT, "being fetched", 4},
                 {JOB_LIMIT_UNPACK, "being unpacked", 4},
                 {JOB_LIMIT_DELETION, "being deleted", 6},
                 {JOB_LIMIT_PACK, "being downloaded", 8}};
    struct children *list = children_new();
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        enum job_limit limit = kinds[i].limit;
        assert_int_equal(begin_all(list, limit, "ann", JOB_IS_BUSY, "for you"), kinds[i].tenant);
        assert_true(begin_all(list, limit, "bob", JOB_IS_BUSY, kinds[i].busy) >= 4);
        begin_all(list, limit, "cid", JOB_IS_BUSY, kinds[i].busy);
        assert_int_equal(begin_all(list, limit, "dan", JOB_IS_BUSY, "on this server"), 0);
    }
    assert_true(children_count(list, NULL, NULL) < JOBS_MAX); /* there is room for the others */
    assert_int_equal(job_limits_ask(list, JOB_LIMIT_DEFAULT, "ann", &e), JOB_MAY_BEGIN);
    children_free(list);
}

static void every_other_job_counts_for_its_tenant_and_waits(void **state)
{
    struct children *list = children_new();

    (void)state;
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 16);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "bob", JOB_MUST_WAIT, NULL), 16);
    children_remove(list, children_next(list, NULL)); /* one of ann's */
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "bob", JOB_MUST_WAIT, NULL), 0);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 1);
    children_free(list);
}

static void all_jobs_together_have_a_bound(void **state)
{
    static const char *const tenants[] = {"ann", "bob", "cid", "dan", "eve"};
    struct children *list = children_new();
    struct err e = ERR_INIT;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tenants); i++)
        n += begin_all(list, JOB_LIMIT_DEFAULT, tenants[i], JOB_MUST_WAIT, NULL);
    assert_int_equal(n, JOBS_MAX);
    assert_int_equal(job_limits_ask(list, JOB_LIMIT_PACK, "fay", &e), JOB_MUST_WAIT);
    assert_int_equal(job_limits_ask(list, JOB_LIMIT_NONE, "", &e), JOB_MAY_BEGIN);
    children_free(list);
}

static void helpers_and_supervisors_are_no_jobs(void **state)
{
    struct children *list = children_new();

    (void)state;
    for (size_t i = 0; i < 2 * JOBS_MAX; i++)
        children_add(list, i % 2 ? CHILD_SUPERVISOR : CHILD_JOB);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 16);
    children_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_last_has_shares_of_tenant_and_server),
        cmocka_unit_test(every_other_job_counts_for_its_tenant_and_waits),
        cmocka_unit_test(all_jobs_together_have_a_bound),
        cmocka_unit_test(helpers_and_supervisors_are_no_jobs),
    };
    return RUN_TESTS(tests);
}
