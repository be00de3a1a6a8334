/* Which run may start: limits hold, turns are fair, none is lost. */
#include "config.h"

#include "common/base/share.h"
#include "common/scheduler/admission.h"
#include "tests/unit/unit.h"

static const struct admission_limits limits = {
    .server = 8, .tenant = 5, .conversation = 2, .queue = 20};

static struct admission_want want(const char *tenant, const char *sandbox_dir, void *ticket)
{
    return (struct admission_want){.tenant = tenant, .sandbox_dir = sandbox_dir, .ticket = ticket};
}

static enum admission_answer ask(struct admission *a, const char *tenant, const char *sandbox_dir,
                                 void *ticket, size_t *position, int64_t *retry_ms)
{
    struct admission_want w = want(tenant, sandbox_dir, ticket);
    return admission_ask(a, &w, position, retry_ms);
}

/* ---- single rules ---- */

static void places_then_a_line_then_busy(void **state)
{
    static const struct admission_limits two = {.server = 2, .queue = 2};
    struct admission *a = admission_new(&two);
    char tickets[5];
    size_t position;
    int64_t retry;

    (void)state;
    assert_int_equal(ask(a, "t", "b", tickets, &position, &retry), ADMISSION_GO);
    assert_int_equal(ask(a, "t", "b", tickets + 1, &position, &retry), ADMISSION_GO);
    assert_int_equal(ask(a, "t", "b", tickets + 2, &position, &retry), ADMISSION_WAIT);
    assert_int_equal(position, 1);
    assert_int_equal(ask(a, "t", "c", tickets + 3, &position, &retry), ADMISSION_WAIT);
    assert_int_equal(position, 2);
    assert_int_equal(ask(a, "t", "c", tickets + 4, &position, &retry), ADMISSION_BUSY);
    assert_int_equal(position, 2);
    assert_true(retry > 0);
    assert_null(admission_next(a));
    admission_release(a, "t", "b", false, 1000);
    assert_ptr_equal(admission_next(a), tickets + 2);
    assert_null(admission_next(a));
    admission_forget(a, tickets + 3);
    assert_int_equal(admission_waiting(a), 0);
    assert_int_equal(admission_running(a), 2);
    admission_free(a);
}

static enum admission_answer ask_at(struct admission *a, const char *tenant, char *ticket,
                                    int64_t now_ms)
{
    struct admission_want w = want(tenant, tenant, ticket);
    size_t position;
    int64_t retry;

    w.now_ms = now_ms;
    return admission_ask(a, &w, &position, &retry);
}

static void the_last_of_few_places_is_for_others_when_there_are_some(void **state)
{
    static const struct admission_limits few[] = {
        {.server = 2, .queue = 9},
        {.server = 4, .queue = 9},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(few); i++) {
        struct admission *a = admission_new(&few[i]);
        size_t n = few[i].server;
        char tickets[9];
        for (size_t k = 0; k < n; k++)
            assert_int_equal(ask_at(a, "alone", tickets + k, 1), ADMISSION_GO);
        assert_int_equal(ask_at(a, "other", tickets + n, 2), ADMISSION_WAIT);
        admission_release(a, "alone", "alone", false, 3);
        assert_ptr_equal(admission_next(a), tickets + n);
        admission_release(a, "other", "other", false, 4);
        assert_int_equal(ask_at(a, "alone", tickets, 5), ADMISSION_WAIT);
        assert_int_equal(ask_at(a, "other", tickets + n, 6), ADMISSION_GO);
        admission_release(a, "other", "other", false, 7);
        assert_null(admission_next(a));
        assert_int_equal(ask_at(a, "alone", tickets + 1, ADMISSION_KNOWN_MS + 6), ADMISSION_GO);
        admission_free(a);
    }
}

static void a_full_conversation_holds_up_only_itself(void **state)
{
    static const struct admission_limits one = {.server = 4, .conversation = 1, .queue = 9};
    struct admission *a = admission_new(&one);
    char tickets[4];
    size_t position;
    int64_t retry;

    (void)state;
    assert_int_equal(ask(a, "t", "b", tickets, &position, &retry), ADMISSION_GO);
    assert_int_equal(ask(a, "t", "b", tickets + 1, &position, &retry), ADMISSION_WAIT);
    assert_int_equal(ask(a, "t", "c", tickets + 2, &position, &retry), ADMISSION_GO);
    admission_release(a, "t", "c", false, 1);
    assert_null(admission_next(a));
    admission_release(a, "t", "b", false, 1);
    assert_ptr_equal(admission_next(a), tickets + 1);
    admission_free(a);
}

