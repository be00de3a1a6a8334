/* Records of kept runs: whose they are, what a torn, foreign, expired or unwritable one does. */
#include "config.h"

#include "common/records/kept_runs.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/records/run_lock.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/quota.h"
#include "tests/unit/sandbox/sandbox_fixture.h"
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/resource.h>

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccc"

#define NOT_FOUND                                                                                  \
    "runId: no such run (unknown, expired, removed for newer results, or another client's)"

/* Borrowed strings; created s seconds ago, kept for an hour. */
static struct run_record record_of(const char *tenant, int64_t ago_s)
{
    int64_t now = clock_unix_s();

    return (struct run_record){.tenant = (char *)(uintptr_t)tenant,
                               .conversation = (char *)(uintptr_t) "talk",
                               .language = (char *)(uintptr_t) "python",
                               .created = now - ago_s,
                               .deadline = now - ago_s + 60,
                               .ttl_s = 3600};
}

static void begin(struct fixture *f, const char *run_id, const char *tenant, int64_t ago_s)
{
    struct run_record r = record_of(tenant, ago_s);

    assert_works(run_record_begin(&f->root, run_id, &r, &f->e), f->e);
}

static struct run_record ended(const char *tenant)
{
    struct run_record r = record_of(tenant, 0);

    r.ended = clock_unix_s();
    return r;
}

static char *path_of(const struct fixture *f, const char *run_id, const char *tenant)
{
    char name[RUN_RECORD_NAME_LEN + 1];

    run_record_name(run_id, tenant, name);
    return mem_printf("%s/" RUN_RECORDS_DIR "/%s", f->path, name);
}

static void end(struct fixture *f, const char *run_id, const char *status, const char *output)
{
    const struct run_record r = ended("ann");

    struct output *live = output_new(0, OUTPUT_NEWEST);
    json_auto_t *result = json_pack("{s:s, s:s}", "status", status, "runId", run_id);

    output_add(live, ENGINE_STDOUT, output, strlen(output));
    assert_works(run_record_end(&f->root, run_id, &r, result, live, &f->e), f->e);
    output_free(live);
}

static void expect_none(struct fixture *f, const char *run_id, const char *tenant)
{
    struct run_record r;
    json_t *result;

    assert_fails(run_record_read(&f->root, run_id, tenant, &r, &result, &f->e), ERR_NOT_FOUND,
                 f->e);
    assert_string_equal(f->e.text, NOT_FOUND);
}

static void a_run_is_found_by_its_owner_only(void **state)
{
    struct fixture *f = *state;
    AUTO_RUN_RECORD struct run_record r = {0};
    json_t *result = NULL;

    begin(f, ID_A, "ann", 0);
    assert_works(run_record_read(&f->root, ID_A, "ann", &r, &result, &f->e), f->e);
    assert_null(result);
    assert_string_equal(r.conversation, "talk");
    assert_string_equal(r.language, "python");
    assert_int_equal(run_record_expires(&r), r.deadline + 3600);
    expect_none(f, ID_A, "bob");
    expect_none(f, ID_B, "ann");
    expect_none(f, "", "ann");
    expect_none(f, "../../etc/passwd", "ann");
    expect_none(f, "AAAAAAAAAAAAAAAAAAAAAAAA", "ann");
    expect_none(f, ID_A "a", "ann");
}

static void the_result_comes_with_its_output(void **state)
{
    struct fixture *f = *state;
    AUTO_RUN_RECORD struct run_record r = {0};
    json_auto_t *result = NULL;
    AUTO_BUF struct buf text = BUF_INIT(3 * 100);
    uint64_t next, skipped;

    begin(f, ID_A, "ann", 0);
    end(f, ID_A, "ok", "hello\nworld\n");
    assert_works(run_record_read(&f->root, ID_A, "ann", &r, &result, &f->e), f->e);
    assert_string_equal(json_string_value(json_object_get(result, "status")), "ok");
    assert_int_equal(run_record_expires(&r), r.ended + 3600);
    struct output *output = run_record_output(&f->root, ID_A, "ann", &f->e);
    assert_non_null(output);
    output_text(output, 6, 100, true, &text, &next, &skipped);
    assert_string_equal(buf_str(&text), "world\n");
    assert_int_equal(next, 12);
    output_free(output);
}

