#include "config.h"

#include "common/base/conf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "tests/unit/unit.h"

#include <sys/stat.h>

struct sample {
    char *name, *secret, *words;
    uint64_t workers, size, time, cpus, fixed;
    bool flag;
    int level;
};

#define FIELD(f) offsetof(struct sample, f)

static const struct conf_row table[] = {
    {"UNIT_NAME", CONF_STRING, FIELD(name), "initial", 2, 20, NULL, CONF_REQUIRED, "A name."},
    {"UNIT_SECRET", CONF_STRING, FIELD(secret), "", 8, 0, NULL, CONF_SECRET, "A|secret."},
    {"UNIT_WORKERS", CONF_NUMBER, FIELD(workers), "8", 1, 100, NULL, 0, "Workers."},
    {"UNIT_SIZE", CONF_BYTES, FIELD(size), "16m", 1024, 1 << 30, NULL, 0, "A size."},
    {"UNIT_TIME", CONF_DURATION, FIELD(time), "30s", 100, 0, NULL, 0, "A time."},
    {"UNIT_CPUS", CONF_MILLI, FIELD(cpus), "0.5", 10, 64000, NULL, CONF_AUTO, "CPUs."},
    {"UNIT_FLAG", CONF_BOOL, FIELD(flag), "true", 0, 0, NULL, 0, "A flag."},
    {"UNIT_WORDS", CONF_STRING, FIELD(words), "", 0, 0, NULL, CONF_LIST, "Words."},
    {"UNIT_FIXED", CONF_NUMBER, FIELD(fixed), "7", 1, 100, NULL, CONF_FIXED, "Fixed."},
    {"UNIT_LEVEL", CONF_CHOICE, FIELD(level), "info", 0, 0, "error|warn|info", 0, "A level."},
    {0},
};

static char folder[PATH_MAX], file[PATH_MAX + 20];

