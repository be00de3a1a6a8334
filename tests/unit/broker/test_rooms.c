/* Room for contents on their way, with a whole broker: it is free when its owner ends. */
#include "config.h"

#include "tests/unit/broker/broker_world.h"

#include "common/protocol/client_files.h"
#include "common/protocol/room.h"

#define MIB   UINT64_C(1048576)
#define TRIES 2000 /* of 10 ms */

static int setup(void **state)
{
    static struct broker_world w;
    bw_open(&w);
    w.config.limits.upload_max = 100 * MIB;
    w.config.limits.upload_ttl_ms = 900000;
    w.config.bounds.bytes = 10 * MIB;
    *state = &w;
    return 0;
}

/* A worker's socket for a new upload of the tenant's conversation; -1. */
static int hold(struct broker_world *w, const char *conversation, uint64_t bytes, struct err *e)
{
    *e = ERR_INIT;
    json_auto_t *made = broker_create_upload(bw_client(w, "t"), conversation, "f", 0, e);
    const char *url = json_get_string(made, "url"), *at = url ? strstr(url, "/uploads/") : NULL;
    assert_non_null(at);
    AUTO_FREE char *ticket = mem_strndup(at + strlen("/uploads/"), 32);
    return broker_hold_upload(&w->client, ticket, bytes, false, e);
}

/* The room that a process had which ended in any way. */
static int hold_soon(struct broker_world *w, const char *conversation, uint64_t bytes)
{
    struct err e;
    int fd = -1;

    for (int i = 0; i < TRIES && fd < 0; i++) {
        fd = hold(w, conversation, bytes, &e);
        if (fd < 0)
            poll(NULL, 0, 10);
    }
    return fd;
}

static void room_is_free_when_its_owner_ends(void **state)
{
    struct broker_world *w = *state;
    struct err e;

    bw_start_broker(w);
    AUTO_FD int first = hold(w, "one", 6 * MIB, &e);
    assert_true(first >= 0);
    assert_int_equal(hold(w, "one", 6 * MIB, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_contains(e.text, "6.0 MiB are on their way; 6.0 MiB more would pass the limit of 10.0");
    AUTO_FD int other = hold(w, "two", 6 * MIB, &e);
    assert_true(other >= 0);
    pid_t owner = fork();
    if (owner == 0) {
        pause();
        _exit(1);
    }
    auto_close_fd(&first);
    assert_int_equal(hold(w, "one", 6 * MIB, &e), -1);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    AUTO_FD int again = hold_soon(w, "one", 6 * MIB);
    assert_true(again >= 0);
    bw_close(w);
}

/* The owner of a socket cannot say that its room is another's, or say nonsense. */
static void what_an_owner_says_changes_its_own_room_alone(void **state)
{
    struct broker_world *w = *state;
    struct err e;

    bw_start_broker(w);
    AUTO_FD int mine = hold(w, "one", 6 * MIB, &e);
    json_t *lie = json_pack("{s:s, s:s, s:i, s:i}", "tenant", "t", "sandboxDir", "", "usedBytes", 0,
                            "bytes", 1);
    assert_int_equal(room_ask(mine, lie, &e), 0);
    AUTO_FD int beside = hold(w, "one", 9 * MIB, &e);
    assert_true(beside >= 0);
    assert_int_equal(room_keep(mine, 2 * MIB, 0, &e), -1);
    assert_contains(e.text, "9.0 MiB are on their way");
    assert_int_equal(send(mine, "\0\0\0\2{x", 6, MSG_NOSIGNAL), 6);
    e = ERR_INIT;
    assert_int_equal(room_keep(mine, 1, 0, &e), -1);
    assert_int_equal(e.kind, ERR_CANCELLED);
    bw_close(w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(room_is_free_when_its_owner_ends, setup),
    cmocka_unit_test_setup(what_an_owner_says_changes_its_own_room_alone, setup),
};
UNIT_TESTS_IN(tests, unit_ignore_sigpipe, NULL)
