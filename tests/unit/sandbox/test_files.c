/*
 * Names, opening and putting. Run twice: as test_files, and as test_files_walk, where the kernel
 * seems to lack openat2 and every test has to pass just the same.
 */
#include "config.h"

#include "tests/unit/sandbox/kernel.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

#include "common/sandbox/files/beneath.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define TIMES_16(s) s s s s s s s s s s s s s s s s

static int check(const char *name, struct err *e)
{
    return files_check_name("filename", name, strlen(name), e);
}

/* H-01. */
static void bad_names_are_refused_naming_the_field(void **state)
{
    static const char *const bad[] = {
        "",
        "/",
        "/etc/passwd",
        ".",
        "..",
        "../x",
        "a/..",
        "a/../b",
        "./a",
        "a/./b",
        "a//b",
        "a/",
        "//a",
        "../../../../etc/cron.d/x",
        "\xff",
        "\xc0\xaf",
        "%2e%2e%2fx",
        "%2E%2E",
        "a/%2e%2e/b",
        ".%2e/x",
        "%2e",
        "a%2fb",
        "a%2Fb",
        "a%00b",
        "\xed\xa0\x80",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (check(bad[i], &e) != -1)
            fail_msg("accepted: case %zu, %s", i, bad[i]);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_memory_equal(e.text, "filename ", 9);
    }
    assert_int_equal(files_check_name("filename", "a\0b", 3, &e), -1);
    assert_int_equal(files_check_name("filename", "a\0", 2, &e), -1);
}

