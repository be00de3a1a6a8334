/* What a run left above the bounds goes, and nothing that was there before it. */
#include "config.h"

#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/trim.h"
#include "tests/unit/sandbox/kernel.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include <time.h>

#define MIB (1024ull * 1024)

static uint64_t bytes_free;

static uint64_t room(void)
{
    return bytes_free;
}

/* 0: as many as there really are. */
static void set_free(uint64_t bytes)
{
    bytes_free = bytes;
    disk_free = bytes > 0 ? room : NULL;
}

static void append(const struct fixture *f, const char *name, size_t n)
{
    char *bytes = calloc(1, n);
    AUTO_FD int fd = openat(f->sb.fd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    memset(bytes, 'x', n);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    fsync(fd);
    free(bytes);
}

static off_t size_of(const struct fixture *f, const char *name)
{
    struct stat st;

    return fstatat(f->sb.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : st.st_size;
}

/* The listing before a run; whatever was made until now is older. */
static struct snapshot begin(struct fixture *f)
{
    const struct timespec tick = {.tv_nsec = 20000000}; /* of the clock that stamps files */
    struct snapshot before;

    nanosleep(&tick, NULL);
    assert_int_equal(snapshot_take(&f->sb, &before, &f->e), 0);
    return before;
}

/* The end of the run: how many files are listed then. f->e says what was too much. */
static size_t end(struct fixture *f, struct snapshot *before)
{
    AUTO_SNAPSHOT struct snapshot after = {0};
    struct err e = ERR_INIT;

    f->e = (struct err)ERR_INIT;
    assert_int_equal(trim_after(&f->sb, before, false, &after, &f->e, &e), 0);
    snapshot_clear(before);
    return after.n;
}

static void within_its_bounds_a_run_keeps_everything(void **state)
{
    struct fixture *f = *state;

    f->root.bounds = (struct sandbox_bounds){.bytes = 4 * MIB, .files = 10};
    struct snapshot before = begin(f);
    append(f, "made", 3 * MIB);
    assert_int_equal(end(f, &before), 1);
    assert_int_equal(f->e.kind, ERR_NONE);
}

static void the_largest_of_what_is_new_goes(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 8 * MIB;
    append(f, "old", 5 * MIB);
    struct snapshot before = begin(f);
    append(f, "small", MIB);
    append(f, "large", 6 * MIB);
    assert_int_equal(end(f, &before), 2);
    assert_int_equal(size_of(f, "old"), 5 * MIB);
    assert_int_equal(size_of(f, "small"), MIB);
    assert_int_equal(size_of(f, "large"), -1);
    assert_int_equal(f->e.kind, ERR_LIMIT);
    assert_non_null(strstr(f->e.text, "SANDBOX_QUOTA"));
    assert_non_null(strstr(f->e.text, "\"large\""));
    assert_int_equal(quota_check(&f->sb, 1, &f->e), 0); /* the next call works */
}

static void an_older_file_that_grew_is_cut_to_its_length(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 4 * MIB;
    append(f, "log", MIB);
    append(f, "other", 2 * MIB);
    struct snapshot before = begin(f);
    append(f, "log", 8 * MIB);
    assert_int_equal(fchmodat(f->sb.fd, "other", 0600, 0), 0); /* changed, but no larger */
    assert_int_equal(end(f, &before), 2);
    assert_int_equal(size_of(f, "log"), MIB);
    assert_int_equal(size_of(f, "other"), 2 * MIB);
}

static void a_hole_that_was_filled_does_not_stay(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 4 * MIB;
    AUTO_FD int fd = openat(f->sb.fd, "sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(fd, 16 * MIB), 0);
    struct snapshot before = begin(f);
    assert_int_equal(posix_fallocate(fd, 0, 16 * MIB), 0);
    assert_int_equal(end(f, &before), 0);
}

static void names_of_older_files_do_not_bring_them_into_danger(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 8 * MIB;
    append(f, "old", 5 * MIB);
    struct snapshot before = begin(f);
    assert_int_equal(renameat(f->sb.fd, "old", f->sb.fd, "renamed"), 0);
    assert_int_equal(linkat(f->sb.fd, "renamed", f->sb.fd, "linked", 0), 0);
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "new%d", i);
        append(f, name, MIB);
    }
    assert_int_equal(end(f, &before), 2 + 3);
    assert_int_equal(size_of(f, "renamed"), 5 * MIB);
}

static void a_new_file_of_many_names_goes_with_all_of_them(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 4 * MIB;
    struct snapshot before = begin(f);
    append(f, "a", 8 * MIB);
    assert_int_equal(mkdirat(f->sb.fd, "d", 0755), 0);
    assert_int_equal(linkat(f->sb.fd, "a", f->sb.fd, "b", 0), 0);
    assert_int_equal(linkat(f->sb.fd, "a", f->sb.fd, "d/c", 0), 0);
    assert_int_equal(end(f, &before), 0);
}

static void too_many_files_go_with_their_folders(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.files = 100;
    fixture_plant(f, "old", "x");
    struct snapshot before = begin(f);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        assert_int_equal(mkdirat(f->sb.fd, name, 0755), 0);
        snprintf(name, sizeof name, "d%d/f", i);
        fixture_plant(f, name, "");
    }
    end(f, &before);
    assert_non_null(strstr(f->e.text, "SANDBOX_FILES"));
    assert_int_equal(size_of(f, "old"), 1);
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0);
}