static int setup(void **state)
{
    (void)state;
    unit_make_folder(folder);
    snprintf(file, sizeof file, "%s/settings", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (const struct conf_row *row = table; row->name; row++)
        unsetenv(row->name);
    unlink(file);
    rmdir(folder);
    return 0;
}

static int load_bytes(struct sample *out, const void *text, size_t len, struct err *e)
{
    *out = (struct sample){0};
    unit_write_file(file, text, len);
    return conf_load(&(struct conf_source){table, .path = file}, out, NULL, e);
}

static int load_text(struct sample *out, const char *text, struct err *e)
{
    return load_bytes(out, text, strlen(text), e);
}

static void without_a_file_the_defaults_hold(void **state)
{
    (void)state;
    struct sample s = {0};
    struct err e;
    assert_works(conf_load(&(struct conf_source){.table = table}, &s, NULL, &e), e);
    assert_string_equal(s.name, "initial");
    assert_string_equal(s.secret, "");
    assert_int_equal(s.workers, 8);
    assert_int_equal(s.size, 16 << 20);
    assert_int_equal(s.time, 30000);
    assert_int_equal(s.cpus, 500);
    assert_true(s.flag);
    assert_int_equal(s.fixed, 7);
    assert_int_equal(s.level, 2);
    conf_clear(table, &s);
    assert_null(s.name);
}

static void a_file_sets_values_of_every_type(void **state)
{
    (void)state;
    struct sample s;
    struct err e;
    assert_works(
        load_text(&s,
                  "# a comment\n\n  \t\n"
                  "UNIT_NAME=plain words\n"
                  "export UNIT_SECRET='quoted # \"kept\"'\r\n"
                  "  UNIT_WORKERS = 12 \n"
                  "UNIT_SIZE=\"2k\"\n"
                  "UNIT_TIME=1500ms\nUNIT_CPUS=1.25\nUNIT_FLAG=off\nUNIT_WORDS= a,b  c, d ,\n"
                  "PATH=/elsewhere\nHOMEX=1\n"
                  "UNIT_LEVEL=warn",
                  &e),
        e);
    assert_string_equal(s.name, "plain words");
    assert_string_equal(s.secret, "quoted # \"kept\"");
    assert_int_equal(s.workers, 12);
    assert_int_equal(s.size, 2048);
    assert_int_equal(s.time, 1500);
    assert_int_equal(s.cpus, 1250);
    assert_false(s.flag);
    assert_string_equal(s.words, "a,b,c,d");
    assert_int_equal(s.level, 1);
    conf_clear(table, &s);
}

static void the_environment_wins_over_the_file(void **state)
{
    (void)state;
    struct sample s;
    struct err e;
    setenv("UNIT_WORKERS", "33", 1);
    assert_works(load_text(&s, "UNIT_WORKERS=12\nUNIT_NAME=filed\n", &e), e);
    assert_int_equal(s.workers, 33);
    assert_string_equal(s.name, "filed");
    conf_clear(table, &s);

    setenv("UNIT_WORKERS", "x", 1);
    assert_fails(load_text(&s, "", &e), ERR_INVALID, e);
    assert_contains(e.text, "environment: UNIT_WORKERS is \"x\"");
    conf_clear(table, &s);
}

static void an_empty_value_empties_a_string_and_resets_the_rest(void **state)
{
    (void)state;
    struct sample s;
    struct err e;
    assert_works(load_text(&s,
                           "UNIT_SECRET=long enough\nUNIT_SECRET=\n"
                           "UNIT_WORKERS=9\nUNIT_WORKERS=\nUNIT_LEVEL=\"\"\n",
                           &e),
                 e);
    assert_string_equal(s.secret, "");
    assert_int_equal(s.workers, 8);
    assert_int_equal(s.level, 2);
    conf_clear(table, &s);
}

struct bad_row {
    const char *text, *part, *other;
};

static const struct bad_row bad_files[] = {
    {"\nUNIT_WORKERS=12x\n", "line 2: UNIT_WORKERS is \"12x\"", "a whole number from 1 to 100"},
    {"UNIT_WORKERS=101", "UNIT_WORKERS is \"101\"", "from 1 to 100"},
    {"UNIT_SIZE=1023", "a size from 1k to 1g", "such as"},
    {"UNIT_TIME=99ms", "a time of at least 100ms", "such as"},
    {"UNIT_CPUS=0.0001", "a number from 0.01 to 64", "such as"},
    {"UNIT_FLAG=maybe", "true or false", "maybe"},
    {"UNIT_LEVEL=loud", "error, warn or info", "loud"},
    {"UNIT_LEVEL=warn|info", "error, warn or info", "UNIT_LEVEL"},
    {"UNIT_NAME=x", "text of 2 to 20 bytes", "UNIT_NAME is \"x\""},
    {"UNIT_NAME=xxxxxxxxxxxxxxxxxxxxx", "text of 2 to 20 bytes", "line 1"},
    {"UNIT_NAME=a\tb", "without control characters", "UNIT_NAME"},
    {"UNIT_NAME=\xff\xfe", "UNIT_NAME", "must be text"},
    {"UNIT_NAME=\n", "UNIT_NAME must be set", "environment"},
    {"UNIT_NAME='open\n", "the quote is not closed", "line 1: UNIT_NAME"},
    {"UNIT_NAME='\n", "the quote is not closed", "line 1"},
    {"UNIT_WORKER=1", "there is no setting UNIT_WORKER", "line 1"},
    {"UNIT_NAME", "expected KEY=VALUE", "line 1"},
    {"=x", "expected KEY=VALUE", "line 1"},
    {"UNIT NAME=x", "expected KEY=VALUE", "line 1"},
    {"UNIT_NAME='open' x\n", "the quote is not closed", "line 1: UNIT_NAME"},
    {"9UNIT=x", "expected KEY=VALUE", "line 1"},
};

static void every_mistake_is_named_with_line_key_and_what_is_allowed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
        struct sample s;
        struct err e;
        assert_fails(load_text(&s, bad_files[i].text, &e), ERR_INVALID, e);
        assert_contains(e.text, bad_files[i].part);
        assert_contains(e.text, bad_files[i].other);
        conf_clear(table, &s);
    }
}

static void a_secret_is_never_shown(void **state)
{
    (void)state;
    static const char *const texts[] = {"UNIT_SECRET=hush", "UNIT_SECRET=hushhush\x01",
                                        "UNIT_SECRET='hushhush", "hushhush"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sample s;
        struct err e;
        assert_fails(load_text(&s, texts[i], &e), ERR_INVALID, e);
        assert_null(strstr(e.text, "hush"));
        conf_clear(table, &s);
    }
    struct sample s;
    struct err e;
    AUTO_BUF struct buf out = BUF_INIT(100);
    assert_works(load_text(&s, "UNIT_SECRET=hushhush", &e), e);
    conf_format(conf_find(table, "UNIT_SECRET"), &s, &out);
    assert_string_equal(buf_str(&out), "(secret)");
    conf_clear(table, &s);
    buf_reset(&out);
    conf_format(conf_find(table, "UNIT_SECRET"), &s, &out);
    assert_string_equal(buf_str(&out), "(empty)");
}

