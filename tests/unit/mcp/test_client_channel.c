/* What a call sees of its client, and says to it, in each era. */
#include "config.h"

#include "tests/unit/unit.h"

#include "common/rpc/json.h"
#include "tests/fakes/mcp_world.h"

#include <sys/socket.h>

#define CALL(name, meta)                                                                           \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name         \
    "\"" meta "}}"
#define TOKEN ",\"_meta\":{\"progressToken\":\"p\"}"

struct fixture {
    struct mcp_world w;
    int client; /* the other end of its connection */
};

static int setup(void **state)
{
    static struct fixture f;
    int ends[2];

    mcp_world_init(&f.w);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    f.w.origin.cancel_fd = ends[0];
    f.client = ends[1];
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    close(f->w.origin.cancel_fd);
    if (f->client >= 0)
        close(f->client);
    mcp_world_clear(&f->w);
    return 0;
}

static void leave(struct fixture *f)
{
    close(f->client);
    f->client = -1;
}

static void assert_sees(struct fixture *f, const char *message, const char *wanted)
{
    struct asked a = mcp_world_ask(&f->w, message);

    assert_contains(a.text, wanted);
    asked_clear(&a);
}

static void assert_modern_sees(struct fixture *f, const char *wanted)
{
    struct asked a = mcp_world_modern(&f->w, "tools/call", "watches", "\"name\":\"watches\",", "{}",
                                      "");

    assert_contains(a.text, wanted);
    asked_clear(&a);
}

static void a_modern_client_cancels_by_leaving(void **state)
{
    struct fixture *f = *state;

    assert_modern_sees(f, "cancel: there, leave: none");
    leave(f);
    assert_modern_sees(f, "cancel: gone, leave: none");
}

static void a_legacy_client_only_leaves(void **state)
{
    struct fixture *f = *state;

    assert_sees(f, CALL("watches", ""), "cancel: none, leave: there");
    leave(f);
    assert_sees(f, CALL("watches", ""), "cancel: none, leave: gone");
}

static void in_a_session_it_can_cancel_as_well(void **state)
{
    struct fixture *f = *state;

    mcp_world_start(&f->w, "2025-06-18", "{}");
    leave(f);
    assert_sees(f, CALL("watches", TOKEN), "cancel: there, leave: gone");
}

static void whose_answer_is_kept_can_come_back_for_it(void **state)
{
    struct fixture *f = *state;

    mcp_world_start(&f->w, "2025-11-25", "{}");
    leave(f);
    assert_sees(f, CALL("watches", ""), "cancel: there, leave: gone"); /* nothing keeps it */
    assert_sees(f, CALL("watches", TOKEN), "cancel: there, leave: none");
}

static void on_stdio_there_is_one_sign_for_both(void **state)
{
    struct fixture *f = *state;

    mcp_world_start_stdio(&f->w, "2025-06-18", "{}");
    leave(f);
    struct asked a = mcp_world_ask(&f->w, CALL("watches", ""));
    assert_int_equal(a.answer.status, 202); /* who cancels wants no answer */
    asked_clear(&a);
}

static void pieces_are_all_told_and_always_increase(void **state)
{
    struct fixture *f = *state;
    double last = 0;

    /* The oldest revision, too. */
    f->w.origin.protocol_version = "2024-11-05";
    assert_sees(f, CALL("produces", TOKEN), "just said");
    assert_int_equal(json_array_size(f->w.sent), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *params = json_object_get(json_array_get(f->w.sent, i), "params");
        double progress = json_number_value(json_object_get(params, "progress"));
        assert_true(progress > last);
        assert_string_equal(json_get_string(params, "message"), "a piece\n");
        assert_string_equal(json_get_string(params, "progressToken"), "p");
        last = progress;
    }
    assert_sees(f, CALL("produces", ""), "silent");
    assert_int_equal(json_array_size(f->w.sent), 3);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
    TEST(a_modern_client_cancels_by_leaving),  TEST(a_legacy_client_only_leaves),
    TEST(in_a_session_it_can_cancel_as_well),  TEST(whose_answer_is_kept_can_come_back_for_it),
    TEST(on_stdio_there_is_one_sign_for_both), TEST(pieces_are_all_told_and_always_increase),
};
UNIT_TESTS(tests)
