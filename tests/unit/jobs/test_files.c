/* The broker's operations on files: storing, opening, listing, names. The far end of the connection
 * is this test. */
#include "config.h"

#include "common/base/mem.h"
#include "common/jobs/job.h"
#include "common/protocol/client_files.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"
#include "tests/unit/jobs/job_rooms.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include <sys/socket.h>

/* One request through job_main; the reply's result, or NULL with its error. New reference. */
static json_t *request(struct fixture *f, json_t *take_message, int pass_fd, struct err *e)
{
    struct broker_config config = {.limits = {.file_max = 1000}};
    struct children *children = children_new();
    const struct job_world world = {.config = &config, .root = &f->root, .children = children};
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    assert_int_equal(wire_send(ours, take_message, pass_fd, e), 0);
    json_decref(take_message);
    AUTO_FD int passed = -1;
    json_auto_t *head = wire_recv(theirs, &passed, deadline_in_ms(5000), e);
    assert_non_null(head);
    struct job_rooms rooms;
    job_rooms_open(&rooms, &f->root);
    job_rooms_run(&rooms, &world,
                  (struct job_call){.head = head, .fd = theirs, .passed_fd = passed});
    job_rooms_close(&rooms);
    children_free(children);
    json_auto_t *reply = wire_recv(ours, NULL, deadline_in_ms(5000), e);
    assert_non_null(reply);
    const json_t *error = json_object_get(reply, "error");
    if (error)
        wire_error_take(error, e);
    json_t *result = json_object_get(reply, "result");
    return json_incref(result); /* outlives the reply */
}

static void put(struct fixture *f, const char *tenant, const char *conversation, const char *name)
{
    AUTO_FD int content = fixture_memfd("abc");
    json_auto_t *result = request(f,
                                  json_pack("{s:s, s:s, s:s, s:s, s:i}", "op", "put", "tenant",
                                            tenant, "conversationId", conversation, "name", name,
                                            "size", 3),
                                  content, &f->e);

    assert_non_null(result);
}

static json_t *list(struct fixture *f, const char *tenant, size_t max, const json_t *after)
{
    json_t *message = json_pack("{s:s, s:s, s:i, s:[s, s, s, s]}", "op", "list", "tenant", tenant,
                                "max", (int)max, "conversations", "one", "two", "talk", "not yet");

    if (after)
        json_object_set_new(message, "after", json_deep_copy(after));
    return request(f, message, -1, &f->e);
}

static json_t *names(struct fixture *f, const char *tenant, const char *conversation,
                     const char *prefix, int max)
{
    return request(f,
                   json_pack("{s:s, s:s, s:s, s:s, s:i}", "op", "names", "tenant", tenant,
                             "conversationId", conversation, "prefix", prefix, "max", max),
                   -1, &f->e);
}

/* Reads every page of the given size; "conversation/name " of all. */
static void read_all(struct fixture *f, const char *tenant, size_t max, struct buf *out)
{
    json_auto_t *after = NULL;
    size_t i;
    json_t *file;

    for (int pages = 0;; pages++) {
        json_auto_t *page = list(f, tenant, max, after);
        assert_non_null(page);
        assert_true(pages < 100);
        assert_true(json_array_size(json_object_get(page, "files")) <= max);
        json_array_foreach(json_object_get(page, "files"), i, file) buf_addf(
            out, "%s/%s ", json_get_string(file, "conversationId"), json_get_string(file, "name"));
        json_decref(after);
        after = json_incref(json_object_get(page, "next")); /* outlives its page */
        if (!after)
            return;
    }
}

/* Any operation on the sandbox "t", "one"; more is what it asks for besides, as JSON. */
static json_t *ask(struct fixture *f, const char *op, const char *more)
{
    json_t *message = json_loads(more, 0, NULL);

    assert_non_null(message);
    json_object_update_missing_new(
        message, json_pack("{s:s, s:s, s:s}", "op", op, "tenant", "t", "conversationId", "one"));
    return request(f, message, -1, &f->e);
}

static void refuses(struct fixture *f, const char *op, const char *more, enum err_kind kind,
                    const char *says)
{
    json_auto_t *result = ask(f, op, more);

    if (result)
        fail_msg("not refused: %s %s", op, more);
    if (f->e.kind != kind || !strstr(f->e.text, says))
        fail_msg("%s %s: %s", op, more, f->e.text);
}

