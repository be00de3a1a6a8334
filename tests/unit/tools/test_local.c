/* The machine's own files: what lies beneath allowed directories, and nothing else. */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"
#include "tests/unit/unit.h"

#include "common/base/mem.h"
#include "common/tools/files/local.h"

/* f->dir is "outside"; the sandbox's folder serves as the allowed one. */
static char *path_of(const struct fixture *f, const char *name)
{
    return mem_printf("%s/%s/%s", f->path, f->sb.name, name);
}

static void allow(const struct fixture *f, struct local_dirs *dirs)
{
    AUTO_FREE char *path = path_of(f, "");
    struct err e = ERR_INIT;

    assert_works(local_dirs_add(dirs, path, &e), e);
}

static void assert_file_fails(struct fixture *f, const struct local_dirs *dirs, const char *path,
                              enum err_kind kind)
{
    struct stat st;

    assert_fails(local_open_file(dirs, path, &st, &f->e), kind, f->e);
}

static void files_beneath_are_opened(void **state)
{
    struct fixture *f = *state;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    AUTO_FREE char *file = path_of(f, "d/a.txt"), *folder = path_of(f, "d/"), *top = path_of(f, "");
    struct stat st;

    allow(f, &dirs);
    assert_int_equal(fixture_put(f, "d/a.txt", "abc"), 0);
    AUTO_FD int fd = local_open_file(&dirs, file, &st, &f->e);
    assert_true(fd >= 0);
    assert_int_equal(st.st_size, 3);
    AUTO_FD int in = local_open_folder(&dirs, folder, &f->e);
    AUTO_FD int all = local_open_folder(&dirs, top, &f->e);
    assert_true(in >= 0);
    assert_true(all >= 0);
}

static void nothing_else_is(void **state)
{
    struct fixture *f = *state;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    AUTO_LOCAL_DIRS struct local_dirs none = {0};
    AUTO_FREE char *beside = mem_printf("%s/%sx", f->path, f->sb.name);
    static const char *const names[] = {"link", "up/secret", "../root", "d/../a", "./a", "d//a"};
    const char *secret = fixture_secret_file(f);

    allow(f, &dirs);
    fixture_plant(f, "a", "1");
    assert_int_equal(mkdirat(f->sb.fd, "d", 0755), 0);
    assert_int_equal(symlinkat(secret, f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "up"), 0);
    assert_file_fails(f, &dirs, secret, ERR_DENIED);
    assert_file_fails(f, &dirs, beside, ERR_DENIED);
    assert_file_fails(f, &dirs, "a", ERR_INVALID);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = path_of(f, names[i]);
        assert_file_fails(f, &dirs, path, i < 2 ? ERR_DENIED : ERR_INVALID);
    }
    AUTO_FREE char *folder = path_of(f, "d"), *absent = path_of(f, "absent"), *a = path_of(f, "a");
    assert_file_fails(f, &dirs, folder, ERR_NOT_FOUND);
    assert_file_fails(f, &dirs, absent, ERR_NOT_FOUND);
    assert_file_fails(f, &none, a, ERR_DENIED);
    assert_fails(local_open_folder(&dirs, a, &f->e), ERR_NOT_FOUND, f->e);
}

/* Root may do anything: the calls are another account's then. */
static void what_the_account_may_not_open_is_denied(void **state)
{
    struct fixture *f = *state;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    AUTO_FREE char *file = path_of(f, "a"), *folder = path_of(f, "d"), *new = path_of(f, "d/new");
    AUTO_FD int fd = fixture_memfd("abc");
    const uid_t own = geteuid();
    struct err e[3];
    struct stat st;

    allow(f, &dirs);
    fixture_plant(f, "a", "1");
    assert_int_equal(fchmodat(f->sb.fd, "a", 0, 0), 0);
    assert_int_equal(mkdirat(f->sb.fd, "d", 0), 0);
    assert_int_equal(chmod(f->dir, 0711) | chmod(f->path, 0711) | fchmod(f->sb.fd, 0711), 0);
    assert_int_equal(own == 0 ? seteuid(65534) : 0, 0);
    const int got[] = {local_open_file(&dirs, file, &st, &e[0]),
                       local_open_folder(&dirs, folder, &e[1]),
                       local_put_file(&dirs, new, fd, 3, true, &e[2])};
    assert_int_equal(seteuid(own), 0);
    for (size_t i = 0; i < ARRAY_LEN(got); i++) {
        assert_int_equal(got[i], -1);
        assert_int_equal(e[i].kind, ERR_DENIED);
        assert_contains(e[i].text, "is not allowed to this server's account");
    }
}