static void offsets_hold_for_output_that_is_kept_in_part(void **state)
{
    struct fixture *f = *state;
    struct output *live = output_new(0, OUTPUT_NEWEST);
    const struct run_record r = ended("ann");
    json_auto_t *result = json_pack("{s:s}", "status", "ok");
    AUTO_FREE char *block = mem_alloc(OUTPUT_NEWEST);
    AUTO_BUF struct buf text = BUF_INIT(3 * 100);
    uint64_t next, skipped;

    memset(block, 'x', OUTPUT_NEWEST);
    begin(f, ID_A, "ann", 0);
    output_add(live, ENGINE_STDOUT, block, OUTPUT_NEWEST);
    output_add(live, ENGINE_STDOUT, "the end", 7);
    assert_works(run_record_end(&f->root, ID_A, &r, result, live, &f->e), f->e);
    output_free(live);
    live = run_record_output(&f->root, ID_A, "ann", &f->e);
    assert_non_null(live);
    assert_int_equal(output_total(live), OUTPUT_NEWEST + 7);
    assert_int_equal(output_oldest(live), 7);
    output_text(live, OUTPUT_NEWEST, 100, true, &text, &next, &skipped);
    assert_string_equal(buf_str(&text), "the end");
    output_free(live);
}

static void plant(struct fixture *f, const char *run_id, const char *file, const char *text)
{
    AUTO_FREE char *folder = path_of(f, run_id, "ann");
    AUTO_FREE char *path = mem_printf("%s/%s", folder, file);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void a_torn_record_is_no_record(void **state)
{
    static const char *const torn[] = {"", "{", "{}", "[]", "{\"tenant\":\"ann\"", "\xFF"};
    struct fixture *f = *state;

    begin(f, ID_A, "ann", 0);
    for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
        plant(f, ID_A, "run.json", torn[i]);
        expect_none(f, ID_A, "ann");
        json_auto_t *list = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
        assert_int_equal(json_array_size(list), 0);
    }
}

static void a_torn_result_is_no_result(void **state)
{
    static const char *const torn[] = {"",
                                       "{",
                                       "{\"endedAt\":1,\"status\":\"ok\",\"total\":0}",
                                       "{\"endedAt\":1,\"status\":\"ok\",\"total\":0}\n{",
                                       "{\"endedAt\":1,\"stdout\":4}\n{}\nabc",
                                       "{\"endedAt\":1,\"stdout\":-1,\"output\":9}\n{}\n"};
    struct fixture *f = *state;

    begin(f, ID_A, "ann", 0);
    for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
        AUTO_RUN_RECORD struct run_record r = {0};
        json_t *result = NULL;
        plant(f, ID_A, "result.json", torn[i]);
        assert_works(run_record_read(&f->root, ID_A, "ann", &r, &result, &f->e), f->e);
        assert_null(result);
        assert_int_equal(r.ended, 0);
    }
}

static void what_expired_is_gone_at_once_and_swept(void **state)
{
    struct fixture *f = *state;
    struct run_record r = record_of("ann", 7200);
    AUTO_FREE char *path = path_of(f, ID_A, "ann");

    assert_works(run_record_begin(&f->root, ID_A, &r, &f->e), f->e); /* kept until 59 min ago */
    begin(f, ID_B, "ann", 0);
    expect_none(f, ID_A, "ann");
    json_auto_t *list = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(access(path, F_OK), 0);
    kept_runs_sweep(&f->root, clock_unix_s());
    assert_int_equal(access(path, F_OK), -1);
    json_auto_t *after = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(after), 1);
    kept_runs_sweep(&f->root, clock_unix_s() + 60 + 3601);
    json_auto_t *last = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(last), 0);
}

static const char *status_in(const json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "status"));
}

static void the_list_is_newest_first_and_tells_how_they_stand(void **state)
{
    struct fixture *f = *state;

    begin(f, ID_A, "ann", 30);
    begin(f, ID_B, "ann", 20);
    begin(f, ID_C, "ann", 10);
    begin(f, "dddddddddddddddddddddddd", "bob", 5);
    end(f, ID_A, "timeout", "");
    AUTO_FD int lock = run_lock_take(f->root.fd, ID_B, &f->e);
    assert_true(lock >= 0);
    json_auto_t *list = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(list), 3);
    assert_string_equal(status_in(list, 0), "lost"); /* no supervisor has C */
    assert_string_equal(status_in(list, 1), "running");
    assert_string_equal(status_in(list, 2), "timeout");
    json_auto_t *other = kept_runs_list(&f->root, "ann", "elsewhere", clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(other), 0);
}

