/* What comes in from outside is bounded while it comes: uploads by ticket, fetched files, archives.
 * The disk and the fetching are this test's. */
#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/fetch/fetch.h"
#include "common/jobs/job.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/links/upload.h"
#include "common/sandbox/state/state.h"
#include "tests/unit/jobs/job_rooms.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include <sys/socket.h>
#include <sys/statvfs.h>

#define MIB     (UINT64_C(1) << 20)
#define RESERVE (100 * MIB)
#define PUBLIC  "https://example.org/data.csv"

static uint64_t disk_free;
static bool disk_is_ours; /* otherwise it is the real one */

int __real_fstatvfs(int fd, struct statvfs *out);
int __wrap_fstatvfs(int fd, struct statvfs *out);

int __wrap_fstatvfs(int fd, struct statvfs *out)
{
    if (!disk_is_ours)
        return __real_fstatvfs(fd, out);
    *out = (struct statvfs){.f_frsize = 1, .f_bavail = disk_free};
    return 0;
}

/* What the other server has, and what was asked of the fetch. */
static struct {
    const char *content;
    bool disk_fills; /* meanwhile */
    int calls;
    struct fetch_limits limits;
} fetched;

int fetch_in_process(const char *url, int fd, int caller_fd, const struct fetch_limits *limits,
                     struct err *e)
{
    (void)url;
    (void)caller_fd;
    fetched.calls++;
    fetched.limits = *limits;
    if (strlen(fetched.content) > limits->max_bytes)
        return err_set(e, ERR_LIMIT, "it is too large");
    if (limits->go_on(limits->ctx, e) < 0 ||
        fdio_write_all(fd, fetched.content, strlen(fetched.content), e) < 0)
        return -1;
    disk_free = fetched.disk_fills ? RESERVE : disk_free;
    return limits->go_on(limits->ctx, e);
}

static struct job_rooms rooms;

/* One request through job_main; the reply's result, or NULL with its error. New reference. out_fd:
 * what rides along; may be NULL. */
static json_t *request_with(struct fixture *f, uint64_t upload_max, json_t *take_message,
                            int *out_fd)
{
    struct broker_config config = {
        .limits = {.upload_max = upload_max, .upload_ttl_ms = 900000, .import = true}};
    const struct job_world world = {.config = &config, .root = &f->root};
    int pair[2];

    f->e = ERR_INIT;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    job_rooms_run(&rooms, &world,
                  (struct job_call){.head = take_message, .fd = theirs, .passed_fd = -1});
    json_decref(take_message);
    json_auto_t *reply = wire_recv(ours, out_fd, deadline_in_ms(5000), &f->e);
    assert_non_null(reply);
    const json_t *error = json_object_get(reply, "error");
    if (error)
        wire_error_take(error, &f->e);
    return json_incref(json_object_get(reply, "result")); /* outlives the reply */
}

static json_t *request(struct fixture *f, uint64_t upload_max, json_t *take_message)
{
    return request_with(f, upload_max, take_message, NULL);
}

static void assert_refused(struct fixture *f, uint64_t upload_max, json_t *take_message,
                           enum err_kind kind, const char *part)
{
    json_auto_t *result = request(f, upload_max, take_message);

    assert_null(result);
    if (f->e.kind != kind || !strstr(f->e.text, part))
        fail_msg("%s: %s", err_kind_name(f->e.kind), f->e.text);
}

static void assert_taken(struct fixture *f, uint64_t upload_max, json_t *take_message)
{
    json_auto_t *result = request(f, upload_max, take_message);

    if (!result)
        fail_msg("%s: %s", err_kind_name(f->e.kind), f->e.text);
}

/* ---- uploads by ticket ---- */

static void ticket_for(struct fixture *f, char id[TICKET_ID_LEN + 1])
{
    json_auto_t *made = request(f, MIB,
                                json_pack("{s:s, s:s, s:s, s:s}", "op", "create_upload", "tenant",
                                          "default", "conversationId", "talk", "name", "f"));
    const char *at = strstr(json_get_string(made, "url"), "/uploads/");

    assert_non_null(at);
    snprintf(id, TICKET_ID_LEN + 1, "%s", at + strlen("/uploads/"));
}

/* size -1: it is not told. */
static json_t *check_message(const char *id, int64_t size)
{
    json_t *message = json_pack("{s:s, s:s}", "op", "check_upload", "ticket", id);

    if (size >= 0)
        json_object_set_new(message, "size", json_integer(size));
    return message;
}

