#include "config.h"

#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/sizes.h"
#include "common/sandbox/state/state.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#define MIB (1024ull * 1024)

static struct usage measure(struct fixture *f)
{
    struct usage u = {0};

    assert_int_equal(usage_measure(&f->sb, NULL, &u, &f->e), 0);
    return u;
}

/* Real blocks: a hole takes none. */
static void write_bytes(const struct fixture *f, const char *name, size_t n)
{
    char *bytes = calloc(1, n);
    AUTO_FD int fd = openat(f->sb.fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    memset(bytes, 'x', n);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    fsync(fd);
    free(bytes);
}

static void an_empty_sandbox_takes_nothing(void **state)
{
    struct usage u = measure(*state);

    assert_int_equal(u.bytes, 0);
    assert_int_equal(u.files, 0);
    assert_false(u.partial);
}

static void everything_with_a_name_counts(void **state)
{
    struct fixture *f = *state;

    write_bytes(f, "file", 3 * MIB);
    assert_int_equal(mkdirat(f->sb.fd, "folder", 0755), 0);
    assert_int_equal(symlinkat("/etc", f->sb.fd, "link"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "folder/fifo", 0644), 0);
    struct usage u = measure(f);
    assert_int_equal(u.files, 4);
    assert_in_range(u.bytes, 3 * MIB, 3 * MIB + 64 * 1024);
}

static void holes_take_nothing_and_a_file_of_many_names_counts_once(void **state)
{
    struct fixture *f = *state;

    AUTO_FD int fd = openat(f->sb.fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 1ll << 40), 0);
    write_bytes(f, "one", MIB);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "name%d", i);
        assert_int_equal(linkat(f->sb.fd, "one", f->sb.fd, name, 0), 0);
    }
    struct usage u = measure(f);
    assert_int_equal(u.files, 10);
    assert_in_range(u.bytes, MIB - 64 * 1024, MIB + 64 * 1024);
}

static void counting_ends_when_it_is_enough(void **state)
{
    struct fixture *f = *state;
    const struct usage enough = {.bytes = UINT64_MAX, .files = 2};
    struct usage u;

    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        fixture_plant(f, name, "");
    }
    assert_int_equal(usage_measure(&f->sb, &enough, &u, &f->e), 0);
    assert_int_equal(u.files, 3);
    assert_true(u.partial);
}

static void dig(const struct fixture *f, int levels)
{
    int at = dup(f->sb.fd);

    for (int i = 0; i < levels; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    close(at);
}

static void what_is_too_deep_to_count_is_too_much(void **state)
{
    struct fixture *f = *state;

    dig(f, 1000);
    assert_true(measure(f).partial);
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0); /* no bounds, no question */
    f->root.bounds.bytes = 10 * MIB;
    assert_int_equal(quota_check(&f->sb, 0, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "deep"));
}

static void without_bounds_everything_fits(void **state)
{
    struct fixture *f = *state;
    struct usage left;

    write_bytes(f, "file", MIB);
    assert_int_equal(quota_check(&f->sb, UINT64_MAX, &f->e), 0);
    assert_int_equal(quota_left(&f->sb, &left, &f->e), 0);
    assert_true(left.bytes == UINT64_MAX && left.files == UINT64_MAX);
}

static void what_would_pass_the_quota_is_refused_with_the_sizes(void **state)
{
    struct fixture *f = *state;
    struct usage left;

    f->root.bounds.bytes = 4 * MIB;
    write_bytes(f, "file", 3 * MIB);
    assert_int_equal(quota_check(&f->sb, MIB / 2, &f->e), 0);
    assert_int_equal(quota_left(&f->sb, &left, &f->e), 0);
    assert_in_range(left.bytes, MIB - 64 * 1024, MIB);
    assert_int_equal(quota_check(&f->sb, 2 * MIB, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "SANDBOX_QUOTA"));
    assert_non_null(strstr(f->e.text, "4.0 MiB"));
    assert_non_null(strstr(f->e.text, "2.0 MiB more"));
    assert_int_equal(quota_check(&f->sb, UINT64_MAX, &f->e), -1);
}

static void what_is_above_it_already_is_refused(void **state)
{
    struct fixture *f = *state;
    struct usage left;

    f->root.bounds.bytes = MIB;
    write_bytes(f, "file", 3 * MIB);
    assert_int_equal(quota_check(&f->sb, 0, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "delete"));
    assert_int_equal(quota_left(&f->sb, &left, &f->e), -1);
    struct usage u = measure(f);
    assert_int_equal(quota_check_usage(&f->sb, &u, 0, &f->e), -1);
    assert_int_equal(unlinkat(f->sb.fd, "file", 0), 0);
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0);
}

