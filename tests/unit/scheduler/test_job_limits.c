/* How many jobs of a kind there may be, and how many of them of one tenant. */
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

static void what_may_last_leaves_room_for_other_tenants(void **state)
{
    static const struct {
        enum job_limit limit;
        const char *busy;
        size_t alone, all;
    } kinds[] = {{JOB_LIMIT_IMPORT, "being fetched", 7, 8},
                 {JOB_LIMIT_UNPACK, "being unpacked", 7, 8},
                 {JOB_LIMIT_DELETION, "being deleted", 10, 12},
                 {JOB_LIMIT_PACK, "being downloaded", 20, 24}};
    struct children *list = children_new();
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        enum job_limit limit = kinds[i].limit;
        size_t n = begin_all(list, limit, "ann", JOB_IS_BUSY, "for you");
        assert_int_equal(n, kinds[i].alone);
        n += begin_all(list, limit, "bob", JOB_IS_BUSY, kinds[i].busy);
        assert_true(n > kinds[i].alone);
        n += begin_all(list, limit, "cid", JOB_IS_BUSY, kinds[i].busy);
        assert_int_equal(n, kinds[i].all);
        assert_int_equal(begin_all(list, limit, "dan", JOB_IS_BUSY, "on this server"), 0);
    }
    /* They take no room from the others. */
    assert_int_equal(job_limits_ask(list, JOB_LIMIT_DEFAULT, "ann", &e), JOB_MAY_BEGIN);
    children_free(list);
}

static void every_other_job_waits_above_its_tenants_share(void **state)
{
    struct children *list = children_new();

    (void)state;
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 26);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "bob", JOB_MUST_WAIT, NULL), 5);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "cid", JOB_MUST_WAIT, NULL), 1);
    children_remove(list, children_next(list, NULL)); /* one of ann's */
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 0);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "dan", JOB_MUST_WAIT, NULL), 1);
    children_free(list);
}

static void helpers_and_supervisors_are_no_jobs(void **state)
{
    struct children *list = children_new();
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 128; i++)
        children_add(list, i % 2 ? CHILD_SUPERVISOR : CHILD_JOB);
    assert_int_equal(begin_all(list, JOB_LIMIT_DEFAULT, "ann", JOB_MUST_WAIT, NULL), 26);
    assert_int_equal(job_limits_ask(list, JOB_LIMIT_NONE, "", &e), JOB_MAY_BEGIN);
    children_free(list);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_may_last_leaves_room_for_other_tenants),
    cmocka_unit_test(every_other_job_waits_above_its_tenants_share),
    cmocka_unit_test(helpers_and_supervisors_are_no_jobs),
};
UNIT_TESTS(tests)
