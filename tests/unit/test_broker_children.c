/* The books of who runs what, and handing a connection over. */
#include "config.h"

#include "common/broker/children.h"
#include "common/broker/wire.h"
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
    child_set_owner(c, "t", "conversation");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stay_where_they_are),
        cmocka_unit_test(a_run_is_found_by_its_own_tenant_only),
        cmocka_unit_test(a_connection_is_handed_over_with_its_head),
    };
    return RUN_TESTS(tests);
}
