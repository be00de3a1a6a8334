/* Moving and deleting: what goes, what stays, what is refused. */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/mem.h"

static int put_new(struct fixture *f, const char *name, const char *text)
{
    AUTO_FD int fd = fixture_memfd(text);

    return files_put(&f->sb, name, fd, strlen(text), false, &f->e);
}

static bool is_there(const struct fixture *f, const char *name)
{
    struct stat st;

    return fstatat(f->sb.fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int move(struct fixture *f, const char *from, const char *to, bool replace)
{
    return files_move(&f->sb, from, to, replace, &f->e);
}

static int delete_it(struct fixture *f, const char *name, bool recursive, uint64_t *deleted)
{
    return files_delete(&f->sb, name, recursive, NULL, deleted, &f->e);
}

static void a_put_without_replace_leaves_what_is_there(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(put_new(f, "a/b", "first"), 0);
    fixture_assert_content(f, "a/b", "first");
    assert_int_equal(symlinkat("nowhere", f->sb.fd, "link"), 0);
    static const char *const taken[] = {"a/b", "a", "link"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        assert_int_equal(put_new(f, taken[i], "second"), -1);
        assert_int_equal(f->e.kind, ERR_EXISTS);
    }
    fixture_assert_content(f, "a/b", "first");
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void a_file_and_a_folder_move_and_folders_are_made(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    fixture_plant(f, "a\nb", "1");
    assert_int_equal(move(f, "a\nb", "x/y/-z", false), 0);
    fixture_assert_content(f, "x/y/-z", "1");
    assert_false(is_there(f, "a\nb"));
    assert_int_equal(fstatat(f->sb.fd, "x/y", &st, 0), 0);
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(move(f, "x", "moved", false), 0);
    fixture_assert_content(f, "moved/y/-z", "1");
    assert_int_equal(move(f, "moved/y", "y", false), 0);
    fixture_assert_content(f, "y/-z", "1");
}

static void what_cannot_move_says_why_and_stays(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *from, *to;
        bool replace;
        enum err_kind want;
    } cases[] = {
        {"absent", "x", true, ERR_NOT_FOUND},
        {"link/x", "x", true, ERR_NOT_FOUND},
        {"a", "b", false, ERR_EXISTS},
        {"a", "a", false, ERR_EXISTS},
        {"a", "folder", true, ERR_EXISTS},
        {"other", "folder", true, ERR_EXISTS},
        {"folder", "a", true, ERR_INVALID},
        {"folder", "folder/in/it", true, ERR_INVALID},
        {"folder", "folder/it", false, ERR_INVALID},
        {"a", "b/c", true, ERR_INVALID},
        {"a", "way/c", true, ERR_INVALID},
    };

    fixture_plant(f, "a", "a");
    fixture_plant(f, "b", "b");
    assert_int_equal(mkdirat(f->sb.fd, "folder", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "other", 0755), 0);
    fixture_plant(f, "folder/file", "file");
    assert_int_equal(symlinkat("folder", f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    int before = fixture_count(f->sb.fd, "."), outside = fixture_count(AT_FDCWD, f->dir);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (move(f, cases[i].from, cases[i].to, cases[i].replace) != -1)
            fail_msg("moved: case %zu", i);
        if (f->e.kind != cases[i].want)
            fail_msg("case %zu: %s", i, f->e.text);
    }
    fixture_assert_content(f, "a", "a");
    fixture_assert_content(f, "b", "b");
    fixture_assert_content(f, "folder/file", "file");
    assert_int_equal(fixture_count(f->sb.fd, "."), before);
    assert_int_equal(fixture_count(AT_FDCWD, f->dir), outside);
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void replace_replaces_files_links_and_empty_folders(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);
    struct stat st;

    fixture_plant(f, "a", "a");
    fixture_plant(f, "b", "b");
    assert_int_equal(symlinkat(secret, f->sb.fd, "link"), 0);
    assert_int_equal(mkdirat(f->sb.fd, "one", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "two", 0755), 0);
    assert_int_equal(move(f, "a", "b", true), 0);
    fixture_assert_content(f, "b", "a");
    assert_int_equal(move(f, "b", "link", true), 0);
    fixture_assert_content(f, "link", "a");
    assert_int_equal(move(f, "one", "two", true), 0);
    assert_false(is_there(f, "one"));
    assert_int_equal(symlinkat(secret, f->sb.fd, "again"), 0);
    assert_int_equal(move(f, "again", "moved link", false), 0);
    assert_int_equal(fstatat(f->sb.fd, "moved link", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(st.st_size, 6);
}

static void a_deleted_link_leaves_its_target(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);
    struct stat st;
    uint64_t n;

    assert_int_equal(symlinkat(secret, f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0666), 0);
    assert_int_equal(delete_it(f, "way/secret", true, &n), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    static const char *const gone[] = {"link", "way", "fifo"};
    for (size_t i = 0; i < ARRAY_LEN(gone); i++) {
        assert_int_equal(delete_it(f, gone[i], true, &n), 0);
        assert_int_equal(n, 1);
        assert_false(is_there(f, gone[i]));
    }
    assert_int_equal(stat(secret, &st), 0);
}

static void a_folder_goes_only_when_it_is_empty_or_on_demand(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);
    struct stat st;
    uint64_t n;

    assert_int_equal(mkdirat(f->sb.fd, "empty", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "full", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "full/in", 0700), 0);
    fixture_plant(f, "full/in/bad\xff", "x");
    fixture_plant(f, "full/a", "x");
    assert_int_equal(symlinkat(secret, f->sb.fd, "full/link"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "full/in/way"), 0);
    assert_int_equal(delete_it(f, "empty", false, &n), 0);
    assert_int_equal(delete_it(f, "full", false, &n), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(n, 0);
    assert_true(is_there(f, "full/a"));
    assert_int_equal(delete_it(f, "full", true, &n), 0);
    assert_int_equal(n, 6);
    assert_false(is_there(f, "full"));
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(delete_it(f, "full", true, &n), -1);
    assert_int_equal(f->e.kind, ERR_NOT_FOUND);
}

/* A chain that no path could name, and more folders than there may be descriptors. */
static void a_very_deep_folder_goes_with_few_descriptors(void **state)
{
    struct fixture *f = *state;
    AUTO_FD int at = openat(f->sb.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fds = fixture_open_fds();
    uint64_t n;

    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    assert_int_equal(delete_it(f, "d", true, &n), 0);
    assert_int_equal(n, 3000);
    assert_int_equal(fixture_count(f->sb.fd, "."), 0);
    assert_int_equal(fixture_open_fds(), fds);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(a_put_without_replace_leaves_what_is_there),
    CASE(a_file_and_a_folder_move_and_folders_are_made),
    CASE(what_cannot_move_says_why_and_stays),
    CASE(replace_replaces_files_links_and_empty_folders),
    CASE(a_deleted_link_leaves_its_target),
    CASE(a_folder_goes_only_when_it_is_empty_or_on_demand),
    CASE(a_very_deep_folder_goes_with_few_descriptors),
};
UNIT_TESTS(tests)