static void conversations_of_a_tenant_share_its_bytes(void **state)
{
    struct fixture *f = *state, second = {0};
    struct tenants limits;
    struct disk_mark then = {.free = {UINT64_MAX, UINT64_MAX, false}};
    struct usage most, left, u;
    struct err why = ERR_INIT;

    tenants_init(&limits);
    limits.others.bytes = 4 * MIB;
    f->root.tenants = &limits;
    write_bytes(f, "file", 3 * MIB);
    assert_int_equal(state_note_use(&f->sb, "default", "talk", &f->e), 0);
    assert_int_equal(sandbox_open(&f->root, "default", "other", &second.sb, &f->e), 0);
    assert_in_range(second.sb.others_bytes, 3 * MIB, 3 * MIB + 64 * 1024);
    assert_true(state_size(&f->root, f->sb.name, &u)); /* noted for the next time */
    assert_int_equal(quota_check(&second.sb, MIB / 2, &f->e), 0);
    assert_int_equal(quota_left(&second.sb, &left, &f->e), 0);
    assert_in_range(left.bytes, MIB - 64 * 1024, MIB);
    assert_int_equal(quota_check(&second.sb, 2 * MIB, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_contains(f->e.text, "the files of all your conversations take 3.0 MiB");
    assert_contains(f->e.text, "limit of 4.0 MiB (bytes): delete");
    write_bytes(&second, "file", 2 * MIB);
    u = measure(&second);
    assert_true(quota_over(&second.sb, &then, &u, &most, &why));
    assert_in_range(most.bytes, MIB - 64 * 1024, MIB);
    assert_int_equal(quota_check(&second.sb, 0, &f->e), -1);
    assert_contains(f->e.text, "of this one 2.0 MiB");
    /* Another tenant has its own, and what is deleted counts no more. */
    sizes_count_others(&second.sb, "somebody else");
    assert_int_equal(second.sb.others_bytes, 0);
    assert_int_equal(unlinkat(f->sb.fd, "file", 0), 0);
    state_forget_size(&f->root, f->sb.name);
    sizes_count_others(&second.sb, "default");
    assert_int_equal(second.sb.others_bytes, 0);
    assert_int_equal(quota_check(&second.sb, 0, &f->e), 0);
    sandbox_close(&second.sb);
    tenants_clear(&limits);
}

static void with_nothing_left_by_others_an_empty_conversation_takes_nothing(void **state)
{
    struct fixture *f = *state;

    f->sb.tenant_bytes = MIB;
    f->sb.others_bytes = MIB;
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0);
    assert_int_equal(quota_bytes(&f->sb), 1);
    assert_int_equal(quota_check(&f->sb, 1, &f->e), -1);
    f->sb.others_bytes = 2 * MIB;
    assert_int_equal(quota_check(&f->sb, 0, &f->e), -1);
    assert_contains(f->e.text, "(bytes)");
    f->root.bounds.bytes = MIB / 2;
    f->sb.others_bytes = 0;
    assert_int_equal(quota_bytes(&f->sb), MIB / 2);
}

static void the_number_of_files_is_bounded(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.files = 2;
    fixture_plant(f, "a", "");
    assert_int_equal(quota_check(&f->sb, 1, &f->e), 0);
    fixture_plant(f, "b", "");
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0);
    assert_int_equal(quota_check(&f->sb, 1, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "SANDBOX_FILES"));
}

static void a_disk_that_is_nearly_full_takes_nothing(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.reserve = 1;
    assert_int_equal(quota_check(&f->sb, 1, &f->e), 0);
    assert_int_equal(quota_check(&f->sb, 1ull << 60, &f->e), -1);
    f->root.bounds.reserve = 1ull << 60;
    assert_int_equal(quota_check(&f->sb, 0, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "SANDBOX_DISK_RESERVE"));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    CASE(an_empty_sandbox_takes_nothing),
    CASE(everything_with_a_name_counts),
    CASE(holes_take_nothing_and_a_file_of_many_names_counts_once),
    CASE(counting_ends_when_it_is_enough),
    CASE(what_is_too_deep_to_count_is_too_much),
    CASE(without_bounds_everything_fits),
    CASE(what_would_pass_the_quota_is_refused_with_the_sizes),
    CASE(what_is_above_it_already_is_refused),
    CASE(conversations_of_a_tenant_share_its_bytes),
    CASE(with_nothing_left_by_others_an_empty_conversation_takes_nothing),
    CASE(the_number_of_files_is_bounded),
    CASE(a_disk_that_is_nearly_full_takes_nothing),
};
UNIT_TESTS(tests)