static void a_folder_is_told_row_by_row_with_places_in_between(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    put(f, "t", "one", "a/b");
    assert_int_equal(sandbox_find(&f->root, "t", "one", &sb, &f->e), 0);
    assert_int_equal(symlinkat("a", sb.fd, "link"), 0);
    assert_int_equal(mknodat(sb.fd, "bad\xff", S_IFREG | 0644, 0), 0);
    static const struct {
        const char *name, *type;
        json_int_t size;
    } want[] = {{"a", "folder", -1},
                {"a/b", "file", 3},
                {"bad\xef\xbf\xbd", "file", 0},
                {"link", "link", -1}};
    AUTO_FREE char *more = mem_strdup("{\"folder\":\"\",\"recursive\":true,\"max\":1}");
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        json_auto_t *page = ask(f, "list_folder", more);
        const json_t *row = json_array_get(json_object_get(page, "files"), 0);
        assert_string_equal(json_get_string(row, "name"), want[i].name);
        assert_string_equal(json_get_string(row, "type"), want[i].type);
        assert_int_equal(json_get_integer(row, "size", -1), want[i].size);
        assert_int_equal(json_get_string(row, "url") != NULL, want[i].size >= 0);
        free(more);
        const char *next = json_get_string(page, "next");
        assert_int_equal(next != NULL, i + 1 < ARRAY_LEN(want));
        more = mem_printf("{\"folder\":\"\",\"recursive\":true,\"max\":1,\"after\":\"%s\"}",
                          next ? next : "");
    }
}

static void a_pattern_or_prefix_that_begins_with_a_dot_finds_what_does(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *more;
        size_t n;
    } cases[] = {
        {"{\"folder\":\"\",\"max\":9}", 1},
        {"{\"folder\":\"\",\"max\":9,\"hidden\":true}", 2},
        {"{\"folder\":\"\",\"max\":9,\"glob\":\"*env\"}", 0},
        {"{\"folder\":\"\",\"max\":9,\"glob\":\".*\"}", 1},
    };

    put(f, "t", "one", ".env");
    put(f, "t", "one", "a");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *page = ask(f, "list_folder", cases[i].more);
        assert_int_equal(json_array_size(json_object_get(page, "files")), cases[i].n);
    }
    json_auto_t *all = names(f, "t", "one", "", 9), *dotted = names(f, "t", "one", ".", 9);
    assert_string_equal(json_string_value(json_array_get(all, 0)), "a");
    assert_string_equal(json_string_value(json_array_get(dotted, 0)), ".env");
}

static void listings_deletions_and_moves_check_what_they_are_given(void **state)
{
    struct fixture *f = *state;

    put(f, "t", "one", "a");
    refuses(f, "list_folder", "{\"max\":1}", ERR_INVALID, "folder");
    refuses(f, "list_folder", "{\"folder\":\"..\",\"max\":1}", ERR_INVALID, "folder");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1001}", ERR_INVALID, "max");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1,\"glob\":\"[\"}", ERR_INVALID, "glob");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1,\"after\":\"Li4=\"}", ERR_INVALID,
            "cursor");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1,\"after\":\"YQBi\"}", ERR_INVALID,
            "cursor");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1,\"after\":\"x\"}", ERR_INVALID, "cursor");
    refuses(f, "list_folder", "{\"folder\":\"\",\"max\":1,\"conversationId\":\"two\"}",
            ERR_NOT_FOUND, "no such");
    refuses(f, "delete", "{\"name\":\"../a\"}", ERR_INVALID, "filename");
    refuses(f, "delete", "{\"name\":\"b\"}", ERR_NOT_FOUND, "no such");
    refuses(f, "move", "{\"from\":\"/a\",\"to\":\"b\"}", ERR_INVALID, "from");
    refuses(f, "move", "{\"from\":\"a\",\"to\":\"b/..\"}", ERR_INVALID, "to");
    refuses(f, "move", "{\"from\":\"a\",\"to\":\"b\",\"tenant\":\"other\"}", ERR_NOT_FOUND,
            "no such");
}

static void a_file_is_moved_and_deleted(void **state)
{
    struct fixture *f = *state;

    put(f, "t", "one", "a");
    json_auto_t *moved = ask(f, "move", "{\"from\":\"a\",\"to\":\"b/c\"}");
    assert_string_equal(json_get_string(moved, "name"), "b/c");
    assert_int_equal(json_get_integer(moved, "size", 0), 3);
    refuses(f, "delete", "{\"name\":\"b\"}", ERR_INVALID, "recursive");
    json_auto_t *gone = ask(f, "delete", "{\"name\":\"b\",\"recursive\":true}");
    assert_int_equal(json_get_integer(gone, "deleted", 0), 2);
}

