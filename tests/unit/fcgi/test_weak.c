/* Settings that work, and weaken the server. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/doctor/weak.h"
#include "tests/unit/unit.h"

static void each_setting_that_weakens_is_told_and_no_other(void **state)
{
    static const struct {
        const char *setting, *value, *with; /* the latter: another setting; or NULL */
        bool weak;
    } cases[] = {
        {"PUBLIC_BASE_URL", "http://example.com", "SANDCGI_OAUTH=builtin", true},
        {"PUBLIC_BASE_URL", "http://example.com", NULL, false},
        {"PUBLIC_BASE_URL", "https://example.com", "SANDCGI_OAUTH=builtin", false},
        {"PUBLIC_BASE_URL", "http://127.0.0.1:8080", "SANDCGI_OAUTH=builtin", false},
        {"PUBLIC_BASE_URL", "https://me:secret@example.com", NULL, true},
        {"PUBLIC_BASE_URL", "https://example.com/@me", NULL, false},
        {"MCP_API_TOKEN", "0123456789 0123456789 0123456789 x", "SANDCGI_AUTH=token", true},
        {"MCP_API_TOKEN", "0123456789-0123456789-0123456789-x", "SANDCGI_AUTH=token", false},
        {"SANDCGI_USER", "www-data", NULL, true},
        {"SANDCGI_USER", "sandcgi", NULL, false},
        {"SANDCGI_LISTEN", "0.0.0.0:9000", NULL, true},
        {"SANDCGI_LISTEN", "[::]:9000", NULL, true},
        {"SANDCGI_LISTEN", "127.0.0.1:9000", NULL, false},
        {"SANDCGI_LISTEN", "/run/sandcgi/fastcgi.sock", NULL, false},
        {"SANDBOX_IMAGES", "sandcgi-runner-*,*", NULL, true},
        {"SANDBOX_IMAGES", "sandcgi-runner-*", NULL, false},
        {"SANDBOX_USER", "1:1", NULL, true},
        {"SANDBOX_USER", "1234567:1234567", NULL, false},
        {"SANDBOX_USER", "auto", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char folder[PATH_MAX];
        unit_make_folder(folder);
        AUTO_FREE char *path = mem_printf("%s/conf", folder);
        AUTO_FREE char *start = mem_printf("%s:", cases[i].setting);
        struct findings found = {0};
        struct settings s;
        struct err e = ERR_INIT;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(
            f,
            "SANDBOX_ROOT=%s/root\nFILE_SECRET=0123456789abcdef0123456789abcdefXY\n%s%s=%s\n%s\n",
            folder,
            strcmp(cases[i].setting, "PUBLIC_BASE_URL") != 0 ? "PUBLIC_BASE_URL=https://a.example\n"
                                                             : "",
            cases[i].setting, cases[i].value, cases[i].with ? cases[i].with : "");
        fclose(f);
        assert_works(settings_load(&s, path, &e), e);
        check_weak(&s, &found);
        if (geteuid() == 0 || strcmp(cases[i].setting, "SANDBOX_USER") != 0)
            if (found.n != cases[i].weak || (found.n > 0 && !strstr(found.items[0].text, start)))
                fail_msg("%s=%s: %zu, %s", cases[i].setting, cases[i].value, found.n,
                         found.n > 0 ? found.items[0].text : "");
        for (size_t k = 0; k < found.n; k++) {
            assert_int_equal(found.items[k].state, FINDING_NOTE);
            assert_null(strstr(found.items[k].text, cases[i].value));
        }
        findings_clear(&found);
        settings_clear(&s);
        unit_remove_tree(folder);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_setting_that_weakens_is_told_and_no_other),
};
UNIT_TESTS(tests)
