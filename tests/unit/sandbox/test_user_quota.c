/* Disk quotas of the kernel, on a file system that has them: SANDCGI_TEST_QUOTA_DIR names a
 * directory of one, else a tmpfs is tried (Linux 6.6). */
#include "config.h"

#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/base/mem.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/user_quota.h"
#include "common/sandbox/warm_dir.h"

#include <grp.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB   (1ull << 20)
#define FILES 20

static const char *quota_dir;

/* ---- the program ---- */

/* The error of an allocation of mib MiB, which stays. */
static int allocate(const char *name, uint64_t mib)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

    return fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)(mib * MIB));
}

static int allocates_48_mib(void)
{
    return allocate("large", 48);
}

static int allocates_2_mib(void)
{
    return allocate("two", 2);
}

/* Out of its project, and to another user; then it takes more. */
static int leaves_and_allocates(void)
{
    struct fsxattr attr = {0};
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (ioctl(fd, FS_IOC_FSGETXATTR, &attr) == 0) {
        attr.fsx_projid = 7;
        ioctl(fd, FS_IOC_FSSETXATTR, &attr);
    }
    if (fchown(fd, 7, (gid_t)-1) == 0)
        return 0;
    return allocate("much", 48);
}

/* What is deleted and held open counts as well. */
static int deletes_and_holds(void)
{
    for (int i = 0; i < 10; i++) {
        int error = allocate("held", 3);
        if (error)
            return error;
        unlink("held");
    }
    return 0;
}

static int makes_files(void)
{
    char name[16];

    for (int i = 0; i <= FILES; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
            return i == FILES ? errno : 200;
        close(fd);
    }
    return 0;
}

/* Its result, as the sandbox's user without rights. */
static int as_program(const struct sandbox *sb, int (*program)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (fchdir(sb->fd) < 0 || setgroups(0, NULL) < 0 ||
            setresgid(sb->owner.gid, sb->owner.gid, sb->owner.gid) < 0 ||
            setresuid(sb->owner.uid, sb->owner.uid, sb->owner.uid) < 0)
            _exit(201);
        _exit(program());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- the fixture, with SANDBOX_USER=auto ---- */

static struct sandbox_root open_auto(struct fixture *f)
{
    struct sandbox_root root;

    if (!quota_dir) {
        print_message("skipped: no file system with user quotas\n");
        skip();
    }
    sandbox_close(&f->sb);
    assert_int_equal(
        sandbox_root_open(&root, f->path, NULL, FIXTURE_SECRET, FIXTURE_URL, 0, 0, 0, &f->e), 0);
    assert_true(root.user_quotas);
    root.bounds.bytes = 8 * MIB;
    root.bounds.files = FILES;
    return root;
}

static void a_program_meets_the_quota_at_once(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = open_in(&root, "one");

    assert_int_equal(as_program(&sb, allocates_48_mib), EDQUOT);
    assert_int_equal(unlinkat(sb.fd, "large", 0), 0);
    assert_int_equal(as_program(&sb, leaves_and_allocates), EDQUOT);
    assert_int_equal(unlinkat(sb.fd, "much", 0), 0);
    assert_int_equal(as_program(&sb, deletes_and_holds), EDQUOT);
    assert_int_equal(unlinkat(sb.fd, "held", 0), 0);
    assert_int_equal(as_program(&sb, makes_files), EDQUOT);
    sandbox_root_close(&root);
}

static void every_sandbox_has_its_own(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox one = open_in(&root, "one");
    AUTO_SANDBOX struct sandbox other = open_in(&root, "other");
    AUTO_SANDBOX struct sandbox warm = SANDBOX_INIT;
    char name[WARM_DIR_NAME_LEN + 1];

    assert_int_equal(warm_dir_make(&root, name, &f->e), 0);
    assert_int_equal(fixture_adopt(&root, name, "warm", &warm, &f->e), 0);
    assert_int_equal(as_program(&one, allocates_48_mib), EDQUOT);
    assert_int_equal(as_program(&other, allocates_2_mib), 0);
    assert_int_equal(as_program(&warm, allocates_2_mib), 0);
    assert_int_equal(as_program(&warm, allocates_48_mib), EDQUOT);
    sandbox_root_close(&root);
}

/* The bytes that the server writes: it is root, and checks by itself. */
static void what_the_server_writes_counts(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = open_in(&root, "one");
    AUTO_FREE char *text = mem_alloc(7 * MIB);

    memset(text, 'x', 7 * MIB);
    AUTO_FD int fd = memfd_create("content", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, 7 * MIB), 7 * MIB);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(files_put(&sb, "upload", fd, 7 * MIB, true, &f->e), 0);
    assert_int_equal(as_program(&sb, allocates_2_mib), EDQUOT);
    sandbox_root_close(&root);
}

