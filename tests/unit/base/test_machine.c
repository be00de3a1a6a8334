/* The machine's memory, from files as kernels write them. */
#include "config.h"

#include "common/base/machine.h"
#include "common/base/mem.h"
#include "tests/unit/unit.h"

#define MIB 1048576ull

static const char meminfo[] = "MemTotal:        4194304 kB\nMemFree:          102400 kB\n"
                              "MemAvailable:    3145728 kB\nBuffers: 1 kB\n";

static void put(const char *root, const char *name, const char *text)
{
    AUTO_FREE char *path = mem_printf("%s%s", root, name);

    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    unit_write_file(path, text, strlen(text));
}

static void the_smaller_of_machine_and_cgroup_counts(void **state)
{
    static const struct {
        const char *name[3], *text[3];
        uint64_t total, available; /* MiB */
    } cases[] = {
        {{NULL}, {NULL}, 4096, 3072},
        {{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
         {"max\n", "1\n"},
         4096,
         3072},
        {{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
          "/sys/fs/cgroup/memory.stat"},
         {"2147483648\n", "1610612736\n", "anon 1\ninactive_file 1073741824\nactive_file 7\n"},
         2048,
         1536},
        {{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
         {"1073741824\n", "2147483648\n"},
         1024,
         0},
        {{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
          "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat"},
         {"1073741824\n", "536870912\n", "inactive_file 9\ntotal_inactive_file 268435456\n"},
         1024,
         768},
        {{"/sys/fs/cgroup/memory/memory.limit_in_bytes"}, {"9223372036854771712\n"}, 4096, 3072},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char root[PATH_MAX];
        struct machine_memory m;

        unit_make_folder(root);
        put(root, "/proc/meminfo", meminfo);
        for (size_t n = 0; n < 3 && cases[i].name[n]; n++)
            put(root, cases[i].name[n], cases[i].text[n]);
        assert_true(machine_memory_look(root, &m));
        assert_int_equal(m.total / MIB, cases[i].total);
        assert_int_equal(m.available / MIB, cases[i].available);
        unit_remove_tree(root);
    }
}

static void a_kernel_that_tells_nothing_is_said(void **state)
{
    struct machine_memory m;

    (void)state;
    assert_false(machine_memory_look("/nonexistent", &m));
    assert_true(machine_memory_look("", &m));
    assert_true(m.total >= m.available && m.available > 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_smaller_of_machine_and_cgroup_counts),
    cmocka_unit_test(a_kernel_that_tells_nothing_is_said),
};
UNIT_TESTS(tests)