static void a_file_that_is_missing_binary_or_huge_is_refused(void **state)
{
    (void)state;
    struct sample s = {0};
    struct err e;
    assert_fails(
        conf_load(&(struct conf_source){table, .path = "/nonexistent/settings"}, &s, NULL, &e),
        ERR_NOT_FOUND, e);
    assert_contains(e.text, "/nonexistent/settings");
    conf_clear(table, &s);
    assert_fails(load_bytes(&s, "UNIT_NAME=ab\0cd\n", 16, &e), ERR_INVALID, e);
    assert_contains(e.text, "NUL");
    conf_clear(table, &s);
    AUTO_FREE char *huge = calloc(1, (1 << 20) + 2);
    memset(huge, '\n', (1 << 20) + 1);
    assert_fails(load_text(&s, huge, &e), ERR_LIMIT, e);
    conf_clear(table, &s);
}

struct format_row {
    const char *key, *text, *printed;
};

static const struct format_row formats[] = {
    {"UNIT_NAME", "some words", "some words"},
    {"UNIT_WORKERS", "007", "7"},
    {"UNIT_SIZE", "1024", "1k"},
    {"UNIT_SIZE", "1025", "1025"},
    {"UNIT_SIZE", "1024m", "1g"},
    {"UNIT_SIZE", "1536k", "1536k"},
    {"UNIT_TIME", "90", "90s"},
    {"UNIT_TIME", "120s", "2m"},
    {"UNIT_TIME", "1500ms", "1500ms"},
    {"UNIT_TIME", "60m", "1h"},
    {"UNIT_CPUS", "2", "2"},
    {"UNIT_CPUS", "0.50", "0.5"},
    {"UNIT_CPUS", "1.025", "1.025"},
    {"UNIT_CPUS", "0.010", "0.01"},
    {"UNIT_FLAG", "yes", "true"},
    {"UNIT_FLAG", "0", "false"},
    {"UNIT_LEVEL", "error", "error"},
    {"UNIT_LEVEL", "info", "info"},
};

static void values_print_as_text_that_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct sample s = {0};
        struct err e;
        AUTO_BUF struct buf out = BUF_INIT(100), again = BUF_INIT(100);
        const struct conf_row *row = conf_find(table, formats[i].key);
        assert_non_null(row);
        assert_works(conf_set(row, &s, formats[i].text, "test", &e), e);
        conf_format(row, &s, &out);
        assert_string_equal(buf_str(&out), formats[i].printed);
        assert_works(conf_set(row, &s, buf_str(&out), "test", &e), e);
        conf_format(row, &s, &again);
        assert_string_equal(buf_str(&again), buf_str(&out));
        conf_clear(table, &s);
    }
    assert_null(conf_find(table, "UNIT_"));
}

static void an_amount_may_be_automatic_where_its_row_says_so(void **state)
{
    (void)state;
    struct sample s = {.cpus = 7};
    struct err e;
    assert_works(conf_set(conf_find(table, "UNIT_CPUS"), &s, "auto", "test", &e), e);
    assert_int_equal(s.cpus, 0);
    assert_fails(conf_set(conf_find(table, "UNIT_CPUS"), &s, "0", "test", &e), ERR_INVALID, e);
    assert_contains(e.text, "must be auto, or a number from 0.01 to 64");
    assert_fails(conf_set(conf_find(table, "UNIT_SIZE"), &s, "auto", "test", &e), ERR_INVALID, e);
}

static const struct conf_group groups[] = {
    {"UNIT_NAME", "One", "About it."}, {"UNIT_CPUS", "Two", ""}, {0}};

static void the_table_prints_for_readers(void **state)
{
    (void)state;
    AUTO_BUF struct buf out = BUF_INIT(8192);
    conf_print_markdown(table, NULL, &out);
    assert_contains(buf_str(&out), "| `UNIT_WORKERS` | `8` | Workers. |\n");
    assert_contains(buf_str(&out), "| `UNIT_SECRET` | (empty) | A\\|secret. |\n");
    buf_reset(&out);
    conf_print_markdown(table, groups, &out);
    assert_contains(buf_str(&out), "### One\n\nAbout it.\n\n| Setting | Default");
    assert_contains(
        buf_str(&out),
        " |\n\n### Two\n\n| Setting | Default | Meaning |\n|---|---|---|\n| `UNIT_CPUS`");
    assert_contains(buf_str(&out),
                    "### Fixed values\n\nThey cannot be set. Messages name them so.\n\n| Name | "
                    "Value | Meaning |\n|---|---|---|\n| `UNIT_FIXED` | `7` | Fixed. |\n");
    buf_reset(&out);
    conf_print_help(table, groups, &out);
    assert_contains(buf_str(&out), "  UNIT_WORKERS=8\n      Workers.\n");
    buf_reset(&out);
    conf_print_man(table, groups, &out);
    assert_contains(buf_str(&out), ".TP\n.B UNIT_WORKERS\nWorkers.\n.br\nValue: a whole number");
    assert_contains(buf_str(&out), "\n.br\nDefault: 8\n.TP\n");
    assert_contains(buf_str(&out), ".SS Two\n");
    assert_null(strstr(buf_str(&out), "UNIT_FIXED"));
    assert_true(buf_ok(&out));
}

