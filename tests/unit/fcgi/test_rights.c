/* Files with secrets: every way makes them for their owner alone, and check refuses others. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/doctor/check.h"
#include "fcgi/settings.h"
#include "tests/unit/unit.h"

#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    unit_make_folder(folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unit_remove_tree(folder);
    return 0;
}

/* The arguments behind FILE and FRONT_SECRET, as each way has them. */
static const struct way {
    const char *name, *arguments;
} ways[] = {
    {"the package, make install and Compose", ""},
    {"start.sh", " .env.example NGINX_HTTPS_PORT=9443 PUBLIC_BASE_URL=https://localhost:9443"},
};

static void run_shell(const char *command)
{
    const pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static mode_t mode_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    return st.st_mode & 07777;
}

static void every_way_makes_files_with_secrets_for_their_owner_alone(void **state)
{
    const char *top = getenv("srcdir") ? getenv("srcdir") : ".";

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        AUTO_FREE char *file = mem_printf("%s/settings%zu", folder, i);
        AUTO_FREE char *secret = mem_printf("%s/secret%zu", folder, i);
        AUTO_FREE char *command = mem_printf("cd %s && umask 022 && sh service/settings.sh %s %s%s",
                                             top, file, secret, ways[i].arguments);
        AUTO_FREE char *text = NULL, *other = NULL;
        struct err e;

        run_shell(command);
        assert_int_equal(mode_of(file), 0600);
        assert_int_equal(mode_of(secret), 0600);
        assert_works(conf_file_value(file, "FILE_SECRET", &text, &e), e);
        assert_int_equal(strspn(text, "0123456789abcdef"), 64);
        assert_works(conf_file_value(file, "MCP_API_TOKEN", &other, &e), e);
        assert_int_equal(strspn(other, "0123456789abcdef"), 64);
        assert_string_not_equal(text, other);
        free(text);
        assert_works(conf_file_value(file, "NGINX_HTTPS_PORT", &text, &e), e);
        assert_true(i == 0 ? text == NULL : strcmp(text, "9443") == 0);
    }
}

static bool is_refused(const char *path, const char *words)
{
    struct settings s;
    struct findings found = {0};
    struct err e;
    bool refused = false;

    assert_works(settings_load(&s, path, &e), e);
    check_settings(&s, path, &found);
    for (size_t i = 0; i < found.n; i++)
        refused = refused || (found.items[i].state == FINDING_WRONG &&
                              strstr(found.items[i].text, words) && *found.items[i].mend);
    findings_clear(&found);
    settings_clear(&s);
    return refused;
}

static void a_settings_file_that_others_can_read_is_refused(void **state)
{
    AUTO_FREE char *path = mem_printf("%s/settings", folder);
    AUTO_FREE char *text = mem_printf(
        "SANDBOX_ROOT=%s/s\nFILE_SECRET=a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5\n"
        "PUBLIC_BASE_URL=http://localhost\nSANDCGI_USER=nobody\n",
        folder);
    const struct passwd *nobody = getpwnam("nobody");

    (void)state;
    unsetenv("FILE_SECRET");
    unit_write_file(path, text, strlen(text));
    assert_int_equal(chmod(path, 0600), 0);
    assert_false(is_refused(path, "settings file"));
    assert_int_equal(chmod(path, 0604), 0);
    assert_true(is_refused(path, "every account can read"));
    if (geteuid() != 0 || !nobody)
        return;
    assert_int_equal(chmod(path, 0640), 0);
    assert_false(is_refused(path, "settings file"));
    assert_int_equal(chown(path, 0, nobody->pw_gid), 0);
    assert_true(is_refused(path, "the workers' account can read"));
    assert_int_equal(chown(path, nobody->pw_uid, 0), 0);
    assert_true(is_refused(path, "the workers' account can read"));
}

/* As who writes them by hand may leave them. */
static void a_file_with_a_secret_that_a_setting_names_is_refused_like_it(void **state)
{
    static const char *const names[] = {"SANDCGI_SECRET_FILE", "SANDCGI_TOKENS_FILE",
                                        "SANDBOX_STORE_CREDENTIALS"};
    AUTO_FREE char *path = mem_printf("%s/settings", folder), *file = mem_printf("%s/f", folder);

    (void)state;
    unit_write_file(file, "0123456789abcdef0123456789abcdef\n", 33);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *text = mem_printf(
            "SANDBOX_ROOT=%s/s\nFILE_SECRET=a0b1c2d3e4f5a0b1c2d3e4f5a0b1c2d3e4f5\n"
            "PUBLIC_BASE_URL=http://localhost\n%s=%s\n",
            folder, names[i], file);
        unit_write_file(path, text, strlen(text));
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(chmod(file, 0600), 0);
        assert_false(is_refused(path, "every account can read"));
        assert_int_equal(chmod(file, 0644), 0);
        AUTO_FREE char *words = mem_printf("%s %s holds secrets, and every account can read",
                                           names[i], file);
        assert_true(is_refused(path, words));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_way_makes_files_with_secrets_for_their_owner_alone,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_file_with_a_secret_that_a_setting_names_is_refused_like_it,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_settings_file_that_others_can_read_is_refused, set_up,
                                    tear_down),
};
UNIT_TESTS(tests)