static void a_body_of_unknown_size_needs_room_as_it_comes(void **state)
{
    struct fixture *f = *state;
    char id[TICKET_ID_LEN + 1];

    ticket_for(f, id);
    f->root.bounds = (struct sandbox_bounds){.reserve = RESERVE, .bytes = 3 * MIB};
    disk_free = RESERVE + 10 * MIB;
    assert_taken(f, 20 * MIB, check_message(id, -1));
    assert_taken(f, 20 * MIB, check_message(id, MIB));
    assert_refused(f, 20 * MIB, check_message(id, 4 * MIB), ERR_LIMIT, "SANDBOX_QUOTA");
    disk_free = RESERVE;
    assert_refused(f, MIB, check_message(id, 0), ERR_LIMIT, "SANDBOX_DISK_RESERVE");
}

static json_t *import_message(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "op", "import_url", "tenant", "default",
                     "conversationId", "talk", "url", PUBLIC);
}

/* A worker's: -1 when it is refused. */
static int hold(struct fixture *f, int64_t size)
{
    json_auto_t *result = NULL;
    char id[TICKET_ID_LEN + 1];
    int fd = -1;

    ticket_for(f, id);
    json_t *message = check_message(id, size);
    json_object_set_new(message, "hold", json_true());
    result = request_with(f, 20 * MIB, message, &fd);
    assert_int_equal(result != NULL, fd >= 0);
    return fd;
}

static void of_two_bodies_that_fit_alone_one_is_refused(void **state)
{
    struct fixture *f = *state;

    disk_free = UINT64_MAX;
    f->root.bounds = (struct sandbox_bounds){.bytes = 10 * MIB};
    AUTO_FD int first = hold(f, 6 * MIB);
    assert_true(first >= 0);
    AUTO_FD int second = hold(f, 6 * MIB);
    assert_int_equal(second, -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_contains(f->e.text, "6.0 MiB are on their way; 6.0 MiB more would pass");
    AUTO_FD int third = hold(f, 4 * MIB);
    assert_true(third >= 0);
}

static void a_body_has_its_room_until_its_owner_ends(void **state)
{
    struct fixture *f = *state;

    f->root.bounds = (struct sandbox_bounds){.reserve = RESERVE};
    disk_free = RESERVE + 10 * MIB;
    int first = hold(f, 6 * MIB);
    assert_int_equal(hold(f, 6 * MIB), -1);
    assert_contains(f->e.text, "4.0 MiB can still be written");
    close(first); /* no message says so */
    AUTO_FD int again = hold(f, 6 * MIB);
    assert_true(again >= 0);
}

static void a_body_that_grows_meets_what_is_on_its_way(void **state)
{
    struct fixture *f = *state;

    disk_free = UINT64_MAX;
    f->root.bounds = (struct sandbox_bounds){.bytes = 10 * MIB};
    AUTO_FD int first = hold(f, 6 * MIB);
    AUTO_FD int grows = hold(f, -1);
    assert_true(first >= 0 && grows >= 0);
    json_t *steps[] = {json_pack("{s:I, s:I}", "bytes", (json_int_t)(4 * MIB), "there", 0ll),
                       json_pack("{s:I, s:I}", "bytes", (json_int_t)(5 * MIB), "there", 0ll)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_send(grows, steps[i], -1, &f->e), 0);
        job_rooms_settle(&rooms);
        json_auto_t *answer = wire_recv(grows, NULL, deadline_in_ms(5000), &f->e);
        assert_int_equal(json_object_get(answer, "error") != NULL, i == 1);
        json_decref(steps[i]);
    }
}

/* As nginx leaves it; all of it is a hole. */
static json_t *finish_message(struct fixture *f, const char *id, uint64_t size)
{
    mkdirat(f->root.fd, UPLOAD_NGINX_DIR, 0700);
    AUTO_FD int fd = openat(f->root.fd, UPLOAD_NGINX_DIR "/1", O_WRONLY | O_CREAT | O_CLOEXEC,
                            0600);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return json_pack("{s:s, s:s, s:s}", "op", "finish_upload", "ticket", id, "file", "1");
}