static void files_are_put(void **state)
{
    struct fixture *f = *state;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    AUTO_FREE char *path = path_of(f, "new"), *link = path_of(f, "link"),
                   *through = path_of(f, "up/new"), *outside = mem_printf("%s/new", f->dir);
    AUTO_FD int fd = fixture_memfd("abc");

    allow(f, &dirs);
    assert_int_equal(symlinkat(outside, f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "up"), 0);
    assert_works(local_put_file(&dirs, path, fd, 3, false, &f->e), f->e);
    fixture_assert_content(f, "new", "abc");
    assert_fails(local_put_file(&dirs, path, fd, 0, false, &f->e), ERR_EXISTS, f->e);
    assert_works(local_put_file(&dirs, path, fd, 0, true, &f->e), f->e);
    fixture_assert_content(f, "new", "");
    assert_works(local_put_file(&dirs, link, fd, 0, true, &f->e), f->e); /* the link itself goes */
    assert_fails(local_put_file(&dirs, through, fd, 0, true, &f->e), ERR_NOT_FOUND, f->e);
    assert_fails(local_put_file(&dirs, outside, fd, 0, true, &f->e), ERR_DENIED, f->e);
    assert_int_equal(access(outside, F_OK), -1);
    assert_int_equal(fixture_count(f->sb.fd, "."), 3);
}

static void only_paths_of_files_are_put(void **state)
{
    static const char *const names[] = {"", ".", ".."};
    struct fixture *f = *state;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    AUTO_FD int fd = fixture_memfd("abc");

    allow(f, &dirs);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *path = path_of(f, names[i]);
        assert_fails(local_put_file(&dirs, path, fd, 3, true, &f->e), ERR_INVALID, f->e);
    }
    assert_fails(local_put_file(&dirs, "new", fd, 3, true, &f->e), ERR_INVALID, f->e);
    assert_fails(local_put_file(&dirs, "/new", fd, 3, true, &f->e), ERR_INVALID, f->e);
    assert_int_equal(fixture_count(f->sb.fd, "."), 0);
}

static void roots_and_lists_are_read(void **state)
{
    static const char *const passed_over[] = {
        "http://x/a", "file://", "file:///", "file://other/a", "file:///a%00b", "relative", ""};
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(passed_over); i++)
        local_dirs_add_uri(&dirs, passed_over[i]);
    assert_int_equal(dirs.n, 0);
    local_dirs_add_uri(&dirs, "file:///home/me/a%20b/");
    local_dirs_add_uri(&dirs, "file://localhost/c%zz");
    assert_works(local_dirs_add(&dirs, "/d,/e/", &e), e);
    assert_int_equal(dirs.n, 4);
    assert_string_equal(dirs.paths[0], "/home/me/a b");
    assert_string_equal(dirs.paths[1], "/c%zz");
    assert_string_equal(dirs.paths[2], "/d");
    assert_string_equal(dirs.paths[3], "/e");
    assert_fails(local_dirs_add(&dirs, "/f,g", &e), ERR_INVALID, e);
    assert_fails(local_dirs_add(&dirs, "/", &e), ERR_INVALID, e);
    while (dirs.n < LOCAL_DIRS_MAX)
        assert_works(local_dirs_add(&dirs, "/x", &e), e);
    assert_fails(local_dirs_add(&dirs, "/x", &e), ERR_LIMIT, e);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    TEST(files_beneath_are_opened),
    TEST(nothing_else_is),
    TEST(what_the_account_may_not_open_is_denied),
    TEST(files_are_put),
    TEST(only_paths_of_files_are_put),
    TEST(roots_and_lists_are_read),
};
UNIT_TESTS(tests)
