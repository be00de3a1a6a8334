/* What unit tests share: cmocka with what it needs before it, how a file's tests get into its
 * folder's program, a folder of one's own, a count of open descriptors. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/auto.h"
#include "common/base/err.h"
#include "common/base/fdio.h"
#include "tests/unit/group.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static inline const char *unit_test_name(const struct unit_group *g, size_t i)
{
    return ((const struct CMUnitTest *)g->tests)[i].name;
}

static inline bool unit_test_passes(const struct unit_group *g, size_t i, bool first, bool last)
{
    return _cmocka_run_group_tests(g->name, (const struct CMUnitTest *)g->tests + i, 1,
                                   first ? g->setup : NULL, last ? g->teardown : NULL) == 0;
}

#define UNIT_PASTE_(a, b) a##b
#define UNIT_PASTE(a, b)  UNIT_PASTE_(a, b)

/* Tests that share a set-up, which runs once; group_name: what --list calls their file. */
#define UNIT_TESTS_NAMED(group_name, all, group_setup, group_teardown)                             \
    __attribute__((constructor)) static void UNIT_PASTE(unit_add_, __LINE__)(void)                 \
    {                                                                                              \
        static struct unit_group group = {.name = (group_name),                                    \
                                          .n_tests = ARRAY_LEN(all),                               \
                                          .test_name = unit_test_name,                             \
                                          .passes = unit_test_passes,                              \
                                          .tests = (all),                                          \
                                          .setup = (group_setup),                                  \
                                          .teardown = (group_teardown)};                           \
        unit_add_group(&group);                                                                    \
    }

#define UNIT_TESTS_IN(all, group_setup, group_teardown)                                            \
    UNIT_TESTS_NAMED(__FILE__, all, group_setup, group_teardown)

/* The tests of a source file: an array of struct CMUnitTest. */
#define UNIT_TESTS(all) UNIT_TESTS_IN(all, NULL, NULL)

/* As the product's processes are: a set-up of a group. */
static inline int unit_ignore_sigpipe(void **state)
{
    (void)state;
    return sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

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