/* A descriptor of the innermost of them. */
static int make_too_deep(const struct fixture *f)
{
    int at = dup(f->sb.fd);

    for (int i = 0; i < 1200; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(at);
        at = next;
    }
    return at;
}

static void folders_that_are_too_deep_to_count_go(void **state)
{
    struct fixture *f = *state;

    f->root.bounds.bytes = 10 * MIB;
    struct snapshot before = begin(f);
    close(make_too_deep(f));
    before.free.files = 0; /* others give back more than this takes */
    end(f, &before);
    assert_non_null(strstr(f->e.text, "deep"));
    assert_int_equal(quota_check(&f->sb, 0, &f->e), 0);
}

static void what_is_in_older_folders_that_are_too_deep_is_not_looked_at(void **state)
{
    struct fixture *f = *state;
    AUTO_FD int deep = make_too_deep(f);

    f->root.bounds.bytes = MIB;
    struct snapshot before = begin(f);
    append(f, "new", 2 * MIB);
    AUTO_FD int fd = openat(deep, "newer", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(posix_fallocate(fd, 0, 2 * MIB), 0);
    end(f, &before);
    assert_int_equal(size_of(f, "new"), -1);
    assert_int_equal(faccessat(deep, "newer", F_OK, 0), 0);
}

static void a_run_that_broke_the_reserve_gives_back_what_it_took(void **state)
{
    struct fixture *f = *state;

    f->root.bounds = (struct sandbox_bounds){.bytes = 100 * MIB, .reserve = 16 * MIB};
    set_free(20 * MIB);
    struct snapshot before = begin(f);
    append(f, "large", 16 * MIB);
    append(f, "small", MIB);
    set_free(3 * MIB);
    assert_int_equal(end(f, &before), 1);
    assert_int_equal(size_of(f, "small"), MIB);
    assert_non_null(strstr(f->e.text, "SANDBOX_DISK_RESERVE"));
    set_free(0);
}

static void a_small_file_beside_anothers_flood_stays(void **state)
{
    struct fixture *f = *state;

    f->root.bounds = (struct sandbox_bounds){.bytes = 100 * MIB, .reserve = 16 * MIB};
    set_free(1024 * MIB);
    struct snapshot before = begin(f);
    append(f, "mine", MIB);
    set_free(MIB);
    assert_int_equal(end(f, &before), 1);
    assert_int_equal(f->e.kind, ERR_NONE);
    set_free(0);
}

static void a_small_file_on_a_disk_that_was_full_before_stays(void **state)
{
    struct fixture *f = *state;

    f->root.bounds = (struct sandbox_bounds){.bytes = 100 * MIB, .reserve = 16 * MIB};
    set_free(MIB + 4096);
    struct snapshot before = begin(f);
    append(f, "mine", 4096);
    set_free(MIB);
    assert_int_equal(end(f, &before), 1);
    assert_int_equal(f->e.kind, ERR_NONE);
    set_free(0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    CASE(within_its_bounds_a_run_keeps_everything),
    CASE(the_largest_of_what_is_new_goes),
    CASE(an_older_file_that_grew_is_cut_to_its_length),
    CASE(a_hole_that_was_filled_does_not_stay),
    CASE(names_of_older_files_do_not_bring_them_into_danger),
    CASE(a_new_file_of_many_names_goes_with_all_of_them),
    CASE(too_many_files_go_with_their_folders),
    CASE(folders_that_are_too_deep_to_count_go),
    CASE(what_is_in_older_folders_that_are_too_deep_is_not_looked_at),
    CASE(a_run_that_broke_the_reserve_gives_back_what_it_took),
    CASE(a_small_file_beside_anothers_flood_stays),
    CASE(a_small_file_on_a_disk_that_was_full_before_stays),
};
UNIT_TESTS(tests)
