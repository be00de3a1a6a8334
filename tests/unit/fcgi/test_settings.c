/* Limits that follow from the machine and from the tools, unless the operator sets them. */
#include "config.h"

#include "common/base/machine.h"
#include "fcgi/settings.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <unistd.h>

#define GIB 1073741824ull
#define MIB 1048576ull

static char folder[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    unit_make_folder(folder);
    setenv("SANDBOX_ROOT", folder, 1);
    setenv("FILE_SECRET", "a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5", 1);
    setenv("PUBLIC_BASE_URL", "http://localhost", 1);
    unsetenv("TOOLS");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unit_remove_tree(folder);
    return 0;
}

static struct settings load(const char *text)
{
    char file[PATH_MAX + 16];
    struct settings s;
    struct err e;

    snprintf(file, sizeof file, "%s/settings", folder);
    unit_write_file(file, text, strlen(text));
    assert_works(settings_load(&s, file, &e), e);
    return s;
}

static void limits_fit_the_machine(void **state)
{
    struct settings s = load("");
    struct machine_memory m;

    (void)state;
    assert_true(machine_memory_look("", &m));
    assert_int_equal(s.container.memory_bytes, m.total / 4 > GIB ? GIB : m.total / 4);
    assert_int_equal(s.container.cpu_milli, sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 1000 : 500);
    assert_int_equal(s.limits.timeout_ms, 300000);
    assert_true(s.limits.timeout_automatic);
    assert_int_equal(s.limits.wait_ms, 50000);
    settings_clear(&s);
}

static void a_server_with_the_tools_of_runner_has_the_limits_of_the_first_one(void **state)
{
    struct settings s = load("TOOLS=runner\n");

    (void)state;
    assert_int_equal(s.container.memory_bytes, 256 * MIB);
    assert_int_equal(s.container.cpu_milli, 500);
    settings_clear(&s);
}

static void what_the_operator_sets_counts(void **state)
{
    struct settings s = load("TOOLS=runner\nSANDBOX_MEMORY=512m\nSANDBOX_CPUS=2\n"
                             "SANDBOX_TIMEOUT=2m\n");

    (void)state;
    assert_int_equal(s.container.memory_bytes, 512 * MIB);
    assert_int_equal(s.container.cpu_milli, 2000);
    assert_int_equal(s.limits.timeout_ms, 120000);
    assert_false(s.limits.timeout_automatic);
    settings_clear(&s);
}

static void the_memory_of_an_engines_machine_elsewhere_is_not_looked_at(void **state)
{
    (void)state;
    unsetenv("DOCKER_HOST"); /* it would come before the file's */
    struct settings near = load(""), far = load("DOCKER_HOST=tcp://engine:2376\n");

    assert_int_equal(near.memory_reserve, 256 * MIB);
    assert_int_equal(far.memory_reserve, 0);
    settings_clear(&near);
    settings_clear(&far);
}

static void a_file_with_a_lower_longest_time_goes_on_working(void **state)
{
    struct settings s = load("SANDBOX_TIMEOUT_MAX=60s\n");

    (void)state;
    assert_int_equal(s.limits.timeout_ms, 60000);
    settings_clear(&s);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    CASE(limits_fit_the_machine),
    CASE(a_server_with_the_tools_of_runner_has_the_limits_of_the_first_one),
    CASE(what_the_operator_sets_counts),
    CASE(the_memory_of_an_engines_machine_elsewhere_is_not_looked_at),
    CASE(a_file_with_a_lower_longest_time_goes_on_working),
};
UNIT_TESTS(tests)
