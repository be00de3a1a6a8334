#include "config.h"

#include "tests/unit/unit.h"

#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <sys/stat.h>

struct fixture {
    char folder[PATH_MAX];
    int dir;
    struct mcp_stream *stream;
    char first[MCP_EVENT_ID_MAX];
};

static int setup(void **state)
{
    static struct fixture f;
    struct err e = ERR_INIT;

    unit_make_folder(f.folder);
    f.dir = open(f.folder, O_RDONLY | O_DIRECTORY);
    f.stream = mcp_stream_new(f.dir, "ann", "s1", &e);
    assert_non_null(f.stream);
    mcp_stream_first_id(f.stream, f.first);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char name[64];

    mcp_stream_end(f->stream);
    snprintf(name, sizeof name, "%.32s" MCP_STREAM_SUFFIX, f->first);
    unlinkat(f->dir, name, 0);
    close(f->dir);
    rmdir(f->folder);
    return 0;
}

static void add(struct fixture *f, int n, char id[MCP_EVENT_ID_MAX])
{
    json_auto_t *message = json_pack("{s:i}", "n", n);
    struct err e = ERR_INIT;

    assert_works(mcp_stream_add(f->stream, message, id, &e), e);
}

static void assert_next(struct mcp_replay *r, int n, const char *wanted_id)
{
    json_t *message = NULL;
    char id[MCP_EVENT_ID_MAX];

    assert_int_equal(mcp_replay_next(r, &message, id), 1);
    assert_int_equal(json_get_integer(message, "n", -1), n);
    assert_string_equal(id, wanted_id);
    json_decref(message);
}

static void a_reader_gets_what_it_missed_and_then_what_comes(void **state)
{
    struct fixture *f = *state;
    char ids[3][MCP_EVENT_ID_MAX], id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;
    json_t *message;

    add(f, 1, ids[0]);
    add(f, 2, ids[1]);
    struct mcp_replay *r = mcp_replay_open(f->dir, "s1", ids[0], &e);
    assert_non_null(r);
    assert_true(mcp_replay_fd(r) >= 0);
    assert_next(r, 2, ids[1]);
    assert_int_equal(mcp_replay_next(r, &message, id), 0);
    assert_false(mcp_replay_is_over(r));
    add(f, 3, ids[2]);
    mcp_stream_end(TAKE_PTR(f->stream));
    assert_false(mcp_replay_is_over(r));
    assert_next(r, 3, ids[2]);
    assert_true(mcp_replay_is_over(r));
    assert_int_equal(mcp_replay_next(r, &message, id), -1);
    mcp_replay_free(r);
    r = mcp_replay_open(f->dir, "s1", f->first, &e); /* all of it, and again */
    assert_next(r, 1, ids[0]);
    mcp_replay_free(r);
}

static void a_stream_whose_writer_died_ends(void **state)
{
    struct fixture *f = *state;
    char id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;
    json_t *message;

    add(f, 1, id);
    struct mcp_replay *r = mcp_replay_open(f->dir, "s1", id, &e);
    assert_non_null(r);
    assert_int_equal(mcp_replay_next(r, &message, id), 0);
    close(*(int *)f->stream); /* its lock goes with the descriptor, as in a process that ends */
    *(int *)f->stream = -1;
    assert_true(mcp_replay_is_over(r));
    assert_int_equal(mcp_replay_next(r, &message, id), -1);
    mcp_replay_free(r);
}

static void hostile_ids_open_nothing(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"",
                                      "-",
                                      "1",
                                      "../../etc/passwd-0",
                                      "x-1",
                                      "0123456789abcdef0123456789abcdef",
                                      "0123456789abcdef0123456789abcdef-",
                                      "0123456789abcdef0123456789abcdef--1",
                                      "0123456789abcdef0123456789abcdef-1001",
                                      "0123456789ABCDEF0123456789ABCDEF-0",
                                      "0123456789abcdef0123456789abcdef-0 "};
    struct err e = ERR_INIT;
    char id[MCP_EVENT_ID_MAX];

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_null(mcp_replay_open(f->dir, "s1", bad[i], &e));
        assert_int_equal(e.kind, ERR_INVALID);
    }
    assert_null(
        mcp_replay_open(f->dir, "s1", "0123456789abcdef0123456789abcdef-0", &e)); /* unknown */
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    assert_null(mcp_replay_open(f->dir, "s2", f->first, &e)); /* another session's */
    assert_int_equal(e.kind, ERR_NOT_FOUND);
    snprintf(id, sizeof id, "%.32s-5", f->first); /* a number that has not been given out */
    assert_null(mcp_replay_open(f->dir, "s1", id, &e));
    assert_int_equal(e.kind, ERR_NOT_FOUND);
}