static void runs_of_the_same_second_are_listed_by_their_ids(void **state)
{
    struct fixture *f = *state;
    struct run_record r = record_of("ann", 10); /* one createdAt */
    char run_id[RUN_ID_LEN + 1];

    /* Directories of some file systems list names in the order of their hashes. */
    for (unsigned i = 0; i < 20; i++) {
        snprintf(run_id, sizeof run_id, "%024x", i * 7 % 20);
        assert_works(run_record_begin(&f->root, run_id, &r, &f->e), f->e);
    }
    json_auto_t *list = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(list), 20);
    for (size_t i = 0; i < 20; i++) {
        snprintf(run_id, sizeof run_id, "%024zx", i);
        assert_string_equal(json_get_string(json_array_get(list, i), "runId"), run_id);
    }
}

static void a_long_list_ends_at_its_bound_with_the_newest(void **state)
{
    struct fixture *f = *state;
    struct run_record r = record_of("ann", 1000);

    for (int i = 0; i < 2 * RUN_LIST_MAX + 30; i++) {
        char id[RUN_ID_LEN + 1];
        snprintf(id, sizeof id, "%024x", i);
        r.created++;
        assert_works(run_record_begin(&f->root, id, &r, &f->e), f->e);
    }
    json_auto_t *list = kept_runs_list(&f->root, "ann", NULL, clock_unix_s(), &f->e);
    assert_int_equal(json_array_size(list), RUN_LIST_MAX);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "createdAt")),
                     r.created);
}

static void texts_are_kept_as_they_are(void **state)
{
    struct fixture *f = *state;
    AUTO_RUN_RECORD struct run_record read = {0};
    struct output *live = output_new(0, 16);
    AUTO_FREE char *control = mem_alloc(100000);
    struct stat st;
    json_t *again = NULL;

    memset(control, 1, 100000);
    begin(f, ID_A, "ann", 0);
    json_auto_t *result = json_pack("{s:s, s:s#, s:s, s:s}", "status", "ok", "stdout", control,
                                    (size_t)100000, "stderr", "", "output", "\n\"a\n\u00e9");
    const struct run_record over = ended("ann");
    assert_works(run_record_end(&f->root, ID_A, &over, result, live, &f->e), f->e);
    output_free(live);
    assert_works(run_record_read(&f->root, ID_A, "ann", &read, &again, &f->e), f->e);
    assert_true(json_equal(result, again));
    json_decref(again);
    AUTO_FREE char *folder = path_of(f, ID_A, "ann");
    AUTO_FREE char *path = mem_printf("%s/" RUN_RESULT_FILE, folder);
    assert_int_equal(stat(path, &st), 0);
    assert_in_range(st.st_size, 100000, 101000);
}

