/*
 * An empty SANDBOX_ROOT with one open sandbox, for the tests of common/sandbox, and small helpers
 * that plant things in it as a program would. Each test gets its own; everything is gone
 * afterwards.
 */
#pragma once

#include "tests/unit/unit.h"

#include "common/base/auto.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/warm_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FIXTURE_SECRET "0123456789abcdef0123456789abcdef"
#define FIXTURE_URL    "https://example.test:8443"

struct fixture {
    char dir[256];  /* removed at the end */
    char path[300]; /* dir/root: SANDBOX_ROOT */
    struct sandbox_root root;
    struct sandbox sb;
    struct err e;
};

/* As root we test with the sandboxes' usual user, else with our own. */
static inline uid_t fixture_uid(void)
{
    return geteuid() == 0 ? 1000 : geteuid();
}

static inline gid_t fixture_gid(void)
{
    return geteuid() == 0 ? 1000 : getegid();
}

static inline int fixture_setup_in(void **state, const char *parent)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->dir, sizeof(f->dir), "%s/sandcgi-test-XXXXXX", parent);
    if (!mkdtemp(f->dir))
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/root", f->dir);
    if (sandbox_root_open(&f->root, f->path, NULL, FIXTURE_SECRET, FIXTURE_URL, fixture_uid(),
                          fixture_gid(), 0, &f->e) < 0 ||
        sandbox_open(&f->root, "default", "talk", &f->sb, &f->e) < 0) {
        print_error("fixture: %s\n", f->e.text);
        return -1;
    }
    *state = f;
    return 0;
}

static inline int fixture_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");

    return fixture_setup_in(state, tmp ? tmp : "/tmp");
}

/* In memory where that can be had: for cases with very many files, which take a disk a minute. */
static inline int fixture_setup_big(void **state)
{
    const char *memory = "/dev/shm";

    return access(memory, W_OK) == 0 ? fixture_setup_in(state, memory) : fixture_setup(state);
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    sandbox_close(&f->sb);
    sandbox_root_close(&f->root);
    unit_remove_tree(f->dir);
    free(f);
    return 0;
}

/* Writes a file straight into the sandbox, as a program in it does. */
static inline void fixture_plant(const struct fixture *f, const char *name, const char *text)
{
    AUTO_FD int fd = openat(f->sb.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* A file outside every sandbox; returns its path (in a static buffer). */
static inline const char *fixture_secret_file(const struct fixture *f)
{
    static char path[320];

    snprintf(path, sizeof(path), "%s/secret", f->dir);
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "secret", 6), 6);
    return path;
}

static inline int fixture_memfd(const char *text)
{
    int fd = memfd_create("content", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static inline int fixture_put(struct fixture *f, const char *name, const char *text)
{
    AUTO_FD int fd = fixture_memfd(text);

    return files_put(&f->sb, name, fd, strlen(text), true, &f->e);
}

static inline void fixture_assert_content(const struct fixture *f, const char *name,
                                          const char *text)
{
    char got[256];
    AUTO_FD int fd = openat(f->sb.fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    assert_true(fd >= 0);
    ssize_t n = read(fd, got, sizeof(got) - 1);
    assert_true(n >= 0);
    got[n] = '\0';
    assert_string_equal(got, text);
}

/* Entries of a directory of SANDBOX_ROOT, without "." and "..". */
static inline int fixture_count(int at_fd, const char *name)
{
    int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(fd);
    int n = -2;

    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Descriptors this process has open: equal before and after means that nothing leaks. */
static inline int fixture_open_fds(void)
{
    return fixture_count(AT_FDCWD, "/proc/self/fd");
}

/* The conversation's sandbox in another root than the fixture's. */
static inline struct sandbox open_in(const struct sandbox_root *root, const char *conversation)
{
    struct sandbox sb;
    struct err e = ERR_INIT;

    if (sandbox_open(root, "default", conversation, &sb, &e) < 0)
        fail_msg("%s", e.text);
    return sb;
}

/* Makes a warm directory the conversation's sandbox. */
static inline int fixture_adopt(const struct sandbox_root *root, const char *name,
                                const char *conversation, struct sandbox *out, struct err *e)
{
    char sandbox_dir[SANDBOX_NAME_LEN + 1];

    if (sandbox_name(root, "default", conversation, sandbox_dir, e) < 0)
        return -1;
    return warm_dir_adopt(root, name, sandbox_dir, "default", out, e);
}