static void roff_sees_no_command_in_a_text(void **state)
{
    (void)state;
    static const struct conf_row rows[] = {
        {"UNIT_ROFF", CONF_STRING, 0, ".5\\", 0, 0, NULL, 0, "'a' is a-b. .B is e.g. text. Bold."},
        {0},
    };
    AUTO_BUF struct buf out = BUF_INIT(8192);
    conf_print_man(rows, NULL, &out);
    assert_contains(buf_str(&out), ".B UNIT_ROFF\n\\&'a' is a\\-b. .B is e.g. text.\nBold.\n.br\n");
    assert_contains(buf_str(&out), "Default: \\&.5\\e\n");
}

static const struct conf_other others[] = {
    {.name = "UNIT_JOBS", .ours = "UNIT_WORKERS"},
    {.name = "UNIT_WAIT_S", .ours = "UNIT_TIME", .unit = "s"},
    {.name = "UNIT_KEY", .ours = "UNIT_SECRET"},
    {.name = "UNIT_GONE", .instead = "nothing is lost"},
    {0},
};

static bool fixed_too;

static int load_others(struct sample *out, const char *text, struct buf *notes, struct err *e)
{
    *out = (struct sample){0};
    unit_write_file(file, text, strlen(text));
    return conf_load(&(struct conf_source){table, others, file, .fixed_too = fixed_too}, out, notes,
                     e);
}

static void names_of_others_count_where_ours_are_not_set(void **state)
{
    struct sample s;
    struct err e;
    AUTO_BUF struct buf notes = BUF_INIT(4096);

    (void)state;
    assert_works(
        load_others(&s, "UNIT_JOBS=3\nUNIT_WAIT_S=7\nUNIT_GONE=x\nUNIT_KEY=hushhush\n", &notes, &e),
        e);
    assert_int_equal(s.workers, 3);
    assert_int_equal(s.time, 7000);
    assert_contains(buf_str(&notes), "line 1: UNIT_JOBS is taken for UNIT_WORKERS=3\n");
    assert_contains(buf_str(&notes), "line 2: UNIT_WAIT_S is taken for UNIT_TIME=7s\n");
    assert_contains(buf_str(&notes), "UNIT_GONE is not taken: nothing is lost\n");
    assert_contains(buf_str(&notes), "UNIT_KEY is taken for UNIT_SECRET=(secret)\n");
    assert_null(strstr(buf_str(&notes), "hushhush"));
    conf_clear(table, &s);
    buf_reset(&notes);
    setenv("UNIT_WORKERS", "5", 1); /* ours counts wherever it is */
    assert_works(load_others(&s, "UNIT_JOBS=3\nUNIT_TIME=2s\nUNIT_WAIT_S=7\n", &notes, &e), e);
    assert_int_equal(s.workers, 5);
    assert_int_equal(s.time, 2000);
    assert_contains(buf_str(&notes), "UNIT_JOBS is not taken: UNIT_WORKERS\n");
    conf_clear(table, &s);
    unsetenv("UNIT_WORKERS");
    assert_fails(load_others(&s, "UNIT_JOBS=many\n", &notes, &e), ERR_INVALID, e);
    assert_contains(e.text, "UNIT_WORKERS");
    conf_clear(table, &s);
}

static void a_misspelt_name_is_refused_with_the_nearest(void **state)
{
    static const char *const names[][2] = {
        {"UNIT_WORKER=1", "there is UNIT_WORKERS"},  {"UNIT_WROKERS=1", "there is UNIT_WORKERS"},
        {"UNIT_TIMES=1", "there is UNIT_TIME"},      {"unit_workers=1", "there is UNIT_WORKERS"},
        {"UINT_TIME=1", "there is UNIT_TIME"},       {"NIT_TIME=1", "there is UNIT_TIME"},
        {"UNIT_QUITE_ANOTHER=1", "a typing error?"}, {"unit_quite_another=1", "a typing error?"}};
    struct sample s;
    struct err e;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_fails(load_text(&s, names[i][0], &e), ERR_INVALID, e);
        assert_contains(e.text, names[i][1]);
        conf_clear(table, &s);
    }
}

