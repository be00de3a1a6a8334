#include "config.h"

#include "common/base/log.h"
#include "common/base/utf8.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static char last_line[8192];
static int lines;

/* Runs the statement with standard error in a pipe; its lines are in last_line and lines. */
static int pipe_fds[2], saved;

static void capture_end(void)
{
    char got[8192];
    ssize_t n = read(pipe_fds[0], got, sizeof got - 1);
    for (ssize_t i = 0; i < n; i++)
        lines += got[i] == '\n';
    if (n > 0) {
        got[n - 1] = '\0';
        memcpy(last_line, got, (size_t)n);
    }
}

#define CAPTURED(statement)                                                                        \
    do {                                                                                           \
        saved = dup(STDERR_FILENO);                                                                \
        dup2(pipe_fds[1], STDERR_FILENO);                                                          \
        statement;                                                                                 \
        dup2(saved, STDERR_FILENO);                                                                \
        close(saved);                                                                              \
        capture_end();                                                                             \
    } while (0)

static int setup(void **state)
{
    (void)state;
    lines = 0;
    last_line[0] = '\0';
    log_setup(LOG_LEVEL_INFO, "test");
    return pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK);
}

static int teardown(void **state)
{
    (void)state;
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return 0;
}

static void a_line_says_level_role_and_text(void **state)
{
    (void)state;
    CAPTURED(log_info("started %d workers", 8));
    assert_string_equal(last_line, "info test: started 8 workers");
    log_set_role("broker");
    CAPTURED(log_error("no engine"));
    assert_string_equal(last_line, "error broker: no engine");
    CAPTURED(log_warn("w"));
    assert_string_equal(last_line, "warn broker: w");
}

static void levels_below_the_limit_are_silent(void **state)
{
    (void)state;
    CAPTURED(log_debug("hidden"));
    assert_int_equal(lines, 0);
    log_setup(LOG_LEVEL_ERROR, "test");
    CAPTURED(log_warn("hidden"));
    CAPTURED(log_info("hidden"));
    assert_int_equal(lines, 0);
    log_setup(LOG_LEVEL_DEBUG, "test");
    CAPTURED(log_debug("shown"));
    assert_int_equal(lines, 1);
}

static void text_from_outside_cannot_forge_lines_or_steer_a_terminal(void **state)
{
    (void)state;
    CAPTURED(log_info("%s", "a\nerror master: forged\r\x1b[2J\x7f\t"));
    assert_string_equal(last_line, "info test: a\\x0aerror master: forged\\x0d\\x1b[2J\\x7f\\x09");
    CAPTURED(log_info("%s", "\xc2\x9b"
                            "2J \u00a0\u00e9\U0001f600"));
    assert_string_equal(last_line, "info test: \\xc2\\x9b2J \u00a0\u00e9\U0001f600");
    CAPTURED(log_info("%s", "\xff\xc3(\xed\xa0\x80"));
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
            CAPTURED(log_info("%s", text));
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
    int after;
    CAPTURED({
        errno = ENOTDIR;
        log_info("to standard error");
        after = errno;
    });
    assert_int_equal(after, ENOTDIR);
    assert_int_equal(lines, 1);
    assert_string_equal(last_line, "info test: to standard error");
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