/* Of the tenant of many: one, in a persistent sandbox. */
static size_t one_elsewhere(const void *ctx, const char *tenant)
{
    return strcmp(tenant, "many") == 0 ? *(const size_t *)ctx : 0;
}

static void a_tenant_at_its_own_limit_holds_up_only_itself(void **state)
{
    size_t elsewhere = 1;
    const struct admission_limits wide = {
        .server = 8, .tenant = 8, .queue = 9, .elsewhere = one_elsewhere, .ctx = &elsewhere};
    struct admission *a = admission_new(&wide);
    char tickets[4];
    size_t position;
    int64_t retry;
    struct admission_want w = want("many", "b", tickets);

    (void)state;
    w.most = 2;
    assert_int_equal(admission_ask(a, &w, &position, &retry), ADMISSION_GO);
    assert_int_equal(admission_running_of(a, "many"), 2);
    w.ticket = tickets + 1;
    assert_int_equal(admission_ask(a, &w, &position, &retry), ADMISSION_WAIT);
    assert_int_equal(ask(a, "other", "c", tickets + 2, &position, &retry), ADMISSION_GO);
    assert_null(admission_next(a));
    elsewhere = 0;
    assert_ptr_equal(admission_next(a), tickets + 1);
    assert_int_equal(admission_running_of(a, "many"), 2);
    assert_int_equal(admission_running_of(a, "other"), 1);
    admission_free(a);
}

/* How many runs of one tenant that is alone begin; then one of another must begin, too. */
static size_t begun_alone(const struct admission_limits *l)
{
    struct admission *a = admission_new(l);
    char tickets[100];
    size_t position, n = 0;
    int64_t retry;

    while (ask(a, "many", "b", tickets + n, &position, &retry) == ADMISSION_GO)
        n++;
    if (n < l->server)
        assert_int_equal(ask(a, "few", "c", tickets + 99, &position, &retry), ADMISSION_GO);
    assert_null(admission_next(a)); /* what waits takes no place that is left for others */
    admission_free(a);
    return n;
}

static void one_tenant_alone_leaves_places(void **state)
{
    (void)state;
    assert_int_equal(begun_alone(&(struct admission_limits){.server = 16, .queue = 9}), 13);
    assert_int_equal(
        begun_alone(&(struct admission_limits){.server = 16, .tenant = 15, .queue = 9}), 13);
    assert_int_equal(begun_alone(&(struct admission_limits){.server = 16, .tenant = 5, .queue = 9}),
                     5);
    assert_int_equal(
        begun_alone(&(struct admission_limits){.server = 16, .tenant = 16, .queue = 9}), 16);
    assert_int_equal(begun_alone(&(struct admission_limits){.server = 1, .queue = 9}), 1);
}

static void one_tenant_alone_leaves_room_in_the_line(void **state)
{
    static const struct admission_limits one = {.server = 1, .queue = 20};
    struct admission *a = admission_new(&one);
    char tickets[600];
    size_t position, waiting = 0;
    int64_t retry;

    (void)state;
    for (size_t i = 0; i < 500; i++)
        waiting += ask(a, "many", "b", tickets + i, &position, &retry) == ADMISSION_WAIT;
    assert_int_equal(waiting, 16);
    /* The next run waits for one of the others, not for all. */
    assert_int_equal(ask(a, "few", "c", tickets + 500, &position, &retry), ADMISSION_WAIT);
    assert_int_equal(position, 2);
    admission_release(a, "many", "b", false, 1);
    void *first = admission_next(a);
    admission_release(a, first == tickets + 500 ? "few" : "many",
                      first == tickets + 500 ? "c" : "b", false, 2);
    void *second = admission_next(a);
    assert_true(first == tickets + 500 || second == tickets + 500);
    admission_free(a);
}

static void the_retry_time_follows_the_pace(void **state)
{
    static const struct admission_limits one = {.server = 1, .queue = 5};
    struct admission *a = admission_new(&one);
    char tickets[600];
    size_t position;
    int64_t retry = 0, now = 0;

    (void)state;
    for (size_t i = 0; i < 400; i++) {
        ask(a, "t", "b", tickets + i, &position, &retry);
        if (i >= 4) {
            admission_release(a, "t", "b", false, now += 300);
            assert_non_null(admission_next(a));
        }
    }
    assert_true(admission_retry_ms(a) >= 300 * 4 && admission_retry_ms(a) <= 300 * 6);
    admission_free(a);
}

/* ---- many random steps, against a simple model ---- */

#define TENANTS        4
#define PSANDBOXES_DIR 3 /* of each tenant */
#define TICKETS        64