static void every_page_size_tells_the_same_files(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf all = BUF_INIT(10000);

    put(f, "t", "one", "a");
    put(f, "t", "one", "b/c.csv");
    put(f, "t", "one", "z");
    put(f, "t", "two", "a");
    put(f, "t", "two", "b");
    put(f, "t", "not named", "unseen");
    put(f, "other", "one", "secret");
    read_all(f, "t", 100, &all);
    assert_int_equal(all.len, strlen("one/a one/b/c.csv one/z two/a two/b "));
    assert_non_null(strstr(buf_str(&all), "one/a one/b/c.csv one/z "));
    assert_null(strstr(buf_str(&all), "secret"));
    for (size_t max = 1; max < 8; max++) {
        AUTO_BUF struct buf paged = BUF_INIT(10000);
        read_all(f, "t", max, &paged);
        assert_string_equal(buf_str(&paged), buf_str(&all));
    }
}

static void a_file_is_told_with_its_size_and_time(void **state)
{
    struct fixture *f = *state;

    put(f, "t", "one", "a");
    json_auto_t *page = list(f, "t", 10, NULL);
    const json_t *file = json_array_get(json_object_get(page, "files"), 0);
    assert_int_equal(json_get_integer(file, "size", 0), 3);
    assert_true(json_get_integer(file, "modified", 0) > 1600000000);
    assert_null(json_object_get(page, "next"));
}

static void names_that_cannot_be_asked_for_are_passed_over(void **state)
{
    struct fixture *f = *state;
    AUTO_BUF struct buf all = BUF_INIT(10000);

    put(f, "default", "talk", "m");
    fixture_plant(f, "bad\xff", "x");
    fixture_plant(f, "%2e%2e", "x");
    assert_int_equal(symlinkat("/etc/passwd", f->sb.fd, "link"), 0);
    read_all(f, "default", 1, &all);
    assert_string_equal(buf_str(&all), "talk/m ");
}

static void a_place_that_is_none_is_refused_and_a_foreign_one_shows_nothing_foreign(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"createdAt\":1,\"sandbox\":\"../../etc\",\"name\":\"\"}",
        "{\"createdAt\":\"1\",\"sandbox\":\"%s\",\"name\":\"\"}",
        "{\"createdAt\":1.5,\"sandbox\":\"\",\"name\":\"\"}",
    };

    put(f, "t", "one", "a");
    put(f, "other", "one", "secret");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        json_auto_t *after = json_loads(bad[i], 0, NULL);
        json_auto_t *page = list(f, "t", 10, after);
        assert_null(page);
        assert_int_equal(f->e.kind, ERR_INVALID);
    }
    AUTO_SANDBOX struct sandbox other = SANDBOX_INIT;
    assert_int_equal(sandbox_find(&f->root, "other", "one", &other, &f->e), 0);
    json_auto_t *after = json_pack("{s:I, s:s, s:s}", "createdAt", (json_int_t)INT64_MAX, "sandbox",
                                   other.name, "name", "");
    json_auto_t *page = list(f, "t", 10, after);
    assert_int_equal(json_array_size(json_object_get(page, "files")), 1);
    assert_string_equal(json_get_string(json_array_get(json_object_get(page, "files"), 0), "name"),
                        "a");
}

static void pages_of_no_or_too_many_files_are_refused(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, BROKER_LIST_MAX + 1};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        json_auto_t *page = list(f, "t", sizes[i], NULL);
        assert_null(page);
        assert_int_equal(f->e.kind, ERR_INVALID);
    }
}

static void names_are_found_by_how_they_begin(void **state)
{
    struct fixture *f = *state;

    put(f, "t", "sales 2026", "data/may.csv");
    put(f, "t", "sales 2026", "data/june.csv");
    put(f, "t", "sales 2026", "readme");
    put(f, "t", "weather", "x");
    put(f, "other", "sales of others", "x");
    json_auto_t *files = names(f, "t", "sales 2026", "data/", 10);
    assert_int_equal(json_array_size(files), 2);
    assert_string_equal(json_string_value(json_array_get(files, 0)), "data/june.csv");
    json_auto_t *one = names(f, "t", "sales 2026", "", 1);
    assert_int_equal(json_array_size(one), 1);
    json_auto_t *unknown = names(f, "t", "sales of others", "", 10);
    assert_null(unknown);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
}

static void opening_makes_no_sandbox(void **state)
{
    struct fixture *f = *state;
    int before = fixture_count(AT_FDCWD, f->path);

    json_auto_t *result = request(f,
                                  json_pack("{s:s, s:s, s:s, s:s}", "op", "open", "tenant", "t",
                                            "conversationId", "guess", "name", "x"),
                                  -1, &f->e);
    assert_null(result);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    assert_int_equal(fixture_count(AT_FDCWD, f->path), before);
}

/* When the sandbox of "t", "one" was used, as the record has it; first it is made to be long ago.
 */
