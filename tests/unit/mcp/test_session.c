#include "config.h"

#include "common/base/buf.h"
#include "common/mcp/client/elicitation.h"
#include "common/mcp/session/mailbox.h"
#include "common/mcp/session/session.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "tests/unit/mcp/mcp_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

static void expect_status(struct mcp_world *w, const char *message, int status)
{
    struct asked a = mcp_world_ask(w, message);

    assert_int_equal(a.answer.status, status);
    asked_clear(&a);
}

static void age(const struct mcp_world *w, const char *name, int seconds)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};

    assert_int_equal(utimensat(w->server.sessions_fd, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void initialize_gives_a_session_whose_revision_counts(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-06-18", "{\"sampling\":{}}");
    assert_int_equal(strlen(w->session), 64);
    w->origin.protocol_version = "2025-11-25"; /* not what was agreed on */
    expect_status(w, "[" PING "]", 400);
    w->origin.protocol_version = NULL;
    expect_status(w, "[" PING "]", 400); /* without a session this would be 2025-03-26 */
    expect_status(w, PING, 200);
}

static void a_session_of_the_revision_with_batches_may_use_them(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-03-26", "{}");
    expect_status(w, "[" PING "]", 200);
}

static void only_its_tenant_knows_a_session(void **state)
{
    struct mcp_world *w = *state;
    static const char *const ids[] = {"", "x", ".lock", "../x",
                                      "0123456789abcdef0123456789abcdef0123456789abcdef"
                                      "0123456789abcdef"};
    struct asked a;

    mcp_world_start(w, "2025-06-18", "{}");
    w->origin.tenant = "other";
    a = mcp_world_ask(w, PING);
    assert_int_equal(a.answer.status, 404);
    AUTO_FREE char *foreign = json_dumps(a.answer.body, 0);
    asked_clear(&a);
    w->origin.tenant = "me";
    for (size_t i = 1; i < ARRAY_LEN(ids); i++) {
        w->origin.session = ids[i];
        a = mcp_world_ask(w, PING);
        assert_int_equal(a.answer.status, 404);
        AUTO_FREE char *unknown = json_dumps(a.answer.body, 0);
        assert_string_equal(unknown, foreign);
        asked_clear(&a);
    }
    w->origin.session = ids[0]; /* an empty header is none */
    expect_status(w, PING, 200);
}

static void an_expired_session_is_unknown_and_swept(void **state)
{
    struct mcp_world *w = *state;

    mcp_world_start(w, "2025-06-18", "{}");
    age(w, w->session, 3000);
    expect_status(w, PING, 200); /* counts as used */
    mcp_sessions_sweep(&w->server);
    assert_int_equal(faccessat(w->server.sessions_fd, w->session, F_OK, 0), 0);
    age(w, w->session, 3700);
    expect_status(w, PING, 404);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(faccessat(w->server.sessions_fd, w->session, F_OK, 0), -1);
}

static bool deliver(struct mcp_world *w, const char *hex, int n)
{
    json_auto_t *id = json_sprintf("%s-1", hex);
    json_auto_t *response = json_integer(n);

    return mcp_mailbox_deliver(w->server.sessions_fd, w->session, id, response);
}

static size_t count_files(const struct mcp_world *w)
{
    DIR *dir = fdopendir(openat(w->server.sessions_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    size_t n = 0;

    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void responses_come_to_the_call_that_asked(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_mailbox m = MCP_MAILBOX_INIT;
    struct err e = ERR_INIT;

    mcp_world_start(w, "2025-06-18", "{}");
    assert_false(deliver(w, "0123456789abcdef", 1)); /* there is no such call */
    m.dir = w->server.sessions_fd;
    assert_works(mcp_mailbox_bind(&m, w->session, &e), e);
    assert_null(mcp_mailbox_take(&m));
    for (int i = 0; i < MCP_ROUND_REQUESTS_MAX; i++)
        assert_true(deliver(w, m.hex, i));
    mcp_sessions_sweep(&w->server);
    for (int i = 0; i < MCP_ROUND_REQUESTS_MAX; i++) {
        json_auto_t *response = mcp_mailbox_take(&m);
        assert_int_equal(json_integer_value(response), i);
    }
    assert_null(mcp_mailbox_take(&m));
    assert_int_equal(count_files(w), 2); /* the session and the FIFO */
    int n = 0;
    while (deliver(w, m.hex, n)) /* none is taken */
        assert_in_range(++n, 1, 1000);
    mcp_mailbox_clear(&m);
    assert_int_equal(count_files(w), 1);
}

#define LARGE (4u * 1024 * 1024)

static bool deliver_large(struct mcp_world *w, const char *hex)
{
    AUTO_FREE char *text = malloc(LARGE + 1);
    json_auto_t *id = json_sprintf("%s-1", hex);

    memset(text, 'x', LARGE);
    text[LARGE] = '\0';
    json_auto_t *response = json_string(text);
    return mcp_mailbox_deliver(w->server.sessions_fd, w->session, id, response);
}

static void large_responses_that_nobody_takes_are_bounded_in_bytes(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_mailbox m = MCP_MAILBOX_INIT;
    struct err e = ERR_INIT;
    size_t n = 0;

    mcp_world_start(w, "2025-06-18", "{}");
    m.dir = w->server.sessions_fd;
    assert_works(mcp_mailbox_bind(&m, w->session, &e), e);
    while (deliver_large(w, m.hex))
        assert_in_range(++n * LARGE, 1, 32u * 1024 * 1024);
    assert_in_range(n, 2, 7); /* others find room */
    assert_int_equal(count_files(w), n + 2);
    assert_true(deliver(w, m.hex, 1));
    json_decref(mcp_mailbox_take(&m));
    assert_true(deliver_large(w, m.hex)); /* in the place of the one that was taken */
    mcp_mailbox_clear(&m);
    assert_int_equal(count_files(w), 1);
}

static void what_a_call_left_that_was_killed_is_swept(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_mailbox m = MCP_MAILBOX_INIT;
    struct err e = ERR_INIT;

    mcp_world_start(w, "2025-06-18", "{}");
    m.dir = w->server.sessions_fd;
    assert_works(mcp_mailbox_bind(&m, w->session, &e), e);
    assert_true(deliver(w, m.hex, 1));
    age(w, m.response, 100);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(count_files(w), 3);
    auto_close_fd(&m.response_fd);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(count_files(w), 2); /* without the FIFO */
    DIR *dir = fdopendir(openat(w->server.sessions_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".a"))
            age(w, entry->d_name, 100);
    closedir(dir);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(count_files(w), 1);
}

#define NAMES(value)                                                                               \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"prompts/get\",\"params\":{\"name\":\"plain\","     \
    "\"arguments\":{\"topic\":\"" value "\"}}}"
#define COMPLETES                                                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"completion/complete\",\"params\":{"                \
    "\"ref\":{\"type\":\"ref/resource\",\"uri\":\"test://{x}\"},"                                  \
    "\"argument\":{\"name\":\"topic\",\"value\":\"b\"}}}"

static void expect_offered(struct mcp_world *w, const char *values)
{
    struct asked a = mcp_world_ask(w, COMPLETES);

    assert_contains(a.text, values);
    asked_clear(&a);
}

static void a_session_is_offered_what_it_has_named(void **state)
{
    static const char *const asks[] = {NAMES("birds"), NAMES("fish"), NAMES("bees"),
                                       NAMES("birds")};
    struct mcp_world *w = *state;
    char text[512];

    mcp_world_start(w, "2025-06-18", "{}");
    expect_offered(w, "\"values\":[],");
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        struct asked a = mcp_world_ask(w, asks[i]);
        asked_clear(&a);
    }
    expect_offered(w, "\"values\":[\"birds\",\"bees\"],");
    for (int i = 0; i < MCP_NAMED_MAX; i++) { /* the oldest give way */
        snprintf(text, sizeof text, NAMES("b%d"), i);
        struct asked a = mcp_world_ask(w, text);
        asked_clear(&a);
    }
    snprintf(text, sizeof text, "\"total\":%d,", MCP_NAMED_MAX);
    expect_offered(w, "\"values\":[\"b0\",");
    expect_offered(w, text);
    mcp_world_start(w, "2025-06-18", "{}"); /* another one, of the same tenant */
    expect_offered(w, "\"values\":[],");
    w->origin.session = NULL;
    struct asked a = mcp_world_ask(w, NAMES("birds"));
    asked_clear(&a);
    expect_offered(w, "\"values\":[],");
}

/* Makes a session of the tenant, last used so long ago. */
static void start(struct mcp_world *w, const char *tenant, int age_s, char id[])
{
    struct err e = ERR_INIT;

    assert_int_equal(mcp_session_create(&w->server, tenant, MCP_2025_06_18, NULL, NULL, id, &e), 0);
    age(w, id, age_s);
}

static bool is_there(const struct mcp_world *w, const char *id)
{
    return faccessat(w->server.sessions_fd, id, F_OK, 0) == 0;
}

static void a_tenant_with_its_share_of_sessions_loses_its_own(void **state)
{
    struct mcp_world *w = *state;
    char many[9][MCP_SESSION_ID_LEN + 1], few[MCP_SESSION_ID_LEN + 1];
    struct err e = ERR_INIT;

    w->server.sessions_max = 10;
    start(w, "few", 3000, few);
    for (int i = 0; i < 8; i++)
        start(w, "many", i == 5 ? 2000 : 100, many[i]);
    assert_true(is_there(w, many[5]));
    start(w, "many", 0, many[8]); /* eight, and one is left: no more */
    for (int i = 0; i < 9; i++)
        assert_int_equal(is_there(w, many[i]), i != 5);
    assert_true(is_there(w, few));
    mcp_sessions_sweep(&w->server);
    assert_true(is_there(w, few));
    start(w, "few", 0, many[5]); /* the last one */
    assert_true(is_there(w, few));
    assert_int_equal(mcp_session_create(&w->server, "new", MCP_2025_06_18, NULL, NULL, many[0], &e),
                     -1);
    assert_int_equal(e.kind, ERR_BUSY);
    assert_contains(e.text, "SANDCGI_MAX_SESSIONS");
    assert_string_equal(many[0], "");
}

/* Plants sessions of the tenant of the session like, last used so long ago. */
static void plant(struct mcp_world *w, const char *like, char letter, int n, int age_s)
{
    char name[MCP_SESSION_ID_LEN + 1];

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%.16s%c%047d", like, letter, i);
        AUTO_FD int fd = openat(w->server.sessions_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        age(w, name, age_s);
    }
}

static size_t looks; /* at a file */

int __real_fstatat(int dir, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int dir, const char *name, struct stat *out, int flags);

int __wrap_fstatat(int dir, const char *name, struct stat *out, int flags)
{
    looks++;
    return __real_fstatat(dir, name, out, flags);
}

#define OLD  780
#define USED 20
#define NEW  30

static void among_many_sessions_few_are_looked_at_and_used_ones_stay(void **state)
{
    struct mcp_world *w = *state;
    char first[MCP_SESSION_ID_LEN + 1], id[MCP_SESSION_ID_LEN + 1], used[MCP_SESSION_ID_LEN + 1];

    w->server.sessions_max = 1000; /* a share of 800 */
    start(w, "many", 3000, first);
    plant(w, first, 'a', OLD - 1, 3000);
    plant(w, first, 'b', USED, 10);
    looks = 0;
    for (int i = 0; i < NEW; i++)
        start(w, "many", 0, id);
    assert_true(looks > 0 && looks <= NEW * 64);
    assert_int_equal(count_files(w), OLD + USED);
    /* More are looked at than were used or made lately. */
    for (int i = 0; i < USED; i++) {
        snprintf(used, sizeof used, "%.16sb%047d", first, i);
        assert_true(is_there(w, used));
    }
}

static void without_room_for_a_session_a_client_is_served(void **state)
{
    struct mcp_world *w = *state;
    char id[MCP_SESSION_ID_LEN + 1];

    w->server.sessions_max = 1;
    start(w, "other", 0, id);
    struct asked a = mcp_world_ask(
        w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
           "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
           "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}");
    assert_int_equal(a.answer.status, 200);
    assert_string_equal(a.answer.session, "");
    asked_clear(&a);
}

static void the_sweep_leaves_streams_that_are_being_written(void **state)
{
    struct mcp_world *w = *state;
    struct err e = ERR_INIT;
    struct mcp_stream *s = mcp_stream_new(w->server.sessions_fd, "ann", "x", &e);
    char id[MCP_EVENT_ID_MAX], file[64];

    assert_non_null(s);
    mcp_stream_first_id(s, id);
    snprintf(file, sizeof file, "%.32s" MCP_STREAM_SUFFIX, id);
    age(w, file, 2 * MCP_STREAM_KEPT_S);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(faccessat(w->server.sessions_fd, file, F_OK, 0), 0);
    mcp_stream_end(s);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(faccessat(w->server.sessions_fd, file, F_OK, 0), 0);
    age(w, file, 2 * MCP_STREAM_KEPT_S);
    mcp_sessions_sweep(&w->server);
    assert_int_equal(faccessat(w->server.sessions_fd, file, F_OK, 0), -1);
}

static void delete_ends_a_session_for_good(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_answer answer;

    mcp_world_start(w, "2025-11-25", "{}");
    w->origin.tenant = "other";
    mcp_session_delete(&w->server, &w->origin, &answer);
    assert_int_equal(answer.status, 404);
    json_decref(answer.body);
    w->origin.tenant = "me";
    mcp_session_delete(&w->server, &w->origin, &answer);
    assert_int_equal(answer.status, 204);
    assert_null(answer.body);
    AUTO_FREE char *events = json_dumps(w->events, JSON_COMPACT);
    assert_contains(events, "\"kind\":\"session\"");
    assert_contains(events, w->session);
    mcp_session_delete(&w->server, &w->origin, &answer);
    assert_int_equal(answer.status, 404);
    json_decref(answer.body);
    expect_status(w, PING, 404);
    w->origin.session = NULL;
    mcp_session_delete(&w->server, &w->origin, &answer);
    assert_int_equal(answer.status, 400);
    json_decref(answer.body);
    w->origin.protocol_version = "2026-07-28";
    mcp_session_delete(&w->server, &w->origin, &answer);
    assert_int_equal(answer.status, 405);
    json_decref(answer.body);
}

static void subscriptions_are_kept_and_bounded(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;

    mcp_world_start(w, "2025-06-18", "{}");
    for (int i = 0; i < MCP_SUBSCRIPTIONS_MAX + 1; i++) {
        char uri[64];
        snprintf(uri, sizeof uri, "{\"uri\":\"test://%d\"}", i);
        if (i < MCP_SUBSCRIPTIONS_MAX)
            mcp_expect_empty(w, "resources/subscribe", uri);
        else
            mcp_expect(w, "resources/subscribe", uri, "-32602");
    }
    mcp_expect_empty(w, "resources/unsubscribe", "{\"uri\":\"test://7\"}");
    mcp_expect(w, "resources/subscribe", "{\"uri\":\"else://7\"}", "-32002");
    assert_works(mcp_session_load(&w->server, w->session, "me", &s, &e), e);
    assert_int_equal(json_array_size(json_object_get(s.record, "subscriptions")),
                     MCP_SUBSCRIPTIONS_MAX - 1);
    mcp_session_clear(&s);
}

static void without_a_session_there_is_no_subscription(void **state)
{
    mcp_expect(*state, "resources/subscribe", "{\"uri\":\"test://a\"}", "-32600");
}

static void a_log_level_is_checked_and_remembered(void **state)
{
    struct mcp_world *w = *state;
    struct mcp_session s = {.record = NULL};
    struct err e = ERR_INIT;

    mcp_world_start(w, "2025-06-18", "{}");
    mcp_expect(w, "logging/setLevel", "{\"level\":\"loud\"}", "-32602");
    mcp_expect_empty(w, "logging/setLevel", "{\"level\":\"info\"}");
    assert_works(mcp_session_load(&w->server, w->session, "me", &s, &e), e);
    assert_string_equal(json_get_string(s.record, "logLevel"), "info");
    mcp_session_clear(&s);
}

static void a_client_that_says_too_much_is_served_without_a_session(void **state)
{
    struct mcp_world *w = *state;
    AUTO_FREE char *big = calloc(1, MCP_SESSION_RECORD_MAX + 1);
    json_auto_t *message = NULL;
    struct mcp_answer answer;

    memset(big, 'x', MCP_SESSION_RECORD_MAX);
    message = json_pack("{s:s, s:i, s:s, s:{s:s, s:{s:s}}}", "jsonrpc", "2.0", "id", 1, "method",
                        "initialize", "params", "protocolVersion", "2025-06-18", "capabilities",
                        "x", big);
    mcp_handle(&w->server, &w->origin, message, &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.session, "");
    json_decref(answer.body);
}

static void deep_capabilities_make_a_session_that_can_be_read_again(void **state)
{
    struct mcp_world *w = *state;
    AUTO_BUF struct buf deep = BUF_INIT(1024);

    for (int i = 0; i < 60; i++)
        buf_add_str(&deep, "{\"x\":");
    buf_add_str(&deep, "{}");
    for (int i = 0; i < 60; i++)
        buf_add_str(&deep, "}");
    mcp_world_start(w, "2025-06-18", buf_str(&deep));
    expect_status(w, PING, 200);
}

static const struct CMUnitTest tests[] = {
    MCP_TEST(initialize_gives_a_session_whose_revision_counts),
    MCP_TEST(a_session_of_the_revision_with_batches_may_use_them),
    MCP_TEST(only_its_tenant_knows_a_session),
    MCP_TEST(an_expired_session_is_unknown_and_swept),
    MCP_TEST(responses_come_to_the_call_that_asked),
    MCP_TEST(large_responses_that_nobody_takes_are_bounded_in_bytes),
    MCP_TEST(what_a_call_left_that_was_killed_is_swept),
    MCP_TEST(a_session_is_offered_what_it_has_named),
    MCP_TEST(a_tenant_with_its_share_of_sessions_loses_its_own),
    MCP_TEST(among_many_sessions_few_are_looked_at_and_used_ones_stay),
    MCP_TEST(without_room_for_a_session_a_client_is_served),
    MCP_TEST(the_sweep_leaves_streams_that_are_being_written),
    MCP_TEST(delete_ends_a_session_for_good),
    MCP_TEST(subscriptions_are_kept_and_bounded),
    MCP_TEST(without_a_session_there_is_no_subscription),
    MCP_TEST(a_log_level_is_checked_and_remembered),
    MCP_TEST(deep_capabilities_make_a_session_that_can_be_read_again),
    MCP_TEST(a_client_that_says_too_much_is_served_without_a_session),
};
UNIT_TESTS(tests)
