#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/sandbox/files/owner.h"
#include "common/sandbox/warm_dir.h"

#define OLD_UID 1000 /* the fixture's */

static struct fixture *needs_root(void **state)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can give files away\n");
        skip();
    }
    return *state;
}

/* The fixture's SANDBOX_ROOT with SANDBOX_USER=auto. */
static struct sandbox_root open_auto(struct fixture *f)
{
    struct sandbox_root root;

    assert_int_equal(
        sandbox_root_open(&root, f->path, NULL, FIXTURE_SECRET, FIXTURE_URL, 0, 0, 0, &f->e), 0);
    return root;
}

static uid_t owner_of(const struct sandbox *sb, const char *name)
{
    struct stat st;

    assert_int_equal(fstatat(sb->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, st.st_gid);
    return st.st_uid;
}

static void each_sandbox_has_an_owner_and_keeps_it(void **state)
{
    struct fixture *f = needs_root(state);
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox one = open_in(&root, "one");
    AUTO_SANDBOX struct sandbox again = open_in(&root, "one");
    AUTO_SANDBOX struct sandbox other = open_in(&root, "other");

    assert_in_range(one.owner.uid, 1879048192, 2013265919);
    assert_int_equal(owner_of(&one, "."), one.owner.uid);
    assert_int_equal(again.owner.uid, one.owner.uid);
    assert_int_not_equal(other.owner.uid, one.owner.uid);
    assert_true(one.made);
    assert_false(again.made);
    assert_int_equal(files_make_folder(&one, "a/b", &f->e), 0);
    assert_int_equal(owner_of(&one, "a"), one.owner.uid);
    assert_int_equal(owner_of(&one, "a/b"), one.owner.uid);
    sandbox_root_close(&root);
}

static void a_warm_directory_brings_its_owner_along(void **state)
{
    struct fixture *f = needs_root(state);
    struct sandbox_root root = open_auto(f);
    char name[WARM_DIR_NAME_LEN + 1];
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct stat st;

    assert_int_equal(warm_dir_make(&root, name, &f->e), 0);
    assert_true(warm_dir_stat(&root, name, &st));
    assert_int_equal(fixture_adopt(&root, name, "new", &sb, &f->e), 0);
    assert_int_equal(sb.owner.uid, st.st_uid);
    assert_in_range(st.st_uid, 1879048192, 2013265919);
    assert_false(warm_dir_stat(&root, name, &st));
    sandbox_root_close(&root);
}

/* Files, folders, links and what has two names; not what a link names. */
static void a_tree_of_another_owner_is_taken_over(void **state)
{
    struct fixture *f = needs_root(state);
    static const char *const names[] = {".", "d", "d/e", "d/e/f", "hard", "soft", "fifo"};
    char outside[400];
    struct stat st;

    snprintf(outside, sizeof(outside), "%s/outside", f->dir);
    AUTO_FD int fd = open(outside, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(files_make_folder(&f->sb, "d/e", &f->e), 0);
    assert_int_equal(mknodat(f->sb.fd, "d/e/f", S_IFREG | 0600, 0), 0);
    assert_int_equal(linkat(f->sb.fd, "d/e/f", f->sb.fd, "hard", 0), 0);
    assert_int_equal(symlinkat(outside, f->sb.fd, "soft"), 0);
    assert_int_equal(mknodat(f->sb.fd, "fifo", S_IFIFO | 0600, 0), 0);
    sandbox_close(&f->sb);

    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = open_in(&root, "talk");
    assert_in_range(sb.owner.uid, 1879048192, 2013265919);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(owner_of(&sb, names[i]), sb.owner.uid);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    sandbox_root_close(&root);
}

static void a_tree_in_use_keeps_its_owner(void **state)
{
    struct fixture *f = needs_root(state);
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox during = open_in(&root, "talk");

    assert_int_equal(during.owner.uid, OLD_UID);
    assert_int_equal(owner_of(&during, "."), OLD_UID);
    sandbox_close(&during);
    sandbox_close(&f->sb);
    AUTO_SANDBOX struct sandbox after = open_in(&root, "talk");
    assert_int_not_equal(after.owner.uid, OLD_UID);
    sandbox_root_close(&root);
}

static void no_sandbox_belongs_to_root(void **state)
{
    struct fixture *f = needs_root(state);
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    assert_int_equal(fchown(f->sb.fd, 0, 0), 0);
    assert_int_equal(sandbox_find(&root, "default", "talk", &sb, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_BUSY);
    sandbox_close(&f->sb);
    assert_int_equal(sandbox_find(&root, "default", "talk", &sb, &f->e), 0);
    assert_in_range(sb.owner.uid, 1879048192, 2013265919);
    sandbox_root_close(&root);
}

/* Trees deeper than what is given are left as they are; the rest is given. */
static void depth_is_bounded(void **state)
{
    struct fixture *f = needs_root(state);
    const struct sandbox_owner owner = {2000000000, 2000000000};
    AUTO_FD int at = fcntl(f->sb.fd, F_DUPFD_CLOEXEC, 3);
    struct stat st;

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(mkdirat(at, "d", 0755), 0);
        AUTO_FD int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        assert_true(dup3(next, at, O_CLOEXEC) >= 0);
    }
    assert_int_equal(owner_give_tree(f->sb.fd, owner, &f->e), 0);
    assert_int_equal(owner_of(&f->sb, "d/d/d/d"), owner.uid);
    assert_int_equal(fstat(at, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(each_sandbox_has_an_owner_and_keeps_it),
    CASE(a_warm_directory_brings_its_owner_along),
    CASE(a_tree_of_another_owner_is_taken_over),
    CASE(a_tree_in_use_keeps_its_owner),
    CASE(no_sandbox_belongs_to_root),
    CASE(depth_is_bounded),
};
UNIT_TESTS(tests)
