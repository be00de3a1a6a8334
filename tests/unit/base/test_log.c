#include "config.h"

#include "common/base/log.h"
#include "common/base/utf8.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char last_line[8192];
static int lines;

static void keep_line(enum log_level level, const char *line)
{
    (void)level;
    snprintf(last_line, sizeof last_line, "%s", line);
    lines++;
}

static int setup(void **state)
{
    (void)state;
    lines = 0;
    last_line[0] = '\0';
    log_setup(LOG_LEVEL_INFO, "test");
    log_set_sink(keep_line);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_set_sink(NULL);
    return 0;
}

static void a_line_says_level_role_and_text(void **state)
{
    (void)state;
    log_info("started %d workers", 8);
    assert_string_equal(last_line, "info test: started 8 workers");
    log_set_role("broker");
    log_error("no engine");
    assert_string_equal(last_line, "error broker: no engine");
    log_warn("w");
    assert_string_equal(last_line, "warn broker: w");
}

static void levels_below_the_limit_are_silent(void **state)
{
    (void)state;
    log_debug("hidden");
    assert_int_equal(lines, 0);
    log_setup(LOG_LEVEL_ERROR, "test");
    log_warn("hidden");
    log_info("hidden");
    assert_int_equal(lines, 0);
    log_setup(LOG_LEVEL_DEBUG, "test");
    log_debug("shown");
    assert_int_equal(lines, 1);
}

static void text_from_outside_cannot_forge_lines_or_steer_a_terminal(void **state)
{
    (void)state;
    log_info("%s", "a\nerror master: forged\r\x1b[2J\x7f\t");
    assert_string_equal(last_line, "info test: a\\x0aerror master: forged\\x0d\\x1b[2J\\x7f\\x09");
    log_info("%s", "\xc2\x9b"
                   "2J \u00a0\u00e9\U0001f600");
    assert_string_equal(last_line, "info test: \\xc2\\x9b2J \u00a0\u00e9\U0001f600");
    log_info("%s", "\xff\xc3(\xed\xa0\x80");
    assert_string_equal(last_line, "info test: \\xff\\xc3(\\xed\\xa0\\x80");
}

static void a_long_line_is_cut_at_2_kib_and_says_so(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "\n", "\u00e9", "\U0001f600", "\xff"};
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        for (size_t count = 1; count <= 3000; count += count < 400 || count > 600 ? 97 : 1) {
            char text[16000] = "";
            for (size_t k = 0; k < count; k++)
                memcpy(text + k * strlen(units[i]), units[i], strlen(units[i]) + 1);
            log_info("%s", text);
            size_t len = strlen(last_line);
            assert_true(len < 2048);
            assert_true(utf8_valid(last_line, len));
            if (len > 2000)
                continue;
            assert_true(len < 4 || strcmp(last_line + len - 3, "...") != 0);
        }
        assert_string_equal(last_line + strlen(last_line) - 3, "...");
    }
}

static void logging_keeps_errno_and_writes_one_line(void **state)
{
    (void)state;
    int pipe_fds[2], saved = dup(STDERR_FILENO);
    char got[100] = "";
    assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
    dup2(pipe_fds[1], STDERR_FILENO);
    log_set_sink(NULL);
    errno = ENOTDIR;
    log_info("to standard error");
    int after = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t n = read(pipe_fds[0], got, sizeof got - 1);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    assert_int_equal(after, ENOTDIR);
    assert_true(n > 0);
    assert_string_equal(got, "info test: to standard error\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_says_level_role_and_text, setup, teardown),
        cmocka_unit_test_setup_teardown(levels_below_the_limit_are_silent, setup, teardown),
        cmocka_unit_test_setup_teardown(text_from_outside_cannot_forge_lines_or_steer_a_terminal,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_line_is_cut_at_2_kib_and_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(logging_keeps_errno_and_writes_one_line, setup, teardown),
    };
    return RUN_TESTS(tests);
}