static void a_stream_is_bounded(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *text = calloc(1, MCP_STREAM_BYTES_MAX / 2 + 1);
    char id[MCP_EVENT_ID_MAX];
    struct err e;

    memset(text, 'x', MCP_STREAM_BYTES_MAX / 2);
    json_auto_t *big = json_pack("{s:i, s:s}", "id", 1, "result", text);
    json_auto_t *note = json_pack("{s:s}", "method", "x");
    json_auto_t *answer = json_pack("{s:i}", "id", 1);
    assert_works(mcp_stream_add(f->stream, big, id, &e), e);
    assert_fails(mcp_stream_add(f->stream, big, id, &e), ERR_LIMIT, e);
    assert_fails(mcp_stream_add(f->stream, note, id, &e), ERR_LIMIT, e);
    for (int i = 1; i < MCP_STREAM_MESSAGES_MAX; i++)
        assert_works(mcp_stream_add(f->stream, answer, id, &e), e);
    assert_fails(mcp_stream_add(f->stream, answer, id, &e), ERR_LIMIT, e);
    struct mcp_replay *r = mcp_replay_open(f->dir, "s1", id, &e);
    assert_non_null(r);
    mcp_replay_free(r);
}

static void what_is_told_on_the_way_leaves_room_for_the_answer(void **state)
{
    struct fixture *f = *state;
    json_auto_t *note = json_pack("{s:s}", "method", "x");
    json_auto_t *answer = json_pack("{s:i}", "id", 1);
    char id[MCP_EVENT_ID_MAX];
    struct err e;

    for (int i = 0; i < MCP_STREAM_NOTES_MAX; i++)
        add(f, i, id);
    assert_fails(mcp_stream_add(f->stream, note, id, &e), ERR_LIMIT, e);
    assert_works(mcp_stream_add(f->stream, answer, id, &e), e);
}

/* Another stream of a tenant, over and of that age; its file's name. */
static void make_old(struct fixture *f, const char *tenant, int64_t s, size_t bytes, char name[64])
{
    const struct timespec times[] = {{.tv_sec = s}, {.tv_sec = s}};
    char id[MCP_EVENT_ID_MAX];
    struct err e = ERR_INIT;
    struct mcp_stream *one = mcp_stream_new(f->dir, tenant, "s2", &e);

    assert_non_null(one);
    mcp_stream_first_id(one, id);
    mcp_stream_end(one);
    snprintf(name, 64, "%.32s" MCP_STREAM_SUFFIX, id);
    AUTO_FD int fd = openat(f->dir, name, O_WRONLY);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(futimens(fd, times), 0);
}

static bool is_there(const struct fixture *f, const char *name)
{
    return faccessat(f->dir, name, F_OK, 0) == 0;
}

static void a_tenants_oldest_streams_make_room_for_new_ones(void **state)
{
    struct fixture *f = *state;
    char names[12][64], foreign[64], own[64];

    snprintf(own, sizeof own, "%.32s" MCP_STREAM_SUFFIX, f->first);
    make_old(f, "bob", 1, MCP_STREAM_BYTES_MAX, foreign);
    for (int i = 0; i < 12; i++)
        make_old(f, "ann", 1000 + i, MCP_STREAM_BYTES_MAX, names[i]);
    /* Making the twelfth found eleven of 8 MB and kept seven, below 64 MB. */
    for (int i = 0; i < 12; i++)
        assert_int_equal(is_there(f, names[i]), i >= 4);
    assert_true(is_there(f, foreign));
    assert_true(is_there(f, own)); /* it is being written */
    for (int i = 0; i < 12; i++)
        unlinkat(f->dir, names[i], 0);
    unlinkat(f->dir, foreign, 0);
}

static void events_are_written_as_clients_parse_them(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT(1024);
    json_auto_t *message = json_pack("{s:s}", "a", "x\ny");

    (void)state;
    sse_add_priming(&out, "s-0", 500);
    sse_add_message(&out, "s-1", message);
    sse_add_message(&out, NULL, message);
    sse_add_comment(&out);
    assert_string_equal(buf_str(&out), "id: s-0\nretry: 500\ndata: \n\n"
                                       "id: s-1\nevent: message\ndata: {\"a\":\"x\\ny\"}\n\n"
                                       "event: message\ndata: {\"a\":\"x\\ny\"}\n\n: \n\n");
}

static const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    TEST(a_reader_gets_what_it_missed_and_then_what_comes),
    TEST(a_stream_whose_writer_died_ends),
    TEST(hostile_ids_open_nothing),
    TEST(a_stream_is_bounded),
    TEST(what_is_told_on_the_way_leaves_room_for_the_answer),
    TEST(a_tenants_oldest_streams_make_room_for_new_ones),
    TEST(events_are_written_as_clients_parse_them),
};
UNIT_TESTS(tests)