static int64_t used_by(struct fixture *f, const char *op, const char *more)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};

    assert_int_equal(sandbox_find(&f->root, "t", "one", &sb, &f->e), 0);
    AUTO_FREE char *record = mem_printf(STATE_DIR "/%s.json", sb.name);
    assert_int_equal(utimensat(f->root.fd, record, old, 0), 0);
    assert_int_equal(state_last_used(&f->root, sb.name), 1000000);
    json_auto_t *result = ask(f, op, more);
    assert_non_null(result);
    return state_last_used(&f->root, sb.name);
}

static void reading_or_listing_files_uses_the_sandbox(void **state)
{
    struct fixture *f = *state;

    put(f, "t", "one", "a");
    assert_true(used_by(f, "open", "{\"name\": \"a\"}") > 1000000);
    assert_true(used_by(f, "list_folder", "{\"folder\": \"\", \"max\": 1}") > 1000000);
}

static void a_sandbox_that_is_gone_is_passed_over(void **state)
{
    struct fixture *f = *state;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_BUF struct buf all = BUF_INIT(10000);

    put(f, "t", "one", "a");
    put(f, "t", "two", "b");
    assert_int_equal(sandbox_find(&f->root, "t", "one", &sb, &f->e), 0);
    assert_int_equal(unlinkat(sb.fd, "a", 0), 0);
    assert_int_equal(unlinkat(f->root.fd, sb.name, AT_REMOVEDIR), 0);
    read_all(f, "t", 1, &all);
    assert_string_equal(buf_str(&all), "two/b ");
}

static void a_job_carries_out_every_operation_that_is_not_the_main_processs(void **state)
{
    struct fixture *f = *state;

    for (enum broker_op op = OP_UNKNOWN + 1; op < OP_COUNT; op++) {
        if (op_row(op)->by == OP_BY_MAIN || op == OP_SESSION /* which begins a new one */ ||
            op == OP_STATUS || op == OP_READY) /* which want the whole books */
            continue;
        f->e = ERR_INIT;
        json_auto_t *result = ask(f, op_name(op), "{}");
        if (!result && strstr(f->e.text, "no such operation"))
            fail_msg("%s: %s", op_name(op), f->e.text);
    }
    refuses(f, "no_such_thing", "{}", ERR_INVALID, "no such operation");
    refuses(f, op_name(OP_RUN), "{}", ERR_INVALID, "no such operation");
}

/* What a job answers whose caller has gone; the conversation is "one" of "t". */
static void expect_given_up(struct fixture *f, json_t *(*carry_out)(struct job *job, struct err *e),
                            const char *more, int in_fd)
{
    struct broker_config config = {.limits = {.upload_max = 1 << 20}};
    const struct job_world world = {.config = &config, .root = &f->root};
    json_auto_t *request = json_loads(more, 0, NULL);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    close(pair[0]);
    AUTO_FD int theirs = pair[1];
    json_object_update_missing_new(request,
                                   json_pack("{s:s, s:s}", "tenant", "t", "conversationId", "one"));
    struct job job = {
        .world = &world, .request = request, .caller_fd = theirs, .in_fd = in_fd, .out_fd = -1};
    f->e = ERR_INIT;
    assert_null(carry_out(&job, &f->e));
    assert_int_equal(f->e.kind, ERR_CANCELLED);
}

static void a_long_job_ends_when_its_caller_has_gone(void **state)
{
    struct fixture *f = *state;
    char name[32];

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "d/%d", i);
        put(f, "t", "one", name);
    }
    expect_given_up(f, job_list, "{\"max\":5,\"conversations\":[\"one\"]}", -1);
    expect_given_up(f, job_delete, "{\"name\":\"d\",\"recursive\":true}", -1);
    json_auto_t *left = ask(f, "list_folder", "{\"folder\":\"d\",\"max\":1000}");
    assert_true(json_array_size(json_object_get(left, "files")) > 100);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_folder_is_told_row_by_row_with_places_in_between),
    CASE(a_pattern_or_prefix_that_begins_with_a_dot_finds_what_does),
    CASE(listings_deletions_and_moves_check_what_they_are_given),
    CASE(a_file_is_moved_and_deleted),
    CASE(every_page_size_tells_the_same_files),
    CASE(a_file_is_told_with_its_size_and_time),
    CASE(names_that_cannot_be_asked_for_are_passed_over),
    CASE(a_place_that_is_none_is_refused_and_a_foreign_one_shows_nothing_foreign),
    CASE(pages_of_no_or_too_many_files_are_refused),
    CASE(names_are_found_by_how_they_begin),
    CASE(opening_makes_no_sandbox),
    CASE(reading_or_listing_files_uses_the_sandbox),
    CASE(a_sandbox_that_is_gone_is_passed_over),
    CASE(a_long_job_ends_when_its_caller_has_gone),
    CASE(a_job_carries_out_every_operation_that_is_not_the_main_processs),
};
UNIT_TESTS(tests)
