/* The books of who runs what, and handing a connection over. */
#include "config.h"

#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

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

static void a_connection_is_handed_over_with_its_head(void **state)
{
    struct children *list = children_new();
    struct child *c = children_add(list, CHILD_SUPERVISOR);
    struct err e = ERR_INIT;
    int fds = unit_count_fds();
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    AUTO_FD int theirs = pair[1];
    c->channel = pair[0];
    {
        AUTO_FD int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        AUTO_FD int came = -1;
        json_auto_t *head = json_pack("{s:s}", "op", "run");
        assert_works(child_hand(c, "claim", head, 12, null, &e), e);
        json_auto_t *message = wire_recv(theirs, &came, deadline_in_ms(2000), &e);
        assert_non_null(message);
        assert_string_equal(json_get_string(message, "do"), "claim");
        assert_int_equal(json_get_integer(message, "queueMs", 0), 12);
        assert_true(json_equal(json_object_get(message, "head"), head));
        assert_true(came >= 0);
        auto_close_fd(&theirs);
        assert_int_equal(child_hand(c, "claim", head, 12, null, &e), -1);
        assert_int_equal(child_tell(c, "preload", &e), -1);
    }
    children_remove(list, c);
    assert_int_equal(unit_count_fds(), fds);
    children_free(list);
}

/* Begins what may last until it is busy; how many began. */
static size_t begin_lasting(struct broker *b, const char *op, const char *tenant, const char *busy)
{
    json_auto_t *head = json_pack("{s:s, s:s}", "op", op, "tenant", tenant);
    struct err e = ERR_INIT;
    size_t n = 0;

    for (; job_limits_check(b, head, &e) == 0; n++)
        job_limits_note(b, children_add(b->children, CHILD_JOB), head);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_contains(e.text, busy);
    return n;
}

static void what_may_last_has_shares_of_tenant_and_server(void **state)
{
    static const struct {
        const char *op, *busy;
        size_t tenant;
    } kinds[] = {{"import_url", "being fetched", 4},
                 {"unpack", "being unpacked", 4},
                 {"delete_conversation", "being deleted", 6},
                 {"pack", "being downloaded", 8}};
    struct broker b = {.children = children_new()};
    json_auto_t *other = json_pack("{s:s, s:s}", "op", "list", "tenant", "ann");
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        assert_int_equal(begin_lasting(&b, kinds[i].op, "ann", "for you"), kinds[i].tenant);
        assert_true(begin_lasting(&b, kinds[i].op, "bob", kinds[i].busy) >= 4);
        begin_lasting(&b, kinds[i].op, "cid", kinds[i].busy);
        assert_int_equal(begin_lasting(&b, kinds[i].op, "dan", "on this server"), 0);
    }
    assert_works(job_limits_check(&b, other, &e), e);         /* what does not last may always */
    assert_true(children_count(b.children, NULL, NULL) < 64); /* the broker's door stays open */
    children_free(b.children);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_where_they_are),
        cmocka_unit_test(a_run_is_found_by_its_own_tenant_only),
        cmocka_unit_test(a_connection_is_handed_over_with_its_head),
        cmocka_unit_test(what_may_last_has_shares_of_tenant_and_server),
    };
    return RUN_TESTS(tests);
}
