/* Lines in which the kernel says what SELinux or AppArmor has denied. */
#include "config.h"

#include "fcgi/doctor/denials.h"
#include "tests/unit/unit.h"

static void each_module_s_lines_are_read(void **state)
{
    static const struct {
        const char *line;
        struct denial expected;
    } rows[] = {
        {"[12.5] audit: type=1400 audit(1800000000.123:42): apparmor=\"DENIED\" "
         "operation=\"connect\" "
         "profile=\"nginx\" name=\"/run/sandcgi/fastcgi.sock\" pid=7 comm=\"nginx\" "
         "requested_mask=\"wr\" denied_mask=\"wr\" fsuid=33 ouid=0",
         {"AppArmor", "nginx", "connect", "/run/sandcgi/fastcgi.sock", "nginx", 1800000000}},
        {"type=AVC msg=audit(1800000001.5:43): avc:  denied  { read open } for  pid=8 "
         "comm=\"nginx\" "
         "path=\"/var/lib/sandcgi/sandboxes/x\" dev=\"dm-0\" ino=5 "
         "scontext=system_u:system_r:httpd_t:s0 tcontext=system_u:object_r:var_lib_t:s0 "
         "tclass=file permissive=0",
         {"SELinux", "nginx", "read open", "/var/lib/sandcgi/sandboxes/x",
          "system_u:system_r:httpd_t:s0", 1800000001}},
        {"<36>audit(1800000002.0:1): avc:  denied  { search } for  pid=8 comm=6E67 "
         "name=\"sandcgi\"",
         {"SELinux", "6E67", "search", "sandcgi", "", 1800000002}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct denial *x = &rows[i].expected;
        struct denial d;
        assert_true(denial_read(rows[i].line, &d));
        assert_string_equal(d.module, x->module);
        assert_string_equal(d.program, x->program);
        assert_string_equal(d.what, x->what);
        assert_string_equal(d.target, x->target);
        assert_string_equal(d.profile, x->profile);
        assert_int_equal(d.unix_s, x->unix_s);
    }
}

static void other_lines_and_what_was_allowed_are_none(void **state)
{
    static const char *const lines[] = {
        "",
        "usb 1-1: new device",
        "audit(1.2:3): apparmor=\"ALLOWED\" operation=\"open\" profile=\"nginx\" comm=\"nginx\"",
        "audit(1.2:3): avc:  denied  { read } for comm=\"nginx\" permissive=1",
        "audit(1.2:3): avc:  denied  without end",
        "avc:  denied  { read",
    };
    struct denial d;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        assert_false(denial_read(lines[i], &d));
}

static void long_and_odd_values_are_cut_and_harmless(void **state)
{
    char line[1024];
    struct denial d;

    (void)state;
    snprintf(line, sizeof line,
             "apparmor=\"DENIED\" name=\"/%0500d\" comm=\"\xff\xc3\" profile=", 0);
    assert_true(denial_read(line, &d));
    assert_int_equal(strlen(d.target), sizeof d.target - 1);
    assert_string_equal(d.program, "?\?");
    assert_string_equal(d.profile, "");
    assert_int_equal(d.unix_s, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_module_s_lines_are_read),
    cmocka_unit_test(other_lines_and_what_was_allowed_are_none),
    cmocka_unit_test(long_and_odd_values_are_cut_and_harmless),
};
UNIT_TESTS(tests)
