#include "config.h"

#include "common/base/parse.h"
#include "tests/unit/unit.h"

#define UNTOUCHED 987654321

struct row {
    const char *text;
    uint64_t value;
};

static int plain(const char *text, uint64_t *out)
{
    return parse_u64(text, 0, UINT64_MAX, out);
}

static void expect_values(int (*parse)(const char *, uint64_t *), const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = UNTOUCHED;
        if (parse(rows[i].text, &value) < 0)
            fail_msg("\"%s\" was refused", rows[i].text);
        assert_int_equal(value, rows[i].value);
    }
}

static void expect_refused(int (*parse)(const char *, uint64_t *), const char *const *texts)
{
    for (; *texts; texts++) {
        uint64_t value = UNTOUCHED;
        if (parse(*texts, &value) == 0)
            fail_msg("\"%s\" was accepted", *texts);
        assert_int_equal(value, UNTOUCHED);
    }
}

/* What no parser of amounts accepts. */
static const char *const never[] = {
    "",      " ",   "-1",  "+1",  " 1",   "1 ",   "1\n",
    "0x10",  "1e3", "abc", "１",  "1,5",  "1_0",  "--",
    "1.2.3", "1kk", "k",   "1 k", "1K B", "1mss", "99999999999999999999999",
    NULL};

static void whole_numbers_are_digits_only(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"0", 0}, {"7", 7}, {"007", 7}, {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"18446744073709551616", "1.0", "1k", "1s", NULL};
    expect_values(plain, rows, ARRAY_LEN(rows));
    expect_refused(plain, never);
    expect_refused(plain, bad);
}

static void whole_numbers_keep_to_the_callers_range(void **state)
{
    (void)state;
    uint64_t value = UNTOUCHED;
    assert_int_equal(parse_u64("9", 10, 20, &value), -1);
    assert_int_equal(parse_u64("21", 10, 20, &value), -1);
    assert_int_equal(value, UNTOUCHED);
    assert_int_equal(parse_u64("10", 10, 20, &value), 0);
    assert_int_equal(value, 10);
    assert_int_equal(parse_u64("20", 10, 20, &value), 0);
    assert_int_equal(value, 20);
    assert_int_equal(parse_u64(NULL, 0, 1, &value), -1);
}

static void sizes_are_powers_of_1024(void **state)
{
    (void)state;
    static const struct row rows[] = {{"0", 0},
                                      {"512", 512},
                                      {"64k", 65536},
                                      {"64K", 65536},
                                      {"256m", 268435456},
                                      {"2G", 2147483648},
                                      {"7b", 7},
                                      {"2KiB", 2048},
                                      {"2kb", 2048},
                                      {"3MB", 3145728},
                                      {"1gib", 1073741824},
                                      {"1t", 1099511627776},
                                      {"17179869183g", 17179869183ull << 30}};
    static const char *const bad[] = {"1kbb", "1.5m", "1i", "1 k", "17179869184g", "1mk", NULL};
    expect_values(parse_bytes, rows, ARRAY_LEN(rows));
    expect_refused(parse_bytes, never);
    expect_refused(parse_bytes, bad);
}

static void durations_become_milliseconds(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"0", 0},       {"30", 30000},   {"30s", 30000},      {"1500ms", 1500},
        {"5m", 300000}, {"2h", 7200000}, {"30d", 2592000000}, {"2w", 1209600000}};
    static const char *const bad[] = {"1.5s", "1y", "30S", "1m30s", "5124095576030432h", NULL};
    expect_values(parse_duration_ms, rows, ARRAY_LEN(rows));
    expect_refused(parse_duration_ms, never);
    expect_refused(parse_duration_ms, bad);
}

static void decimals_become_thousandths(void **state)
{
    (void)state;
    static const struct row rows[] = {{"0", 0},     {"2", 2000},     {"0.5", 500},
                                      {"0.05", 50}, {"1.125", 1125}, {"10.010", 10010}};
    static const char *const bad[] = {".5", "2.", "0.1234", "0.-5", "18446744073709551.616", NULL};
    expect_values(parse_milli, rows, ARRAY_LEN(rows));
    expect_refused(parse_milli, never);
    expect_refused(parse_milli, bad);
}