/* Ended s seconds after the epoch: the disk's own times are too coarse to tell which is older. */
static void end_at(struct fixture *f, const char *run_id, const char *output, int64_t s)
{
    AUTO_FREE char *folder = path_of(f, run_id, "ann");
    AUTO_FREE char *path = mem_printf("%s/" RUN_RESULT_FILE, folder);
    const struct timespec times[] = {{.tv_sec = s}, {.tv_sec = s}};

    end(f, run_id, "ok", output);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static size_t kept(struct fixture *f, const char *tenant)
{
    json_auto_t *list = kept_runs_list(&f->root, tenant, NULL, clock_unix_s(), &f->e);

    return json_array_size(list);
}

static void a_tenants_oldest_results_go_first(void **state)
{
    struct fixture *f = *state;
    AUTO_FREE char *output = mem_alloc(100001);
    char id[RUN_ID_LEN + 1];

    memset(output, 'x', 100000);
    f->root.bounds.results = 1000000;
    begin(f, ID_B, "bob", 0);
    begin(f, ID_C, "ann", 0); /* runs on */
    for (int i = 0; i < 20; i++) {
        snprintf(id, sizeof id, "%024x", i);
        begin(f, id, "ann", 0);
        end_at(f, id, output, 1000 + i);
        kept_runs_bound(&f->root, "ann");
        kept_runs_bound(&f->root, "bob");
        assert_in_range(kept(f, "ann"), 2, 10);
    }
    assert_int_equal(kept(f, "ann"), 10); /* 9 of 108 kB, and the one that runs */
    assert_int_equal(kept(f, "bob"), 1);
    snprintf(id, sizeof id, "%024x", 10);
    expect_none(f, id, "ann");
    for (int i = 11; i < 20; i++) {
        AUTO_RUN_RECORD struct run_record r = {0};
        json_auto_t *result = NULL;
        snprintf(id, sizeof id, "%024x", i);
        assert_works(run_record_read(&f->root, id, "ann", &r, &result, &f->e), f->e);
        assert_non_null(result);
    }
    f->root.bounds.results = 1; /* the newest stays */
    kept_runs_bound(&f->root, "ann");
    assert_int_equal(kept(f, "ann"), 2);
}

static void a_tenants_results_are_bounded_in_number(void **state)
{
    struct fixture *f = *state;
    size_t n = 0;

    for (int i = 0; i < KEPT_RUNS_MAX + 5; i++) {
        char id[RUN_ID_LEN + 1];
        snprintf(id, sizeof id, "%024x", i);
        begin(f, id, "ann", 0);
        end(f, id, "ok", "");
    }
    kept_runs_bound(&f->root, "ann");
    for (int i = 0; i < KEPT_RUNS_MAX + 5; i++) {
        char id[RUN_ID_LEN + 1];
        snprintf(id, sizeof id, "%024x", i);
        AUTO_FREE char *path = path_of(f, id, "ann");
        n += access(path, F_OK) == 0;
    }
    assert_int_equal(n, KEPT_RUNS_MAX);
}

static void expect_notice(struct fixture *f, const char *words)
{
    AUTO_SNAPSHOT struct snapshot now = {0};
    json_auto_t *result = json_object();

    assert_works(snapshot_take(&f->sb, &now, &f->e), f->e);
    retention_notice_after(&f->sb, &now, result);
    const json_t *notices = json_object_get(result, "notices");
    assert_int_equal(json_array_size(notices), words != NULL);
    if (words)
        assert_contains(json_string_value(json_array_get(notices, 0)), words);
}

static void a_result_tells_why_the_next_run_will_be_refused(void **state)
{
    struct fixture *f = *state;
    int at = dup(f->sb.fd);

    expect_notice(f, NULL);
    f->root.bounds.reserve = UINT64_MAX / 2;
    expect_notice(f, "SANDBOX_DISK_RESERVE");
    f->root.bounds.reserve = 0;
    f->root.bounds.files = 2000;
    for (int i = 0; i < USAGE_DEPTH_MAX + 10; i++) {
        if (i == 100)
            expect_notice(f, NULL); /* deeper than a listing goes, but it can be counted */
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
    expect_notice(f, "cannot be counted");
}

/* Writing over the limit fails as on a full disk, instead of ending the process. */
static void ignore_full_files(void)
{
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static void a_full_disk_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    struct run_record r = record_of("ann", 0);
    struct rlimit old, none = {0};

    ignore_full_files();
    getrlimit(RLIMIT_FSIZE, &old);
    none.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &none);
    int rc = run_record_begin(&f->root, ID_A, &r, &f->e);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(rc, -1);
    assert_int_equal(f->e.kind, ERR_IO);
    AUTO_FREE char *path = path_of(f, ID_A, "ann");
    assert_int_equal(access(path, F_OK), -1);
}

static void a_result_that_did_not_fit_is_not_seen(void **state)
{
    struct fixture *f = *state;
    struct output *live = output_new(0, OUTPUT_NEWEST);
    json_auto_t *result = json_pack("{s:s}", "status", "ok");
    AUTO_RUN_RECORD struct run_record r = {0};
    const struct run_record over = ended("ann");
    json_t *seen = NULL;
    struct rlimit old, few;

    begin(f, ID_A, "ann", 0);
    ignore_full_files();
    getrlimit(RLIMIT_FSIZE, &old);
    few = (struct rlimit){.rlim_cur = 10, .rlim_max = old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &few);
    int rc = run_record_end(&f->root, ID_A, &over, result, live, &f->e);
    setrlimit(RLIMIT_FSIZE, &old);
    output_free(live);
    assert_int_equal(rc, -1);
    assert_works(run_record_read(&f->root, ID_A, "ann", &r, &seen, &f->e), f->e);
    assert_null(seen);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    with_fixture(a_run_is_found_by_its_owner_only),
    with_fixture(the_result_comes_with_its_output),
    with_fixture(offsets_hold_for_output_that_is_kept_in_part),
    with_fixture(a_torn_record_is_no_record),
    with_fixture(a_torn_result_is_no_result),
    with_fixture(what_expired_is_gone_at_once_and_swept),
    with_fixture(the_list_is_newest_first_and_tells_how_they_stand),
    with_fixture(runs_of_the_same_second_are_listed_by_their_ids),
    with_fixture(a_long_list_ends_at_its_bound_with_the_newest),
    with_fixture(texts_are_kept_as_they_are),
    with_fixture(a_tenants_oldest_results_go_first),
    with_fixture(a_tenants_results_are_bounded_in_number),
    with_fixture(a_result_tells_why_the_next_run_will_be_refused),
    with_fixture(a_full_disk_leaves_nothing_behind),
    with_fixture(a_result_that_did_not_fit_is_not_seen),
};
UNIT_TESTS(tests)