static void the_next_opening_brings_other_bounds(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = open_in(&root, "one");

    assert_int_equal(as_program(&sb, makes_files), EDQUOT);
    root.bounds.files = 0;
    AUTO_SANDBOX struct sandbox again = open_in(&root, "one");
    assert_int_equal(as_program(&sb, allocates_2_mib), 0);
    root.bounds.bytes = MIB;
    AUTO_SANDBOX struct sandbox third = open_in(&root, "one");
    assert_int_equal(unlinkat(sb.fd, "two", 0), 0);
    assert_int_equal(as_program(&sb, allocates_2_mib), EDQUOT);
    sandbox_root_close(&root);
}

/* The fixture's sandbox belongs to 1000, which has no quota. */
static void a_tree_that_is_taken_over_gets_one(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    AUTO_SANDBOX struct sandbox sb = open_in(&root, "talk");

    assert_int_not_equal(sb.owner.uid, 1000);
    assert_int_equal(as_program(&sb, allocates_48_mib), EDQUOT);
    sandbox_root_close(&root);
}

static void it_is_gone_with_the_sandbox(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    struct sandbox sb = open_in(&root, "one");
    char path[sizeof TRASH_DIR + 1 + TRASH_NAME_LEN] = TRASH_DIR "/";

    assert_true(user_quota_has_files(&root, sb.owner.uid));
    sandbox_close(&sb);
    assert_int_equal(sandbox_retire(&root, sb.name, TRASH_DIR, path + sizeof TRASH_DIR, &f->e), 0);
    sb.fd = openat(root.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(as_program(&sb, makes_files), 0);
    sandbox_close(&sb);
    trash_empty(&root);
    for (int i = 0; i < 1000 && user_quota_has_files(&root, sb.owner.uid); i++)
        poll(NULL, 0, 10); /* XFS frees inodes later */
    assert_false(user_quota_has_files(&root, sb.owner.uid));
    sandbox_root_close(&root);
}

static void no_two_sandboxes_share_a_user(void **state)
{
    struct fixture *f = *state;
    struct sandbox_root root = open_auto(f);
    bool had[4] = {false};
    char id[2] = "a";

    root.first_uid = root.last_uid - 3;
    for (size_t i = 0; i < ARRAY_LEN(had); i++, id[0]++) {
        AUTO_SANDBOX struct sandbox sb = open_in(&root, id);
        assert_false(had[root.last_uid - sb.owner.uid]);
        had[root.last_uid - sb.owner.uid] = true;
    }
    sandbox_root_close(&root);
}

/* The fixture's root has one user for all. */
static void without_them_nothing_is_set(void **state)
{
    struct fixture *f = *state;

    assert_false(f->root.user_quotas);
    f->root.bounds.bytes = MIB;
    user_quota_set(&f->root, fixture_uid());
    user_quota_drop(&f->root, fixture_uid());
    assert_false(user_quota_has_files(&f->root, fixture_uid()));
}

/* ---- a file system ---- */

static int set_up(void **state)
{
    return quota_dir ? fixture_setup_in(state, quota_dir) : fixture_setup(state);
}

static const char *find_quota_dir(void)
{
    static char dir[] = "/tmp/quota-XXXXXX";
    const char *given = getenv("SANDCGI_TEST_QUOTA_DIR");

    if (given || geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || !mkdtemp(dir))
        return given;
    if (mount("none", dir, "tmpfs", 0, "usrquota,size=64m,mode=0755") == 0)
        return dir;
    rmdir(dir);
    return NULL;
}

static int mount_quota_dir(void **state)
{
    (void)state;
    quota_dir = find_quota_dir();
    return 0;
}

static int unmount_quota_dir(void **state)
{
    (void)state;
    if (quota_dir && !getenv("SANDCGI_TEST_QUOTA_DIR") && umount(quota_dir) == 0)
        rmdir(quota_dir);
    return 0;
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, fixture_teardown)
static const struct CMUnitTest tests[] = {
    CASE(without_them_nothing_is_set),
    CASE(a_program_meets_the_quota_at_once),
    CASE(every_sandbox_has_its_own),
    CASE(what_the_server_writes_counts),
    CASE(the_next_opening_brings_other_bounds),
    CASE(a_tree_that_is_taken_over_gets_one),
    CASE(it_is_gone_with_the_sandbox),
    CASE(no_two_sandboxes_share_a_user),
};
UNIT_TESTS_IN(tests, mount_quota_dir, unmount_quota_dir)