static void names_that_are_not_near_ours_are_others(void **state)
{
    struct sample s;
    struct err e;

    (void)state;
    assert_works(load_text(&s, "PATH=/bin\nTIME=1\nUNIT=2\nXYZ_TIME=3\n", &e), e);
    conf_clear(table, &s);
}

static void a_name_of_the_environment_that_is_nearly_ours_is_noted(void **state)
{
    struct sample s;
    struct err e;
    AUTO_BUF struct buf notes = BUF_INIT(4096);

    (void)state;
    setenv("UNIT_WROKERS", "1", 1);
    setenv("UNIT_QUITE_ANOTHER", "1", 1);
    assert_works(load_others(&s, "", &notes, &e), e);
    assert_contains(buf_str(&notes),
                    "environment: there is no setting UNIT_WROKERS; there is UNIT_WORKERS\n");
    assert_null(strstr(buf_str(&notes), "QUITE"));
    unsetenv("UNIT_WROKERS");
    unsetenv("UNIT_QUITE_ANOTHER");
    conf_clear(table, &s);
}

static void what_is_fixed_cannot_be_set_and_is_noted_once(void **state)
{
    struct sample s;
    struct err e;
    AUTO_BUF struct buf notes = BUF_INIT(4096);

    (void)state;
    assert_works(load_others(&s, "UNIT_FIXED=9\n", &notes, &e), e);
    assert_int_equal(s.fixed, 7);
    assert_string_equal(strchr(buf_str(&notes), ','),
                        ", line 1: UNIT_FIXED is no longer a setting: it is 7\n");
    conf_clear(table, &s);
    buf_reset(&notes);
    fixed_too = true;
    assert_works(load_others(&s, "UNIT_FIXED=9\n", &notes, &e), e);
    assert_int_equal(s.fixed, 9);
    assert_string_equal(buf_str(&notes), "");
    fixed_too = false;
    conf_clear(table, &s);
}

/* tests/nginx/test_start.sh reads the same with the shell. */
static void every_line_of_the_grammar_has_the_value_that_is_expected(void **state)
{
    const char *top = getenv("srcdir") ? getenv("srcdir") : ".";
    AUTO_FREE char *lines = mem_printf("%s/tests/settings/lines.env", top);
    AUTO_FREE char *expected = mem_printf("%s/tests/settings/lines.expected", top);
    AUTO_BUF struct buf text = BUF_INIT(8192);
    struct err e;
    size_t n = 0;

    (void)state;
    assert_works(fdio_read_file(expected, &text, &e), e);
    for (char *next = text.data, *line; (line = strsep(&next, "\n")) && *line; n++) {
        AUTO_FREE char *value = NULL;
        char *wanted = strchr(line, '=');
        *wanted++ = '\0';
        assert_works(conf_file_value(lines, line, &value, &e), e);
        assert_non_null(value);
        assert_string_equal(value, wanted);
    }
    assert_true(n > 15);
    AUTO_FREE char *none = NULL;
    assert_works(conf_file_value(lines, "NOT_THERE", &none, &e), e);
    assert_null(none);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_line_of_the_grammar_has_the_value_that_is_expected),
    cmocka_unit_test_setup_teardown(names_that_are_not_near_ours_are_others, setup, teardown),
    cmocka_unit_test_setup_teardown(a_name_of_the_environment_that_is_nearly_ours_is_noted, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(what_is_fixed_cannot_be_set_and_is_noted_once, setup, teardown),
    cmocka_unit_test_setup_teardown(names_of_others_count_where_ours_are_not_set, setup, teardown),
    cmocka_unit_test_setup_teardown(a_misspelt_name_is_refused_with_the_nearest, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_file_the_defaults_hold, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_sets_values_of_every_type, setup, teardown),
    cmocka_unit_test_setup_teardown(the_environment_wins_over_the_file, setup, teardown),
    cmocka_unit_test_setup_teardown(an_empty_value_empties_a_string_and_resets_the_rest, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(every_mistake_is_named_with_line_key_and_what_is_allowed, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_secret_is_never_shown, setup, teardown),
    cmocka_unit_test_setup_teardown(a_file_that_is_missing_binary_or_huge_is_refused, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(values_print_as_text_that_reads_back, setup, teardown),
    cmocka_unit_test_setup_teardown(an_amount_may_be_automatic_where_its_row_says_so, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(the_table_prints_for_readers, setup, teardown),
    cmocka_unit_test(roff_sees_no_command_in_a_text),
};
UNIT_TESTS(tests)
