/* What is taken for what: the table of common/arguments.md is run as it stands, and more of each
 * kind.
 */
#include "config.h"

#include "common/base/auto.h"
#include "common/rpc/json.h"
#include "common/tools/args_mend.h"
#include "tests/unit/unit.h"

#include <string.h>

#define PAGE_MAX (1u << 20)

/* As the tools' rows are; one tool has all of them. */
static json_t *languages(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s, s, s]", "bash", "python", "typescript", "Deno");
}

static json_t *formats(const struct tools_app *app, const char *wanted)
{
    (void)app;
    (void)wanted;
    return json_pack("[s, s, s]", "tar.gz", "zip", "text");
}

static const struct arg_row table[] = {
    {.name = "conversationId", .type = ARG_IDENTIFIER, .max = 64},
    {.name = "language", .type = ARG_IDENTIFIER, .max = 64, .choices = languages},
    {.name = "code", .type = ARG_TEXT, .max = 999, .is_code = true, .also = "script source"},
    {.name = "command", .type = ARG_STRING, .max = 999, .is_shell = true, .also = "cmd"},
    {.name = "commands", .type = ARG_LIST, .max = 999, .max_items = 9, .is_shell = true},
    {.name = "timeoutMs",
     .type = ARG_TIME,
     .max_setting = ARG_SETTING(timeout_max_ms),
     .also = "timeout"},
    {.name = "length", .type = ARG_INTEGER, .max = 1000, .at_most = true},
    {.name = "size", .type = ARG_INTEGER, .max = 1000},
    {.name = "network", .type = ARG_BOOL},
    {.name = "args", .type = ARG_LIST, .max = 999, .max_items = 9},
    {.name = "packages", .type = ARG_LIST, .max = 999, .max_items = 9, .split = true},
    {.name = "environment", .type = ARG_MAP, .max = 999, .max_items = 9, .also = "env"},
    {.name = "stdin", .type = ARG_TEXT, .max = 999},
    {.name = "text", .type = ARG_TEXT, .max = 99, .json_too = true, .also = "content data"},
    {.name = "base64", .type = ARG_BASE64, .max = 999},
    {.name = "filename", .type = ARG_NAME, .max = 99, .also = "path file"},
    {.name = "folder", .type = ARG_NAME, .max = 99, .folder = true},
    {.name = "glob", .type = ARG_STRING, .max = 99, .below_data = true},
    {.name = "format", .type = ARG_STRING, .max = 16, .choices = formats},
    {0},
};

static const struct tools_app app = {.limits = {.timeout_max_ms = 300000}};

static json_t *mended(const char *written, json_t *notices, struct err *e)
{
    json_auto_t *arguments = json_loads(written, JSON_ALLOW_NUL, NULL);

    if (!arguments)
        fail_msg("no JSON: %s", written);
    return args_mend(table, &app, arguments, notices, e);
}

/* Integers and other numbers are the same here. */
static bool same(json_t *a, json_t *b)
{
    const char *name;
    json_t *value;

    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (!json_is_object(a) || !json_is_object(b) || json_object_size(a) != json_object_size(b))
        return json_equal(a, b);
    json_object_foreach(a, name, value) if (!same(value, json_object_get(b, name))) return false;
    return true;
}

static void expect(const char *written, const char *taken, const char *noticed)
{
    struct err e = ERR_INIT;
    json_auto_t *notices = json_array();
    json_auto_t *is = mended(written, notices, &e);
    json_auto_t *should = json_loads(taken, JSON_ALLOW_NUL, NULL);
    AUTO_FREE char *shown = json_dumps(is, JSON_ENCODE_ANY);
    AUTO_FREE char *said = json_dumps(notices, 0);

    if (!should || !same(is, should))
        fail_msg("%s became %s, not %s (%s)", written, shown ? shown : "nothing", taken, e.text);
    if (noticed && !strstr(said, noticed))
        fail_msg("%s: %s is not in %s", written, noticed, said);
    if (noticed && !*noticed && json_array_size(notices) > 0)
        fail_msg("%s: %s", written, said);
}

/* The two texts between backquotes of a row. */
static void run_row(char *row)
{
    char *written = strstr(row, "`{"), *taken = written ? strstr(written, "}` | `{") : NULL;
    char *end = taken ? strstr(taken + strlen("}` | `"), "}` |") : NULL;

    if (!end)
        fail_msg("no row of the table: %s", row);
    taken[1] = end[1] = '\0';
    expect(written + 1, taken + strlen("}` | `"), NULL);
}