static void days_and_moments_are_unix_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t at;
    } good[] = {{"1970-01-01", 86400},
                {"2026-12-31", 1798761600},
                {"2028-02-29", 1835481600},
                {"2026-12-31T18:00:05Z", 1798740005},
                {"9999-12-31", 253402300800}};
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-13-01",
                                      "2026-00-01",
                                      "2026-02-29",
                                      "2026-04-31",
                                      "2026-1-1",
                                      "26-01-01",
                                      "0000-01-01",
                                      "2026-12-31T18:00:00",
                                      "2026-12-31 ",
                                      "2026-01-00",
                                      "+026-01-01",
                                      "2026-12-31T24:00:00Z",
                                      "2026-12-31T18:60:00Z",
                                      "2026-12-31T18:00:60Z",
                                      "2026-12-31T18:00:00z"};
    int64_t at = -7;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (parse_date(bad[i], &at) == 0 || at != -7)
            fail_msg("%s is taken", bad[i]);
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(parse_date(good[i].text, &at), 0);
        assert_int_equal(at, good[i].at);
    }
}

static void modes_are_octal(void **state)
{
    (void)state;
    unsigned mode = UNTOUCHED;
    assert_int_equal(parse_mode("0660", &mode), 0);
    assert_int_equal(mode, 0660);
    assert_int_equal(parse_mode("755", &mode), 0);
    assert_int_equal(mode, 0755);
    assert_int_equal(parse_mode("7777", &mode), 0);
    mode = UNTOUCHED;
    static const char *const bad[] = {"", "8", "10000", "-7", "07 ", "0o7", "u+x", NULL};
    for (const char *const *text = bad; *text; text++)
        assert_int_equal(parse_mode(*text, &mode), -1);
    assert_int_equal(mode, UNTOUCHED);
}

static void truth_has_eight_spellings(void **state)
{
    (void)state;
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no",
                                                                                "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        bool value = false;
        assert_int_equal(parse_bool(yes[i], &value), 0);
        assert_true(value);
        assert_int_equal(parse_bool(no[i], &value), 0);
        assert_false(value);
    }
    static const char *const bad[] = {"", "TRUE", "t", "2", "yes ", "00", "enabled", NULL};
    bool value = true;
    for (const char *const *text = bad; *text; text++)
        assert_int_equal(parse_bool(*text, &value), -1);
    assert_int_equal(parse_bool(NULL, &value), -1);
    assert_true(value);
}

static void percent_stands_for_a_byte(void **state)
{
    static const char *const bad[] = {"", "%", "%4", "%4g", "%g4", "a41", "% 4", "%-1", "4%41"};

    (void)state;
    assert_int_equal(parse_percent("%41", 3), 'A');
    assert_int_equal(parse_percent("%4a%", 4), 'J');
    assert_int_equal(parse_percent("%fF", 3), 0xff);
    assert_int_equal(parse_percent("%00", 3), 0);
    assert_int_equal(parse_percent("%41", 2), -1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_equal(parse_percent(bad[i], strlen(bad[i])), -1);
}

static void a_share_is_a_size_or_a_percentage(void **state)
{
    uint64_t bytes = 1, percent = 1;

    (void)state;
    assert_int_equal(parse_share("50%", 90, &bytes, &percent), 0);
    assert_true(bytes == 0 && percent == 50);
    assert_int_equal(parse_share("2k", 90, &bytes, &percent), 0);
    assert_true(bytes == 2048 && percent == 0);
    assert_int_equal(parse_share("91%", 90, &bytes, &percent), -1);
    assert_int_equal(parse_share("%", 90, &bytes, &percent), -1);
    assert_int_equal(parse_share("5%%", 90, &bytes, &percent), -1);
    assert_int_equal(parse_share("-5%", 90, &bytes, &percent), -1);
    assert_true(bytes == 2048 && percent == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole_numbers_are_digits_only),
    cmocka_unit_test(whole_numbers_keep_to_the_callers_range),
    cmocka_unit_test(sizes_are_powers_of_1024),
    cmocka_unit_test(durations_become_milliseconds),
    cmocka_unit_test(decimals_become_thousandths),
    cmocka_unit_test(days_and_moments_are_unix_seconds),
    cmocka_unit_test(modes_are_octal),
    cmocka_unit_test(truth_has_eight_spellings),
    cmocka_unit_test(percent_stands_for_a_byte),
    cmocka_unit_test(a_share_is_a_size_or_a_percentage),
};
UNIT_TESTS(tests)
