#include "config.h"

#include "common/base/auto.h"
#include "common/engine/cgroup.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID "99dc8fe8b54b2317f189c177567c6744f12a944ef2cfa60b0c69ab6999567bab"

/* A hierarchy with one file. */
static void make(const char *root, const char *path, const char *text)
{
    char whole[400];

    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static uint64_t number(const char *root, enum cgroup_count count)
{
    AUTO_FD int fd = cgroup_open(root, count, ID);
    uint64_t out = 0;

    assert_true(fd >= 0);
    assert_true(cgroup_read(fd, count, &out));
    assert_true(cgroup_read(fd, count, &out)); /* again from the beginning */
    return out;
}

static void each_place_and_version_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text;
        enum cgroup_count count;
        uint64_t number;
    } cases[] = {
        {"docker/" ID "/cpu.stat", "usage_usec 1234567\nuser_usec 1\n", CGROUP_CPU_US, 1234567},
        {"cpuacct/docker/" ID "/cpuacct.usage", "1234567890\n", CGROUP_CPU_US, 1234567},
        {"cpuacct/libpod_parent/libpod-" ID "/cpuacct.usage", "5000\n", CGROUP_CPU_US, 5},
        {"system.slice/docker-" ID ".scope/memory.current", "4096\n", CGROUP_MEMORY, 4096},
        {"machine.slice/libpod-" ID ".scope/memory.current", "8192\n", CGROUP_MEMORY, 8192},
        {"memory/docker/" ID "/memory.usage_in_bytes", "61837312\n", CGROUP_MEMORY, 61837312},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char root[] = "/tmp/cgroup-XXXXXX";
        assert_non_null(mkdtemp(root));
        make(root, cases[i].path, cases[i].text);
        assert_int_equal(number(root, cases[i].count), cases[i].number);
        assert_int_equal(cgroup_open(root, cases[i].count, "another"), -1);
        unit_remove_tree(root);
    }
}

static void what_is_no_number_is_not_told(void **state)
{
    (void)state;
    char root[] = "/tmp/cgroup-XXXXXX";
    uint64_t out = 7;

    assert_non_null(mkdtemp(root));
    make(root, "docker/" ID "/cpu.stat", "usage\n");
    AUTO_FD int fd = cgroup_open(root, CGROUP_CPU_US, ID);
    assert_true(fd >= 0);
    assert_false(cgroup_read(fd, CGROUP_CPU_US, &out));
    make(root, "docker/" ID "/cpu.stat", "");
    assert_false(cgroup_read(fd, CGROUP_CPU_US, &out));
    assert_int_equal(out, 7);
    unit_remove_tree(root);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_place_and_version_is_found),
    cmocka_unit_test(what_is_no_number_is_not_told),
};
UNIT_TESTS(tests)