static void a_body_that_has_come_needs_no_room_a_second_time(void **state)
{
    struct fixture *f = *state;
    char id[TICKET_ID_LEN + 1];

    ticket_for(f, id);
    f->root.bounds = (struct sandbox_bounds){.reserve = RESERVE, .ttl_s = 3600};
    disk_free = RESERVE; /* it, or others meanwhile, took what there was */
    assert_refused(f, 50 * MIB, finish_message(f, id, 40 * MIB), ERR_LIMIT, "SANDBOX_DISK_RESERVE");
    assert_int_equal(fixture_count(f->root.fd, UPLOAD_NGINX_DIR), 0);
    disk_free = RESERVE + 10 * MIB;
    state_mark_expired(&f->root, f->sb.name);
    json_auto_t *done = request(f, 50 * MIB, finish_message(f, id, 40 * MIB));
    assert_int_equal(json_get_integer(done, "size", 0), 40 * MIB);
    assert_true(json_get_integer(done, "filesExpireAt", 0) > 0);
    assert_int_equal(json_array_size(json_object_get(done, "notices")), 1);
}

/* ---- fetched files ---- */

static void what_is_fetched_is_bounded_by_the_room_that_is_left(void **state)
{
    struct fixture *f = *state;

    disk_free = UINT64_MAX;
    fetched.content = "a,b";
    assert_taken(f, MIB, import_message());
    assert_int_equal(fetched.limits.max_bytes, MIB);
    f->root.bounds = (struct sandbox_bounds){.reserve = RESERVE, .ttl_s = 3600};
    disk_free = RESERVE + 1000;
    json_auto_t *result = request(f, MIB, import_message());
    assert_int_equal(fetched.limits.max_bytes, 1000);
    assert_true(json_get_integer(result, "filesExpireAt", 0) > 0);
    disk_free = RESERVE + 2;
    assert_refused(f, MIB, import_message(), ERR_LIMIT, "SANDBOX_DISK_RESERVE");
    f->root.bounds.bytes = 4096 * 16;
    disk_free = UINT64_MAX;
    assert_taken(f, MIB, import_message());
    assert_true(fetched.limits.max_bytes < 4096 * 16);
}

static void nothing_is_fetched_for_which_there_is_no_room(void **state)
{
    struct fixture *f = *state;
    int before = fetched.calls;

    disk_free = RESERVE;
    f->root.bounds.reserve = RESERVE;
    assert_refused(f, MIB, import_message(), ERR_LIMIT, "SANDBOX_DISK_RESERVE");
    fixture_plant(f, "a", "");
    fixture_plant(f, "b", "");
    f->root.bounds = (struct sandbox_bounds){.files = 1};
    assert_refused(f, MIB, import_message(), ERR_LIMIT, "SANDBOX_FILES");
    assert_int_equal(fetched.calls, before);
}

static void a_fetch_ends_when_others_fill_the_disk(void **state)
{
    struct fixture *f = *state;

    disk_free = UINT64_MAX;
    f->root.bounds.reserve = RESERVE;
    fetched.content = "";
    assert_taken(f, MIB, import_message());
    fetched.disk_fills = true;
    assert_refused(f, MIB, import_message(), ERR_LIMIT, "SANDBOX_DISK_RESERVE");
    fetched.disk_fills = false;
}

/* It is not known before it has come. */
static void a_fetched_file_has_no_room_that_a_body_has(void **state)
{
    struct fixture *f = *state;

    disk_free = UINT64_MAX;
    f->root.bounds = (struct sandbox_bounds){.bytes = 10 * MIB};
    AUTO_FD int body = hold(f, 10 * MIB - 2);
    assert_true(body >= 0);
    fetched.content = "a,b";
    assert_refused(f, MIB, import_message(), ERR_LIMIT, "are on their way; 0.0 MiB more would");
    fetched.content = "a";
    assert_taken(f, MIB, import_message());
}

static int set_up_case(void **state)
{
    int rc = fixture_setup(state);
    struct fixture *f = *state;

    job_rooms_open(&rooms, &f->root);
    return rc;
}

static int tear_down_case(void **state)
{
    job_rooms_close(&rooms);
    return fixture_teardown(state);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up_case, tear_down_case)
static int set_up(void **state)
{
    (void)state;
    disk_is_ours = true;
    return 0;
}

static const struct CMUnitTest tests[] = {
    CASE(a_body_of_unknown_size_needs_room_as_it_comes),
    CASE(of_two_bodies_that_fit_alone_one_is_refused),
    CASE(a_body_has_its_room_until_its_owner_ends),
    CASE(a_body_that_grows_meets_what_is_on_its_way),
    CASE(a_body_that_has_come_needs_no_room_a_second_time),
    CASE(what_is_fetched_is_bounded_by_the_room_that_is_left),
    CASE(nothing_is_fetched_for_which_there_is_no_room),
    CASE(a_fetch_ends_when_others_fill_the_disk),
    CASE(a_fetched_file_has_no_room_that_a_body_has),
};
UNIT_TESTS_IN(tests, set_up, NULL)