enum where { NOWHERE, WAITING, RUNNING };

struct item {
    enum where where;
    int tenant, sandbox_dir;
    bool background;
};

struct world {
    struct admission *a;
    struct item items[TICKETS];
    /* How many of [other] went since [tenant] had its turn, or could not have gone. */
    unsigned passed[TENANTS][TENANTS];
};

/* The same every time. */
static unsigned chance(void)
{
    static uint32_t state = 20260728;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static const char *const tenants[TENANTS] = {"a", "b", "c", "d"};
static const char *const conversations[TENANTS][PSANDBOXES_DIR] = {
    {"a0", "a1", "a2"}, {"b0", "b1", "b2"}, {"c0", "c1", "c2"}, {"d0", "d1", "d2"}};

static size_t count(const struct world *w, enum where where, int tenant, int sandbox_dir)
{
    size_t n = 0;
    for (size_t i = 0; i < TICKETS; i++) {
        const struct item *k = &w->items[i];
        n += k->where == where && (tenant < 0 || k->tenant == tenant) &&
             (sandbox_dir < 0 || k->sandbox_dir == sandbox_dir);
    }
    return n;
}

static bool could_go(const struct world *w, const struct item *k)
{
    return count(w, RUNNING, k->tenant, -1) < limits.tenant &&
           share_allows(count(w, RUNNING, k->tenant, -1), count(w, RUNNING, -1, -1),
                        limits.server) &&
           count(w, RUNNING, k->tenant, k->sandbox_dir) < limits.conversation;
}

static void check_limits(const struct world *w)
{
    assert_int_equal(admission_running(w->a), count(w, RUNNING, -1, -1));
    assert_int_equal(admission_waiting(w->a), count(w, WAITING, -1, -1));
    assert_true(count(w, RUNNING, -1, -1) <= limits.server);
    assert_true(count(w, WAITING, -1, -1) <= limits.queue);
    for (int t = 0; t < TENANTS; t++) {
        assert_true(count(w, RUNNING, t, -1) <= limits.tenant);
        for (int b = 0; b < PSANDBOXES_DIR; b++)
            assert_true(count(w, RUNNING, t, b) <= limits.conversation);
    }
}

static bool any_run_could_start(const struct world *w, int tenant)
{
    for (size_t i = 0; i < TICKETS; i++)
        if (w->items[i].where == WAITING && w->items[i].tenant == tenant &&
            could_go(w, &w->items[i]))
            return true;
    return false;
}

/* Hands out turns until there is none; no run that could go is left, and no tenant that could go is
 * passed twice by the same other. */
static void take_turns(struct world *w)
{
    for (struct item *k; (k = admission_next(w->a));) {
        assert_int_equal(k->where, WAITING);
        assert_true(could_go(w, k));
        for (int t = 0; t < TENANTS; t++) {
            if (t == k->tenant || !any_run_could_start(w, t))
                memset(w->passed[t], 0, sizeof w->passed[t]);
            else
                assert_true(++w->passed[t][k->tenant] <= 1);
        }
        k->where = RUNNING;
    }
    for (int t = 0; t < TENANTS; t++)
        assert_false(any_run_could_start(w, t));
}

static void step_ask(struct world *w, struct item *k)
{
    size_t position;
    int64_t retry;
    k->tenant = (int)(chance() % TENANTS);
    k->sandbox_dir = (int)(chance() % PSANDBOXES_DIR);
    k->background = chance() % 8 == 0;
    struct admission_want asked = {.tenant = tenants[k->tenant],
                                   .sandbox_dir = conversations[k->tenant][k->sandbox_dir],
                                   .background = k->background,
                                   .ticket = k};
    bool able = could_go(w, k);
    switch (admission_ask(w->a, &asked, &position, &retry)) {
    case ADMISSION_GO:
        assert_true(able);
        k->where = RUNNING;
        break;
    case ADMISSION_WAIT:
        assert_false(able);
        assert_true(position >= 1 && position <= limits.queue);
        k->where = WAITING;
        break;
    case ADMISSION_BUSY:
        assert_true(retry > 0);
        break;
    }
}

static void step(struct world *w, int64_t now)
{
    struct item *k = &w->items[chance() % TICKETS];
    switch (k->where) {
    case NOWHERE:
        step_ask(w, k);
        break;
    case WAITING:
        if (chance() % 4 == 0) {
            admission_forget(w->a, k);
            k->where = NOWHERE;
        }
        break;
    case RUNNING:
        admission_release(w->a, tenants[k->tenant], conversations[k->tenant][k->sandbox_dir],
                          k->background, now);
        k->where = NOWHERE;
        break;
    }
    take_turns(w);
    check_limits(w);
}

static void random_steps_break_no_rule_and_lose_no_run(void **state)
{
    struct world w = {.a = admission_new(&limits)};

    (void)state;
    for (int i = 0; i < 20000; i++)
        step(&w, i);
    /* A run that waits still gets its turn. */
    for (int rounds = 0; count(&w, WAITING, -1, -1) + count(&w, RUNNING, -1, -1) > 0; rounds++) {
        assert_true(rounds < TICKETS);
        for (size_t i = 0; i < TICKETS; i++)
            if (w.items[i].where == RUNNING) {
                struct item *k = &w.items[i];
                admission_release(w.a, tenants[k->tenant], conversations[k->tenant][k->sandbox_dir],
                                  k->background, 0);
                k->where = NOWHERE;
            }
        take_turns(&w);
    }
    admission_free(w.a);
}

/* Two tenants, one with a long line: its runs never come twice between the other's. */
static void turns_alternate_between_tenants(void **state)
{
    static const struct admission_limits one = {.server = 1, .queue = 1000};
    struct admission *a = admission_new(&one);
    char many[501], few[20];
    size_t position, since = 0, n_few = 0;
    int64_t retry;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        ask(a, "many", "m", many + i, &position, &retry);
    for (size_t i = 0; i < ARRAY_LEN(few); i++)
        assert_int_equal(ask(a, "few", "f", few + i, &position, &retry), ADMISSION_WAIT);
    const char *tenant = "many";
    for (size_t i = 0; n_few < ARRAY_LEN(few); i++) {
        admission_release(a, tenant, *tenant == 'm' ? "m" : "f", false, 1);
        const char *ticket = admission_next(a);
        assert_non_null(ticket);
        tenant = ticket >= few && ticket < few + sizeof few ? "few" : "many";
        since = *tenant == 'f' ? 0 : since + 1;
        n_few += *tenant == 'f';
        assert_true(since <= 1);
    }
    admission_free(a);
}

/* ---- contention ---- */

/* The run takes a place and gives it back. */
static void pass(struct admission *a, const char *tenant, int64_t now_ms)
{
    size_t position;
    int64_t retry_ms;
    struct admission_want w = want(tenant, "dir", a);

    w.now_ms = now_ms;
    assert_int_equal(admission_ask(a, &w, &position, &retry_ms), ADMISSION_GO);
    admission_release(a, tenant, "dir", false, now_ms);
}

static void a_single_tenant_meets_no_contention(void **state)
{
    struct admission *a = admission_new(&limits);

    (void)state;
    assert_false(admission_contended(a, "a", 0));
    for (int64_t now = 0; now < 5; now++)
        pass(a, "a", now);
    assert_false(admission_contended(a, "a", 5));
    assert_true(admission_contended(a, "b", 5));
    admission_free(a);
}

static void other_tenants_are_remembered_for_a_while(void **state)
{
    struct admission *a = admission_new(&limits);

    (void)state;
    pass(a, "b", 0);
    for (int64_t now = 1; now < ADMISSION_RECENT_MS; now += 100)
        pass(a, "a", now);
    assert_true(admission_contended(a, "a", ADMISSION_RECENT_MS - 1));
    assert_false(admission_contended(a, "a", ADMISSION_RECENT_MS));
    admission_free(a);
}

static void of_three_tenants_each_meets_contention(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct admission *a = admission_new(&limits);

    (void)state;
    for (int64_t now = 0; now < 9; now++)
        pass(a, names[now % 3], now);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_true(admission_contended(a, names[i], 9));
    admission_free(a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_single_tenant_meets_no_contention),
    cmocka_unit_test(other_tenants_are_remembered_for_a_while),
    cmocka_unit_test(of_three_tenants_each_meets_contention),
    cmocka_unit_test(places_then_a_line_then_busy),
    cmocka_unit_test(the_last_of_few_places_is_for_others_when_there_are_some),
    cmocka_unit_test(a_full_conversation_holds_up_only_itself),
    cmocka_unit_test(a_tenant_at_its_own_limit_holds_up_only_itself),
    cmocka_unit_test(one_tenant_alone_leaves_places),
    cmocka_unit_test(one_tenant_alone_leaves_room_in_the_line),
    cmocka_unit_test(the_retry_time_follows_the_pace),
    cmocka_unit_test(random_steps_break_no_rule_and_lose_no_run),
    cmocka_unit_test(turns_alternate_between_tenants),
};
UNIT_TESTS(tests)