static void the_table_of_the_readme_is_true(void **state)
{
    AUTO_BUF struct buf page = BUF_INIT(PAGE_MAX);
    const char *top = getenv("srcdir");
    char path[PATH_MAX];
    struct err e = ERR_INIT;
    size_t n = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/common/arguments.md", top ? top : "..");
    assert_int_equal(fdio_read_file(path, &page, &e), 0);
    AUTO_FREE char *text = buf_take(&page);
    char *row = strstr(text, "<!-- table: mended -->\n|");
    assert_non_null(row);
    row = strstr(row, "| --- |");
    for (row = strchr(row, '\n') + 1; *row == '|'; n++) {
        char *next = strchr(row, '\n');
        *next = '\0';
        run_row(row);
        row = next + 1;
    }
    assert_true(n > 25);
}

static void what_has_one_meaning_is_taken(void **state)
{
    static const struct {
        const char *written, *taken, *noticed;
    } cases[] = {
        /* what is right stays */
        {"{\"timeoutMs\":1000}", "{\"timeoutMs\":1000}", ""},
        {"{\"code\":\"a\\u0000b\"}", "{\"code\":\"a\\u0000b\"}", ""},
        {"{\"text\":\"\"}", "{\"text\":\"\"}", ""},
        {"{\"args\":[]}", "{\"args\":[]}", ""},
        {"{\"language\":\"Deno\"}", "{\"language\":\"Deno\"}", ""},
        {"{\"language\":\"cobol\"}", "{\"language\":\"cobol\"}", ""},
        {"{\"filename\":\"a b.csv\"}", "{\"filename\":\"a b.csv\"}", ""},
        {"{\"filename\":\"/etc/passwd\"}", "{\"filename\":\"/etc/passwd\"}", ""},
        {"{\"filename\":\"../x\"}", "{\"filename\":\"../x\"}", ""},
        {"{\"filename\":\"/data/../x\"}", "{\"filename\":\"../x\"}", ""},
        {"{\"filename\":\"reports/\"}", "{\"filename\":\"reports/\"}", ""},
        {"{\"filename\":\"reports/.\"}", "{\"filename\":\"reports/\"}", ""},
        {"{\"filename\":\"reports//\"}", "{\"filename\":\"reports/\"}", ""},
        {"{\"filename\":\"/etc/\"}", "{\"filename\":\"/etc/\"}", ""},
        {"{\"filename\":\"~x\"}", "{\"filename\":\"~x\"}", ""},
        {"{\"filename\":\"/database/x\"}", "{\"filename\":\"/database/x\"}", ""},
        {"{\"filename\":\"sandbox:x\"}", "{\"filename\":\"sandbox:x\"}", ""},
        {"{\"base64\":\"QUJD\"}", "{\"base64\":\"QUJD\"}", ""},
        {"{\"base64\":\"Q\"}", "{\"base64\":\"Q\"}", ""},
        {"{\"base64\":\"data:text/plain,abcd\"}", "{\"base64\":\"data:text/plain,abcd\"}", ""},
        /* numbers */
        {"{\"timeoutMs\":\"1.5 min\"}", "{\"timeoutMs\":90000}", ""},
        {"{\"timeoutMs\":\"30s\"}", "{\"timeoutMs\":30000}", ""},
        {"{\"timeoutMs\":\"30\"}", "{\"timeoutMs\":30000}", "timeoutMs 30 was taken as 30 s"},
        {"{\"timeoutMs\":\"30 ms\"}", "{\"timeoutMs\":30}", ""},
        {"{\"timeoutMs\":\"2e4\"}", "{\"timeoutMs\":20000}", ""},
        {"{\"timeoutMs\":500}", "{\"timeoutMs\":500}", ""},
        {"{\"timeoutMs\":0}", "{\"timeoutMs\":0}", ""},
        {"{\"timeoutMs\":-1}", "{\"timeoutMs\":-1}", ""},
        {"{\"timeoutMs\":\"20,000\"}", "{\"timeoutMs\":\"20,000\"}", ""},
        {"{\"timeoutMs\":\"inf\"}", "{\"timeoutMs\":\"inf\"}", ""},
        {"{\"timeoutMs\":\"0x10\"}", "{\"timeoutMs\":\"0x10\"}", ""},
        {"{\"timeoutMs\":\"\"}", "{}", ""},
        {"{\"timeoutMs\":1e300}", "{\"timeoutMs\":300000}", "is above the limit: 300000"},
        {"{\"timeout\":45}", "{\"timeoutMs\":45000}", "timeoutMs 45 was taken as 45 s"},
        {"{\"timeout\":45000}", "{\"timeoutMs\":45000}", ""},
        {"{\"timeoutSecs\":1.5}", "{\"timeoutMs\":1500}", ""},
        {"{\"timeout_seconds\":\" 90 \"}", "{\"timeoutMs\":90000}", ""},
        {"{\"timeout_seconds\":\"2 min\"}", "{\"timeoutMs\":120000}", ""},
        {"{\"timeout_seconds\":\"soon\"}", "{\"timeoutMs\":\"soon\"}", ""},
        {"{\"timeout_seconds\":\"\"}", "{}", ""},
        {"{\"timeout_seconds\":0.05}", "{\"timeoutMs\":50}", ""},
        {"{\"length\":2000}", "{\"length\":1000}", "length 2000 is above the limit: 1000"},
        {"{\"length\":5}", "{\"length\":5}", ""},
        {"{\"size\":2000}", "{\"size\":2000}", ""},
        {"{\"size\":\"7\"}", "{\"size\":7}", ""},
        {"{\"size\":\"7 s\"}", "{\"size\":\"7 s\"}", ""},
        /* booleans */
        {"{\"network\":0}", "{\"network\":false}", ""},
        {"{\"network\":1.0}", "{\"network\":true}", ""},
        {"{\"network\":2}", "{\"network\":2}", ""},
        {"{\"network\":\" ON \"}", "{\"network\":true}", ""},
        {"{\"network\":\"0\"}", "{\"network\":false}", ""},
        {"{\"network\":\"maybe\"}", "{\"network\":\"maybe\"}", ""},
        {"{\"network\":\"\"}", "{}", ""},
        /* lists and objects */
        {"{\"args\":\"[\\\"a\\\", 1]\"}", "{\"args\":[\"a\",\"1\"]}", ""},
        {"{\"args\":\"[a\"}", "{\"args\":[\"[a\"]}", ""},
        {"{\"args\":[true]}", "{\"args\":[true]}", ""},
        {"{\"args\":[0.1, 100000]}", "{\"args\":[\"0.1\",\"100000\"]}", ""},
        {"{\"args\":5}", "{\"args\":5}", ""},
        {"{\"packages\":\"humanize\"}", "{\"packages\":[\"humanize\"]}", ""},
        {"{\"packages\":\"a b,c\\nd\"}", "{\"packages\":[\"a\",\"b\",\"c\",\"d\"]}", ""},
        {"{\"packages\":\"requests>=2, <3\"}", "{\"packages\":[\"requests>=2,<3\"]}", ""},
        {"{\"packages\":\"uvicorn[standard, x]==1 y\"}",
         "{\"packages\":[\"uvicorn[standard, x]==1\",\"y\"]}", ""},
        {"{\"packages\":[\"a b\",\"@types/node@^22\"]}",
         "{\"packages\":[\"a\",\"b\",\"@types/node@^22\"]}", ""},
        {"{\"packages\":\"['a', 'b']\"}", "{\"packages\":[\"a\",\"b\"]}", ""},
        {"{\"environment\":\"{'A': 1}\"}", "{\"environment\":{\"A\":\"1\"}}", ""},
        {"{\"environment\":\"A=1\"}", "{\"environment\":\"A=1\"}", ""},
        {"{\"environment\":{\"A\":null}}", "{\"environment\":{\"A\":null}}", ""},
        {"{\"commands\":\"ls\\r\\n\"}", "{\"commands\":[\"ls\\n\"]}", ""},
        {"{\"commands\":\"[\\\"a\\\",\\\"b\\\"]\"}", "{\"commands\":[\"a\",\"b\"]}", ""},
        /* choices */
        {"{\"language\":\"node 20\"}", "{\"language\":\"typescript\"}", ""},
        {"{\"language\":\"BASH\"}", "{\"language\":\"bash\"}", ""},
        {"{\"language\":\"deno\"}", "{\"language\":\"Deno\"}", ""},
        {"{\"language\":\"rust\"}", "{\"language\":\"rust\"}", ""},
        {"{\"format\":\"TGZ\"}", "{\"format\":\"tar.gz\"}", ""},
        {"{\"format\":\"utf-8\"}", "{\"format\":\"text\"}", ""},
        {"{\"format\":\"\"}", "{}", ""},
        /* paths */
        {"{\"filename\":\"/workspace/a\"}", "{\"filename\":\"a\"}", ""},
        {"{\"filename\":\"file:///data/a\"}", "{\"filename\":\"a\"}", ""},
        {"{\"filename\":\"/home/user/a\"}", "{\"filename\":\"a\"}", ""},
        {"{\"filename\":\"/mnt/user-data/outputs/a\"}", "{\"filename\":\"a\"}", ""},
        {"{\"filename\":\"./a/./b\"}", "{\"filename\":\"a/b\"}", ""},
        {"{\"folder\":\"~\"}", "{\"folder\":\"\"}", ""},
        {"{\"folder\":\"/mnt/data/\"}", "{\"folder\":\"\"}", ""},
        {"{\"folder\":\".\"}", "{\"folder\":\"\"}", ""},
        {"{\"glob\":\"/data/*.csv\"}", "{\"glob\":\"*.csv\"}", ""},
        /* base64 */
        {"{\"base64\":\"QUJ\\nDRA\"}", "{\"base64\":\"QUJDRA==\"}", ""},
        {"{\"base64\":\"DATA:a/b;x=1;base64,QUJD\"}", "{\"base64\":\"QUJD\"}", ""},
        /* names */
        {"{\"content\":\"a\"}", "{\"text\":\"a\"}", ""},
        {"{\"content\":\"a\",\"text\":\"b\"}", "{\"text\":\"b\"}", "'content': passed over"},
        {"{\"file\":\"a\",\"path\":\"b\"}", "{\"filename\":\"b\"}", "'file'"},
        {"{\"Path\":\"b\"}", "{\"filename\":\"b\"}", ""},
        {"{\"path\":\"b\",\"filename\":null}", "{\"filename\":\"b\"}", ""},
        {"{\"x\\ny\":1,\"z\":2}", "{}", "unknown arguments 'x\xEF\xBF\xBDy', 'z': passed over"},
        {"{\"netwrok\":true}", "{}", "'netwrok' (did you mean 'network'?)"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect(cases[i].written, cases[i].taken, cases[i].noticed);
}

static void a_name_near_that_of_a_missing_argument_is_refused(void **state)
{
    static const struct arg_row needed[] = {
        {.name = "code", .type = ARG_TEXT, .max = 9, .required = true},
        {.name = "from", .type = ARG_NAME, .max = 9, .required = true},
        {0},
    };
    static const struct {
        const char *written, *problem;
    } cases[] = {
        {"{\"cod\":\"1\"}", "unknown argument 'cod'; did you mean 'code'?"},
        {"{\"form\":\"1\",\"code\":\"1\"}", NULL},
        {"{\"code\":\"1\",\"cod\":\"1\"}", NULL},
        {"{\"codes\":\"1\"}", "unknown argument 'codes'; did you mean 'code'?"},
        {"{\"title\":\"1\"}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = ERR_INIT;
        json_auto_t *notices = json_array();
        json_auto_t *arguments = json_loads(cases[i].written, 0, NULL);
        json_auto_t *is = args_mend(needed, &app, arguments, notices, &e);

        assert_int_equal(is == NULL, cases[i].problem != NULL);
        if (cases[i].problem)
            assert_string_equal(e.text, cases[i].problem);
    }
}

static void of_many_arguments_other_names_are_not_sought(void **state)
{
    struct err e = ERR_INIT;
    json_auto_t *notices = json_array();
    json_auto_t *arguments = json_pack("{s:s}", "script", "1");

    (void)state;
    for (int i = 0; i < 70; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        json_object_set_new(arguments, name, json_true());
    }
    json_auto_t *is = args_mend(table, &app, arguments, notices, &e);
    assert_int_equal(json_object_size(is), 0);
    assert_int_equal(json_array_size(notices), 1);
    const char *said = json_string_value(json_array_get(notices, 0));
    assert_non_null(strstr(said, "…: passed over"));
    assert_null(strstr(said, "did you mean"));
}

/* What a text of some megabytes is split into. */
static json_t *split(const char *piece, size_t n)
{
    AUTO_BUF struct buf text = BUF_INIT(32u << 20);
    struct err e = ERR_INIT;
    json_auto_t *notices = json_array();

    for (size_t i = 0; i < n; i++)
        buf_add_str(&text, piece);
    json_auto_t *arguments = json_pack("{s:s}", "packages", buf_str(&text));
    json_auto_t *is = args_mend(table, &app, arguments, notices, &e);
    return json_incref(json_object_get(is, "packages"));
}

static void a_list_grows_little_beyond_its_limit(void **state)
{
    json_auto_t *names = split("a ", 10000);
    json_auto_t *open = split("<[ ", 10000);
    struct err e = ERR_INIT;
    json_auto_t *notices = json_array();
    json_auto_t *arguments = json_pack("{s:o}", "packages", json_array());

    (void)state;
    assert_in_range(json_array_size(names), 10, 11); /* args_fill names the limit of 9 */
    assert_int_equal(json_array_size(open), 1);
    for (int i = 0; i < 1000; i++)
        json_array_append_new(json_object_get(arguments, "packages"), json_string("a b"));
    json_auto_t *is = args_mend(table, &app, arguments, notices, &e);
    assert_in_range(json_array_size(json_object_get(is, "packages")), 10, 11);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_of_the_readme_is_true),
    cmocka_unit_test(what_has_one_meaning_is_taken),
    cmocka_unit_test(a_name_near_that_of_a_missing_argument_is_refused),
    cmocka_unit_test(of_many_arguments_other_names_are_not_sought),
    cmocka_unit_test(a_list_grows_little_beyond_its_limit),
};
UNIT_TESTS(tests)