static void good_names_pass(void **state)
{
    static const char *const good[] = {
        "a",
        "a.csv",
        "a/b.csv",
        ".hidden",
        "...",
        "..a",
        "a..",
        "-rf",
        "a b",
        "100%",
        "%",
        "%4",
        "%zz",
        "50%25.txt",
        "%41",
        "a\\b",
        "\"'`$;",
        "ä/ö.md",
        "a\nb",
        "a\tb/\r\n",
        "\x1b[0m",
        "\x7f",
        "\xc2\x9f",
        "\xe2\x80\xae"
        "x",
        "CON",
        "a.%2ecsv",
        "C:\\x",
        "~",
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (check(good[i], &e) != 0)
            fail_msg("refused: %s: %s", good[i], e.text);
}

static void names_are_bounded_in_length_and_depth(void **state)
{
    char name[FILES_NAME_MAX + 2];
    struct err e;

    (void)state;
    memset(name, 'x', sizeof(name));
    name[FILES_COMPONENT_MAX + 1] = '\0';
    assert_int_equal(check(name, &e), -1);
    name[FILES_COMPONENT_MAX] = '\0';
    assert_int_equal(check(name, &e), 0);
    memset(name, 'x', sizeof(name));
    for (size_t i = 200; i < FILES_NAME_MAX; i += 200)
        name[i] = '/';
    name[FILES_NAME_MAX + 1] = '\0';
    assert_int_equal(check(name, &e), -1);
    name[FILES_NAME_MAX] = '\0';
    assert_int_equal(check(name, &e), 0);
    assert_int_equal(check(TIMES_16("a/") "a", &e), -1);
    assert_int_equal(check(TIMES_16("a/") + 2, &e), -1); /* ends in a slash */
    assert_int_equal(check(&TIMES_16("/a")[1], &e), 0);
}

static void a_put_file_is_there_with_owner_and_mode(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(fixture_put(f, "a.csv", "x,y\n1,2\n"), 0);
    fixture_assert_content(f, "a.csv", "x,y\n1,2\n");
    AUTO_FD int fd = files_open(&f->sb, "a.csv", &st, &f->e);
    assert_true(fd >= 0);
    assert_int_equal(st.st_size, 8);
    assert_int_equal(st.st_uid, fixture_uid());
    assert_int_equal(st.st_gid, fixture_gid());
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(fixture_put(f, "empty", ""), 0);
    fixture_assert_content(f, "empty", "");
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void only_size_bytes_from_the_offset_are_put(void **state)
{
    struct fixture *f = *state;
    AUTO_FD int fd = fixture_memfd("0123456789");

    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    assert_int_equal(files_put(&f->sb, "part", fd, 3, true, &f->e), 0);
    fixture_assert_content(f, "part", "234");
    assert_int_equal(files_put(&f->sb, "part", fd, 6, true, &f->e), -1);
    assert_int_equal(f->e.kind, ERR_IO);
    fixture_assert_content(f, "part", "234");
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

/* H-32. */
static void folders_on_the_way_are_made_for_the_sandbox_user(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    static const char *const made[] = {"a", "a/b", "a/b/c"};
    mode_t old = umask(0077);

    assert_int_equal(fixture_put(f, "a/b/c/d.csv", "1"), 0);
    umask(old);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        assert_int_equal(fstatat(f->sb.fd, made[i], &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_true(S_ISDIR(st.st_mode));
        assert_int_equal(st.st_mode & 07777, 0755);
        assert_int_equal(st.st_uid, fixture_uid());
        assert_int_equal(st.st_gid, fixture_gid());
    }
    assert_int_equal(fixture_put(f, "a/b/other.csv", "2"), 0);
    fixture_assert_content(f, "a/b/c/d.csv", "1");
    fixture_assert_content(f, "a/b/other.csv", "2");
    assert_int_equal(fixture_put(f, &TIMES_16("/q")[1], "deep"), 0);
    fixture_assert_content(f, &TIMES_16("/q")[1], "deep");
}

static void a_put_replaces_the_name_not_the_file_behind_it(void **state)
{
    struct fixture *f = *state;

    fixture_plant(f, "one", "old");
    assert_int_equal(linkat(f->sb.fd, "one", f->sb.fd, "two", 0), 0);
    struct stat st;
    AUTO_FD int open_before = files_open(&f->sb, "one", &st, &f->e);
    assert_true(open_before >= 0); /* a hard link inside the sandbox is an ordinary file */
    assert_int_equal(fixture_put(f, "one", "new"), 0);
    fixture_assert_content(f, "one", "new");
    fixture_assert_content(f, "two", "old");
    char c;
    assert_int_equal(pread(open_before, &c, 1, 0), 1);
    assert_int_equal(c, 'o');
}

/* H-02, H-49. */
static void a_put_over_a_planted_link_leaves_its_target_alone(void **state)
{
    struct fixture *f = *state;
    const char *secret = fixture_secret_file(f);
    struct stat st, before;

    assert_int_equal(stat(secret, &before), 0);
    assert_int_equal(symlinkat(secret, f->sb.fd, "out.txt"), 0);
    assert_int_equal(fixture_put(f, "out.txt", "mine"), 0);
    assert_int_equal(fstatat(f->sb.fd, "out.txt", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
    fixture_assert_content(f, "out.txt", "mine");
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(st.st_uid, before.st_uid);
    assert_int_equal(st.st_mode, before.st_mode);

    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    assert_int_equal(symlinkat(".", f->sb.fd, "self"), 0);
    assert_int_equal(symlinkat("nowhere", f->sb.fd, "dangling"), 0);
    static const char *const ways[] = {"way/secret", "way/new", "self/x", "dangling/x",
                                       "self/self/x"};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        assert_int_equal(fixture_put(f, ways[i], "mine"), -1);
        assert_int_equal(f->e.kind, ERR_INVALID);
    }
    assert_int_equal(fixture_count(AT_FDCWD, f->dir), 2); /* root and secret */
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

static void a_put_over_other_things_replaces_or_refuses(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkdirat(f->sb.fd, "folder", 0755), 0);
    assert_int_equal(fixture_put(f, "folder", "x"), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    fixture_plant(f, "file", "x");
    assert_int_equal(fixture_put(f, "file/below", "x"), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0666), 0);
    assert_int_equal(fixture_put(f, "fifo/below", "x"), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(fixture_put(f, "fifo", "x"), 0);
    fixture_assert_content(f, "fifo", "x");
    assert_int_equal(fixture_count(f->root.fd, ".staging"), 0);
}

/* H-03, H-28: whatever a name leads to, only a regular file of the sandbox opens. */
static void nothing_but_regular_files_opens(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char sibling[96];

    fixture_plant(f, "file", "x");
    assert_int_equal(mkdirat(f->sb.fd, "folder", 0755), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0666), 0);
    assert_int_equal(symlinkat(fixture_secret_file(f), f->sb.fd, "link"), 0);
    assert_int_equal(symlinkat("file", f->sb.fd, "inner"), 0);
    assert_int_equal(symlinkat("/proc/self/environ", f->sb.fd, "environ"), 0);
    assert_int_equal(symlinkat("/proc/self/root", f->sb.fd, "magic"), 0);
    assert_int_equal(symlinkat("loop", f->sb.fd, "loop"), 0);
    assert_int_equal(symlinkat(f->dir, f->sb.fd, "way"), 0);
    assert_int_equal(symlinkat("..", f->sb.fd, "up"), 0);
    snprintf(sibling, sizeof(sibling), "../%s/file", f->sb.name);
    if (geteuid() == 0)
        assert_int_equal(mknodat(f->sb.fd, "null", S_IFCHR | 0666, makedev(1, 3)), 0);
    const char *const names[] = {
        "absent",
        "folder",
        "fifo",
        "link",
        "inner",
        "environ",
        "magic",
        "loop",
        "way/secret",
        "null",
        "up/.staging",
        "magic/etc/passwd",
        "file/below",
        "fifo/below",
        "",
        "/",
        ".",
        "..",
        "/etc/passwd",
        "../x",
        sibling,
        "folder/../file",
        "./file",
        "folder//x",
        "file/",
    };
    int fds = fixture_open_fds();

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (files_open(&f->sb, names[i], &st, &f->e) != -1)
            fail_msg("opened: %s", names[i]);
        assert_int_equal(f->e.kind, ERR_NOT_FOUND);
    }
    assert_int_equal(fixture_open_fds(), fds);
}

/* H-24: files are opened by the very bytes a listing gives. */
static void raw_names_of_a_listing_open(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"a\nb",
                                        "a\tb",
                                        "\"",
                                        "\xff\xfe",
                                        "-rf",
                                        "\xe2\x80\xae"
                                        "x",
                                        "%2e%2e"};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        fixture_plant(f, names[i], "x");
        AUTO_FD int fd = files_open(&f->sb, names[i], &st, &f->e);
        assert_true(fd >= 0);
    }
}

/* H-23. */
/* A program may hold a lease on its own file; the open then fails although the file is there. */
static void a_leased_file_is_said_to_be_in_use(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    int ready[2];
    char how = 0;

    assert_int_equal(fixture_put(f, "leased", "x"), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        sigaction(SIGIO, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
        int fd = openat(f->sb.fd, "leased", O_RDONLY);
        how = fcntl(fd, F_SETLEASE, F_WRLCK) == 0 ? 'y' : 'n';
        _exit(write(ready[1], &how, 1) == 1 ? pause() : 1);
    }
    assert_int_equal(read(ready[0], &how, 1), 1);
    if (how == 'y')
        assert_int_equal(files_open(&f->sb, "leased", &st, &f->e), -1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    if (how != 'y')
        skip(); /* a file system without leases */
    assert_int_equal(f->e.kind, ERR_BUSY);
    assert_non_null(strstr(f->e.text, "lease"));
    AUTO_FD int fd = files_open(&f->sb, "leased", &st, &f->e);
    assert_true(fd >= 0);
}

static void a_sparse_terabyte_opens_without_being_read(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    fixture_plant(f, "huge", "");
    AUTO_FD int w = openat(f->sb.fd, "huge", O_WRONLY | O_CLOEXEC);
    if (ftruncate(w, 1LL << 40) < 0)
        skip(); /* a file system without room for such a number */
    AUTO_FD int fd = files_open(&f->sb, "huge", &st, &f->e);
    assert_true(fd >= 0);
    assert_int_equal(st.st_size, 1LL << 40);
}

/* Waits for the child; true when it ended with 0. 77 stands for "cannot be tested here". */
static int child_status(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int put_big(const struct sandbox *sb, const char *name, size_t size, struct err *e)
{
    AUTO_FD int fd = memfd_create("big", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return -2;
    return files_put(sb, name, fd, size, true, e);
}

/* In a mount namespace of its own: a file system of 256 KiB, on which a file of 1 MiB does not fit.
 */
static int full_disk(const char *dir)
{
    struct sandbox_root root;
    struct sandbox sb;
    struct err e = ERR_INIT;
    char path[320];

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", dir, "tmpfs", 0, "size=256k,mode=0755") < 0)
        return 77;
    snprintf(path, sizeof(path), "%s/root", dir);
    if (sandbox_root_open(&root, path, NULL, FIXTURE_SECRET, FIXTURE_URL, fixture_uid(),
                          fixture_gid(), 0, &e) < 0 ||
        sandbox_open(&root, "default", "talk", &sb, &e) < 0)
        return 1;
    if (put_big(&sb, "a/b/big", 1 << 20, &e) != -1 || e.kind != ERR_IO)
        return 2;
    if (fixture_count(sb.fd, ".") != 0 || fixture_count(root.fd, ".staging") != 0)
        return 3;
    /* The old content survives an overwriting that does not fit. */
    if (put_big(&sb, "a/b/big", 100000, &e) != 0 || put_big(&sb, "a/b/big", 1 << 20, &e) != -1)
        return 4;
    struct stat st;
    if (fstatat(sb.fd, "a/b/big", &st, 0) < 0 || st.st_size != 100000)
        return 5;
    /* A full disk does not keep the server from starting. */
    while (put_big(&sb, "fill", 4096, &e) == 0) {
        char name[32];
        snprintf(name, sizeof(name), "fill%d", fixture_count(sb.fd, "."));
        if (put_big(&sb, name, 4096, &e) != 0)
            break;
    }
    struct sandbox_root again;
    if (sandbox_root_open(&again, path, NULL, FIXTURE_SECRET, FIXTURE_URL, fixture_uid(),
                          fixture_gid(), 0, &e) < 0)
        return 6;
    return 0;
}

static void a_full_disk_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(full_disk(f->dir));
    int rc = child_status(pid);
    if (rc == 77) {
        print_message("skipped: mounting a small tmpfs needs root\n");
        skip();
    }
    assert_int_equal(rc, 0);
}

static void a_folder_made_for_a_put_that_fails_goes_again(void **state)
{
    struct fixture *f = *state;

    /* The last rename fails because the name is a folder; what was made above it is not there any
     * more. */
    assert_int_equal(mkdirat(f->sb.fd, "old", 0755), 0);
    assert_int_equal(mkdirat(f->sb.fd, "old/name", 0755), 0);
    assert_int_equal(fixture_put(f, "old/name", "x"), -1);
    assert_int_equal(fixture_count(f->sb.fd, "."), 1);
    assert_int_equal(fixture_put(f, "new/\xff/x", "x"),
                     0); /* not checked here: any bytes are a name */
    char longer[FILES_COMPONENT_MAX + 20] = "brand/new/";
    memset(longer + 10, 'x', sizeof(longer) - 11);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(fixture_put(f, longer, "x"), -1);
    assert_int_equal(f->e.kind, ERR_INVALID);
    assert_int_equal(faccessat(f->sb.fd, "brand", F_OK, 0), -1);
}

static void a_missing_openat2_is_asked_for_once(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    assert_int_equal(files_open(&f->sb, "missing", &st, &f->e), -1);
    assert_int_equal(n_openat2, lacks_openat2 ? 1 : 0);
}

static void nothing_leaks_descriptors(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    int fds = fixture_open_fds();

    fixture_plant(f, "file", "x");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fixture_put(f, "a/b/c", "x"), 0);
        assert_int_equal(fixture_put(f, "file/c", "x"), -1);
        assert_int_equal(fixture_put(f, "a/b", "x"), -1);
        int fd = files_open(&f->sb, "a/b/c", &st, &f->e);
        assert_true(fd >= 0);
        assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
        close(fd);
    }
    assert_int_equal(fixture_open_fds(), fds);
}

/* The mode bits of a name, links not followed. */
static mode_t mode_of(const struct fixture *f, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(f->sb.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 0777;
}

static void a_private_file_is_shared_with_the_web_server(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(fixture_put(f, "a/b/c", "x"), 0);
    assert_int_equal(fchmodat(f->sb.fd, "a/b/c", 0600, 0), 0);
    assert_int_equal(fchmodat(f->sb.fd, "a/b", 0700, 0), 0);
    assert_int_equal(symlinkat("c", f->sb.fd, "a/b/link"), 0);
    assert_int_equal(mkfifoat(f->sb.fd, "fifo", 0600), 0);
    files_share(&f->sb, "a/b/link");
    assert_int_equal(mode_of(f, "a/b/c"), 0600);
    files_share(&f->sb, "a/b/c");
    assert_int_equal(mode_of(f, "a/b/c"), 0644);
    assert_int_equal(mode_of(f, "a/b"), 0711);
    files_share(&f->sb, "fifo");
    assert_int_equal(mode_of(f, "fifo"), 0600);
    files_share(&f->sb, "nowhere/at/all");
    files_share(&f->sb, "../../etc");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bad_names_are_refused_naming_the_field),
    cmocka_unit_test(good_names_pass),
    cmocka_unit_test(names_are_bounded_in_length_and_depth),
    CASE(a_put_file_is_there_with_owner_and_mode),
    CASE(only_size_bytes_from_the_offset_are_put),
    CASE(folders_on_the_way_are_made_for_the_sandbox_user),
    CASE(a_put_replaces_the_name_not_the_file_behind_it),
    CASE(a_put_over_a_planted_link_leaves_its_target_alone),
    CASE(a_put_over_other_things_replaces_or_refuses),
    CASE(nothing_but_regular_files_opens),
    CASE(raw_names_of_a_listing_open),
    CASE(a_leased_file_is_said_to_be_in_use),
    CASE(a_sparse_terabyte_opens_without_being_read),
    CASE(a_full_disk_leaves_nothing_behind),
    CASE(a_folder_made_for_a_put_that_fails_goes_again),
    CASE(a_private_file_is_shared_with_the_web_server),
    CASE(nothing_leaks_descriptors),
    CASE(a_missing_openat2_is_asked_for_once),
};
UNIT_TESTS(tests)
UNIT_TESTS_NAMED("sandbox/test_files_walk", tests, take_openat2_away, NULL)
