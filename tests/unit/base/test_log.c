#include "config.h"

#include "common/base/log.h"
#include "common/base/trace.h"
#include "common/base/utf8.h"
#include "common/rpc/json.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
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

/* ---- fields, notes and forms ---- */

static void fields_and_notes_follow_the_text(void **state)
{
    (void)state;
    const struct log_field fields[] = {{.name = "status", .number = 200},
                                       {.name = "error", .text = ""},
                                       {.name = "outcome", .text = "o k\n"}};
    log_note(LOG_TENANT, "a b=c");
    trace_conversation("t", "c");
    log_note(LOG_RUN, NULL);
    CAPTURED(log_with(LOG_LEVEL_INFO, fields, ARRAY_LEN(fields), "x"));
    /* printf 't\nc' | sha256sum */
    assert_string_equal(
        last_line, "info test: x status=200 outcome=o_k\\x0a tenant=t conversation=6291489c3068");
    log_forget();
    CAPTURED(log_info("x"));
    assert_string_equal(last_line, "info test: x");
}

static void a_json_line_is_an_object_whatever_it_holds(void **state)
{
    (void)state;
    static char longer[9000];
    struct err e = ERR_INIT;
    const char *const texts[] = {"plain", "\"quoted\" \\ \x1b[2J \xff \u00e9", longer};

    memset(longer, '"', sizeof longer - 1);
    log_set_format(LOG_FORMAT_JSON);
    log_note(LOG_CLIENT, "\"\\\xff");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CAPTURED(log_with(LOG_LEVEL_WARN, &(struct log_field){.name = "ms", .number = -3}, 1, "%s",
                          texts[i]));
        json_auto_t *line = json_parse(last_line, strlen(last_line), 4, &e);
        assert_non_null(line);
        assert_string_equal(json_get_string(line, "level"), "warn");
        assert_string_equal(json_get_string(line, "client"), "\"\\\\xff");
        assert_int_equal(json_get_integer(line, "ms", 0), -3);
        assert_int_equal(strlen(json_get_string(line, "time")), 24);
        assert_true(strlen(last_line) < 2048);
    }
    log_forget();
}

static void lines_bear_the_time_but_not_under_journald(void **state)
{
    (void)state;
    char stream[64], recent[LOG_RECENT][LOG_RECENT_MAX];
    struct stat st;
    time_t now = time(NULL);
    struct tm tm;

    log_set_format(LOG_FORMAT_TEXT);
    CAPTURED(log_info("x"));
    assert_non_null(strptime(last_line, "%Y-%m-%dT%H:%M:%S", &tm));
    assert_true(labs((long)(timegm(&tm) - now)) < 10);
    assert_string_equal(last_line + 24, " info test: x");
    assert_int_equal(fstat(pipe_fds[1], &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_share();
    CAPTURED(log_set_format(LOG_FORMAT_TEXT); log_warn("x"));
    assert_string_equal(last_line, "<4>warn test: x");
    assert_int_equal(log_recent(recent), 1);
    assert_string_equal(recent[0], "warn test: x"); /* the mark is for journald alone */
    log_unshare();
    unsetenv("JOURNAL_STREAM");
    log_set_format(LOG_FORMAT_TEXT);
}

static void a_log_that_was_renamed_is_made_anew(void **state)
{
    (void)state;
    char path[] = "/tmp/test-log-XXXXXX", moved[64], text[256] = "";
    struct err e = ERR_INIT;
    int stderr_fd = dup(STDERR_FILENO), fd = mkstemp(path);

    snprintf(moved, sizeof moved, "%s.1", path);
    assert_int_equal(log_open(path, &e), 0);
    log_info("first");
    assert_int_equal(rename(path, moved), 0);
    log_info("second");
    assert_int_equal(log_reopen(&e), 0);
    log_info("third");
    dup2(stderr_fd, STDERR_FILENO);
    close(stderr_fd);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_non_null(strstr(text, "first"));
    assert_non_null(strstr(text, "second"));
    assert_null(strstr(text, "third"));
    close(fd);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    memset(text, 0, sizeof text);
    assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
    assert_non_null(strstr(text, "third"));
    close(fd);
    unlink(path);
    unlink(moved);
    assert_int_equal(log_open("/nowhere/at/all", &e), -1);
}

static void a_trace_goes_on_with_a_span_of_ours(void **state)
{
    (void)state;
    static const char given[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    assert_false(trace_take(NULL));
    assert_false(trace_take("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"));
    assert_true(trace_take(given));
    assert_memory_equal(log_noted(LOG_TRACE), given, 36);
    assert_string_not_equal(log_noted(LOG_TRACE), given);
    assert_string_equal(log_noted(LOG_TRACE) + 52, "-01");
    trace_begin();
    char made[TRACE_LEN + 1];
    memcpy(made, log_noted(LOG_TRACE), sizeof made);
    assert_true(trace_take(made)); /* well-formed */
    log_forget();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_line_says_level_role_and_text, setup, teardown),
    cmocka_unit_test_setup_teardown(levels_below_the_limit_are_silent, setup, teardown),
    cmocka_unit_test_setup_teardown(text_from_outside_cannot_forge_lines_or_steer_a_terminal, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_long_line_is_cut_at_2_kib_and_says_so, setup, teardown),
    cmocka_unit_test_setup_teardown(fields_and_notes_follow_the_text, setup, teardown),
    cmocka_unit_test_setup_teardown(logging_keeps_errno_and_writes_one_line, setup, teardown),
    cmocka_unit_test_setup_teardown(a_json_line_is_an_object_whatever_it_holds, setup, teardown),
    cmocka_unit_test_setup_teardown(lines_bear_the_time_but_not_under_journald, setup, teardown),
    cmocka_unit_test_setup_teardown(a_log_that_was_renamed_is_made_anew, setup, teardown),
    cmocka_unit_test_setup_teardown(a_trace_goes_on_with_a_span_of_ours, setup, teardown),
};
UNIT_TESTS(tests)
