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

static bool is_setting(const struct conf_row *row)
{
    return !(row->flags & CONF_FIXED);
}

static void there_are_at_most_80_settings(void **state)
{
    size_t n = 0;

    (void)state;
    for (const struct conf_row *row = settings_table; row->name; row++)
        n += is_setting(row);
    assert_true(n <= 80);
}

static void every_setting_is_in_a_group_and_says_what_it_is_for(void **state)
{
    const struct conf_group *group = settings_groups;

    (void)state;
    assert_string_equal(group->first, settings_table[0].name);
    for (const struct conf_row *row = settings_table; row->name; row++) {
        if (group->first && strcmp(row->name, group->first) == 0)
            group++;
        assert_true(!is_setting(row) || strlen(row->help) > 20);
        for (const struct conf_other *other = settings_others; other->name; other++)
            assert_string_not_equal(row->name, other->name);
    }
    assert_null(group->first); /* each begins with a row, in this order */
    for (const struct conf_other *other = settings_others; other->name; other++)
        assert_true(other->ours ? conf_find(settings_table, other->ours) != NULL &&
                                      is_setting(conf_find(settings_table, other->ours))
                                : *other->instead);
}

static void refused(const char *text, const char *why)
{
    char file[PATH_MAX + 16];
    struct settings s;
    struct err e;

    snprintf(file, sizeof file, "%s/settings", folder);
    unit_write_file(file, text, strlen(text));
    assert_fails(settings_load(&s, file, &e), ERR_INVALID, e);
    assert_contains(e.text, why);
}

static void what_nginx_would_stumble_over_is_found_here(void **state)
{
    (void)state;
    refused("NGINX_RATE=fast\n", "NGINX_RATE is \"fast\"");
    refused("NGINX_HTTPS_PORT=70000\n", "NGINX_HTTPS_PORT is \"70000\"");
    refused("SANDCGI_LISTEN=127.0.0.1:99999\n", "SANDCGI_LISTEN=127.0.0.1:99999: ");
    refused("SANDCGI_METRICS=127.0.0.1:0\n", "SANDCGI_METRICS=127.0.0.1:0: ");
}

static void a_misspelt_prefix_is_found(void **state)
{
    (void)state;
    refused("DOKCER_HOST=x\n", "there is DOCKER_HOST");
    refused("TOOL=core\n", "there is TOOLS");
    refused("NGINX_RAET=1\n", "there is NGINX_RATE");
    refused("NGINX_TLS_CER=/c\n", "there is NGINX_TLS_CERT");
    refused("sandbox_memory=1g\n", "there is SANDBOX_MEMORY");
}

static void sockets_without_a_setting_are_beside_the_brokers(void **state)
{
    struct settings s = load("SANDCGI_BROKER=/run/x/b.sock\nSANDCGI_EVENTS=/else/where\n");

    (void)state;
    assert_string_equal(s.events, "/run/x/events.sock");
    assert_string_equal(s.oauth_listen, "/run/x/oauth.sock");
    assert_contains(s.notes, "SANDCGI_EVENTS is not taken: it is events.sock");
    settings_clear(&s);
}

static void what_is_fixed_follows_what_is_set(void **state)
{
    struct settings s = load("SANDBOX_MEMORY=32m\nSANDBOX_WAIT_MAX=5s\nSANDBOX_TTL=30d # days\n");

    (void)state;
    assert_int_equal(s.container.tmp_bytes, 32 * MIB);
    assert_int_equal(s.limits.wait_ms, 5000);
    assert_int_equal(s.ttl_ms, 30 * 86400000ull);
    settings_clear(&s);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    CASE(limits_fit_the_machine),
    CASE(there_are_at_most_80_settings),
    CASE(every_setting_is_in_a_group_and_says_what_it_is_for),
    CASE(what_nginx_would_stumble_over_is_found_here),
    CASE(a_misspelt_prefix_is_found),
    CASE(sockets_without_a_setting_are_beside_the_brokers),
    CASE(what_is_fixed_follows_what_is_set),
    CASE(a_server_with_the_tools_of_runner_has_the_limits_of_the_first_one),
    CASE(what_the_operator_sets_counts),
    CASE(the_memory_of_an_engines_machine_elsewhere_is_not_looked_at),
    CASE(a_file_with_a_lower_longest_time_goes_on_working),
};
UNIT_TESTS(tests)
