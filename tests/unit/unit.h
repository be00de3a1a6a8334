/* What unit tests share: cmocka with what it needs before it, a folder of one's own, a count of
 * open descriptors. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/auto.h"
#include "common/base/err.h"
#include "common/base/fdio.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RUN_TESTS(tests) cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL)

/* A call that must fail with that kind, and say why. */
#define assert_fails(call, expected, e)                                                            \
    do {                                                                                           \
        (e) = ERR_INIT;                                                                            \
        assert_int_equal((call), -1);                                                              \
        assert_string_equal(err_kind_name((e).kind), err_kind_name(expected));                     \
        assert_true((e).text[0] != '\0');                                                          \
    } while (0)

/* A call that must succeed; prints the reason when it does not. */
#define assert_works(call, e)                                                                      \
    do {                                                                                           \
        (e) = ERR_INIT;                                                                            \
        if ((call) < 0)                                                                            \
            fail_msg("%s: %s", #call, (e).text);                                                   \
    } while (0)

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static inline int unit_count_fds(void)
{
    AUTO_DIR DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    return n;
}

/* Makes an empty folder; name it in path (PATH_MAX bytes). The test removes it. */
static inline void unit_make_folder(char *path)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/unit.XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

static inline int unit_unlock_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_DNR)
        chmod(path, 0700);
    return 0;
}

static inline int unit_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void unit_remove_tree(const char *path)
{
    nftw(path, unit_unlock_one, 16, FTW_PHYS);
    nftw(path, unit_remove_one, 64, FTW_PHYS | FTW_DEPTH);
}

/* Replaces the content of the file at path. */
static inline void unit_write_file(const char *path, const void *data, size_t len)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct err e = ERR_INIT;
    assert_true(fd >= 0);
    assert_int_equal(fdio_write_all(fd, data, len, &e), 0);
}

/* Reads exactly len bytes. */
static inline void unit_read_full(int fd, void *data, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = read(fd, (char *)data + at, len - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
}
