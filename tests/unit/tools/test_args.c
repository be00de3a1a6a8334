#include "config.h"

#include "common/rpc/json.h"
#include "common/tools/args.h"
#include "common/tools/runs/permit.h"
#include "tests/fakes/schema.h"
#include "tests/unit/unit.h"

#include <string.h>

struct sample {
    const char *id, *plain, *colour, *name;
    struct run_text text, data;
    bool flag;
    uint64_t time_ms;
    struct arg_list list;
    struct arg_map map;
};

static json_t *colours(const struct tools_app *app, const char *wanted)
{
    (void)app;
    if (wanted && strcmp(wanted, "anything") == 0)
        return NULL; /* "not known now" */
    return json_pack("[s, s]", "red", "blue");
}

static const struct arg_row table[] = {
    {.name = "id",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct sample, id),
     .required = true,
     .max = 8,
     .help = "an id"},
    {.name = "plain",
     .type = ARG_STRING,
     .offset = offsetof(struct sample, plain),
     .max = 8,
     .help = "a string"},
    {.name = "colour",
     .type = ARG_STRING,
     .offset = offsetof(struct sample, colour),
     .max = 20,
     .choices = colours,
     .help = "a colour"},
    {.name = "name",
     .type = ARG_NAME,
     .offset = offsetof(struct sample, name),
     .max = 20,
     .help = "a file"},
    {.name = "text",
     .type = ARG_TEXT,
     .offset = offsetof(struct sample, text),
     .max_setting = ARG_SETTING(code_max),
     .help = "a text"},
    {.name = "data",
     .type = ARG_BASE64,
     .offset = offsetof(struct sample, data),
     .max = 3,
     .help = "bytes"},
    {.name = "flag", .type = ARG_BOOL, .offset = offsetof(struct sample, flag), .help = "a flag"},
    {.name = "time",
     .type = ARG_TIME,
     .offset = offsetof(struct sample, time_ms),
     .max_setting = ARG_SETTING(timeout_max_ms),
     .initial_setting = ARG_SETTING(timeout_ms),
     .help = "a time"},
    {.name = "list",
     .type = ARG_LIST,
     .offset = offsetof(struct sample, list),
     .max = 10,
     .max_items = 3,
     .help = "a list"},
    {.name = "map",
     .type = ARG_MAP,
     .offset = offsetof(struct sample, map),
     .max = 10,
     .max_items = 2,
     .help = "a map"},
    {0},
};

static const struct tools_app app = {
    .limits = {.code_max = 5, .timeout_max_ms = 2500, .timeout_ms = 1500}};

static int fill(const char *text, struct sample *out, json_t **hold, struct err *e)
{
    *hold = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    assert_non_null(*hold);
    return args_fill(table, &app, *hold, out, e);
}

static void a_file_has_the_names_that_programs_call_it(void **state)
{
    static const char *const same[][2] = {
        {"a.txt", "a.txt"},
        {"/data/a.txt", "a.txt"},
        {"./a.txt", "a.txt"},
        {"/data/./a/b", "a/b"},
        {"././a", "a"},
        {"/data", ""},
        {".", ""},
        {"/data/", ""},
        {"./", ""},
        {"/data/data/a", "data/a"},
        {"/data2/a", "/data2/a"},
        {"/etc/passwd", "/etc/passwd"},
        {"../a", "../a"},
        {"/data/../a", "../a"},
        {".a", ".a"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct sample s = {0};
        struct err e = ERR_INIT;
        json_auto_t *call = json_pack("{s:s, s:s}", "id", "c", "name", same[i][0]);

        assert_int_equal(args_fill(table, &app, call, &s, &e), 0);
        assert_string_equal(s.name, same[i][1]);
        args_clear(table, &s);
    }
}

static void fills_the_struct(void **state)
{
    struct sample s = {0};
    struct err e = ERR_INIT;
    json_auto_t *hold = NULL;

    (void)state;
    assert_int_equal(
        fill("{\"id\":\"a b\",\"plain\":\"\",\"colour\":\"red\",\"text\":\"a\\u0000b\","
             "\"data\":\"QUJD\",\"flag\":true,\"time\":2500,\"list\":[\"x\",\"\"],"
             "\"map\":{\"A\":\"1\",\"B\":\"\"}}",
             &s, &hold, &e),
        0);
    assert_string_equal(s.id, "a b");
    assert_string_equal(s.plain, "");
    assert_string_equal(s.colour, "red");
    assert_int_equal(s.text.len, 3);
    assert_memory_equal(s.text.data, "a\0b", 3);
    assert_int_equal(s.data.len, 4);
    assert_true(s.flag);
    assert_int_equal(s.time_ms, 2500);
    assert_int_equal(s.list.n, 2);
    assert_string_equal(s.list.items[0].data, "x");
    assert_int_equal(s.list.items[1].len, 0);
    assert_int_equal(s.map.n, 2);
    assert_string_equal(s.map.items[0].name, "A");
    assert_string_equal(s.map.items[1].value, "");
    args_clear(table, &s);
}

static void null_is_as_good_as_absent_for_what_is_optional(void **state)
{
    struct sample s = {0};
    struct err e = ERR_INIT;
    json_auto_t *hold = NULL;

    (void)state;
    assert_int_equal(
        fill("{\"id\":\"a\",\"plain\":null,\"colour\":null,\"text\":null,\"data\":null,"
             "\"flag\":null,\"time\":null,\"list\":null,\"map\":null}",
             &s, &hold, &e),
        0);
    assert_null(s.plain);
    assert_null(s.text.data);
    assert_int_equal(s.time_ms, 0);
    args_clear(table, &s);
}

static void whole_numbers_may_look_like_fractions(void **state)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } cases[] = {{"2000", 2000}, {"2000.0", 2000}, {"2e3", 2000}, {"1000", 1000}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample s = {0};
        struct err e = ERR_INIT;
        json_auto_t *hold = NULL;
        char text[64];

        snprintf(text, sizeof(text), "{\"id\":\"a\",\"time\":%s}", cases[i].text);
        assert_int_equal(fill(text, &s, &hold, &e), 0);
        assert_int_equal(s.time_ms, cases[i].ms);
        args_clear(table, &s);
    }
}

static void each_mistake_is_named(void **state)
{
    static const struct {
        const char *arguments, *problem;
    } cases[] = {
        {"{}", "argument 'id' is required"},
        {"{\"id\":null}", "argument 'id' must be a string, not null"},
        {"{\"id\":1}", "argument 'id' must be a string, not a number"},
        {"{\"id\":\"\"}", "argument 'id' must not be empty"},
        {"{\"id\":\"abc\\n\"}", "argument 'id' must not contain control characters"},
        {"{\"id\":\"a\\u007f\"}", "argument 'id' must not contain control characters"},
        {"{\"id\":\"a\\u0085\"}", "argument 'id' must not contain control characters"},
        {"{\"id\":\"a\\u0000\"}", "argument 'id' must not contain NUL characters"},
        {"{\"id\":\"123456789\"}", "argument 'id' is longer than 8 bytes"},
        {"{\"id\":\"a\",\"plain\":[]}", "argument 'plain' must be a string, not an array"},
        {"{\"id\":\"a\",\"plain\":\"\\u0000\"}",
         "argument 'plain' must not contain NUL characters"},
        {"{\"id\":\"a\",\"colour\":\"pink\"}", "argument 'colour' must be one of: red, blue"},
        {"{\"id\":\"a\",\"text\":\"123456\"}", "argument 'text' is longer than 5 bytes"},
        {"{\"id\":\"a\",\"text\":{}}", "argument 'text' must be a string, not an object"},
        {"{\"id\":\"a\",\"data\":\"QUJDRA==\"}", "argument 'data' decodes to more than 3 bytes"},
        {"{\"id\":\"a\",\"flag\":\"true\"}", "argument 'flag' must be true or false, not a string"},
        {"{\"id\":\"a\",\"flag\":1}", "argument 'flag' must be true or false, not a number"},
        {"{\"id\":\"a\",\"time\":\"2\"}",
         "argument 'time' must be an integer from 1000 to 2500 milliseconds, not a string"},
        {"{\"id\":\"a\",\"time\":0}", "argument 'time' must be from 1000 to 2500 milliseconds"},
        {"{\"id\":\"a\",\"time\":-1}", "argument 'time' must be from 1000 to 2500 milliseconds"},
        {"{\"id\":\"a\",\"time\":2501}", "argument 'time' must be from 1000 to 2500 milliseconds"},
        {"{\"id\":\"a\",\"time\":1e300}", "argument 'time' must be from 1000 to 2500 milliseconds"},
        {"{\"id\":\"a\",\"time\":9223372036854775807}",
         "argument 'time' must be from 1000 to 2500 milliseconds"},
        {"{\"id\":\"a\",\"list\":\"x\"}",
         "argument 'list' must be an array of strings, not a string"},
        {"{\"id\":\"a\",\"list\":[1]}", "argument 'list': entry 1 must be a string, not a number"},
        {"{\"id\":\"a\",\"list\":[\"\",\"\\u0000\"]}",
         "argument 'list': entry 2 contains a NUL character"},
        {"{\"id\":\"a\",\"list\":[\"\",\"\",\"\",\"\"]}",
         "argument 'list' has more than 3 entries"},
        {"{\"id\":\"a\",\"list\":[\"123456\",\"12345\"]}",
         "argument 'list' is longer than 10 bytes"},
        {"{\"id\":\"a\",\"map\":[]}", "argument 'map' must be an object of strings, not an array"},
        {"{\"id\":\"a\",\"map\":{\"A\":1}}",
         "argument 'map': the value of 'A' must be a string, not a number"},
        {"{\"id\":\"a\",\"map\":{\"A\":\"\\u0000\"}}",
         "argument 'map': the value of 'A' contains a NUL character"},
        {"{\"id\":\"a\",\"map\":{\"A\":\"\",\"B\":\"\",\"C\":\"\"}}",
         "argument 'map' has more than 2 entries"},
        {"{\"id\":\"a\",\"map\":{\"A\":\"1234567890\"}}", "argument 'map' is longer than 10 bytes"},
        {"{\"id\":\"a\",\"x\\ny\":1}", "unknown argument 'x\xEF\xBF\xBDy'; there are: id, plain, "
                                       "colour, name, text, data, flag, time, "
                                       "list, map"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample s = {0};
        struct err e = ERR_INIT;
        json_auto_t *hold = NULL;

        assert_int_equal(fill(cases[i].arguments, &s, &hold, &e), -1);
        assert_string_equal(e.text, cases[i].problem);
        assert_true(e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
        args_clear(table, &s);
    }
}

static void choices_that_are_not_known_let_everything_through(void **state)
{
    struct sample s = {0};
    struct err e = ERR_INIT;
    json_auto_t *hold = NULL;

    (void)state;
    assert_int_equal(fill("{\"id\":\"a\",\"colour\":\"anything\"}", &s, &hold, &e), 0);
    args_clear(table, &s);
}

static void a_tool_without_arguments_takes_none(void **state)
{
    static const struct arg_row none[] = {{0}};
    struct err e = ERR_INIT;
    json_auto_t *empty = json_object();
    json_auto_t *some = json_pack("{s:i}", "a", 1);
    json_auto_t *schema = args_tables.schema(none, (void *)&app, 0);
    AUTO_FREE char *text = json_dumps(schema, JSON_COMPACT);

    (void)state;
    assert_int_equal(args_fill(none, &app, NULL, NULL, &e), 0);
    assert_int_equal(args_fill(none, &app, empty, NULL, &e), 0);
    assert_int_equal(args_fill(none, &app, some, NULL, &e), -1);
    assert_string_equal(e.text, "unknown argument 'a'; this tool has none");
    assert_string_equal(text, "{\"type\":\"object\",\"additionalProperties\":false}");
}

/* The schema and the checks come from the same rows; here they are held against each other. */
static void the_schema_says_what_the_checks_do(void **state)
{
    /* It does not tell how long a text may be. */
    static const struct {
        const char *arguments;
        bool works, too_long;
    } cases[] = {
        {"{\"id\":\"a\"}", true, false},
        {"{\"id\":\"a\",\"colour\":\"blue\",\"time\":1500,\"list\":[],\"map\":{\"A\":\"\"}}", true,
         false},
        {"{}", false, false},
        {"{\"id\":\"123456789\"}", false, true},
        {"{\"id\":\"a\",\"colour\":\"pink\"}", false, false},
        {"{\"id\":\"a\",\"time\":999}", false, false},
        {"{\"id\":\"a\",\"time\":2501}", false, false},
        {"{\"id\":\"a\",\"data\":\"QUJDRA==\"}", false, true},
        {"{\"id\":\"a\",\"list\":[1]}", false, false},
        {"{\"id\":\"a\",\"map\":{\"A\":1}}", false, false},
        {"{\"id\":\"a\",\"other\":1}", false, false},
    };
    json_auto_t *schema = args_tables.schema(table, (void *)&app, 0);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sample s = {0};
        struct err e = ERR_INIT;
        json_auto_t *hold = NULL;

        assert_int_equal(fill(cases[i].arguments, &s, &hold, &e) == 0, cases[i].works);
        assert_int_equal(schema_fits(schema, hold), cases[i].works || cases[i].too_long);
        args_clear(table, &s);
    }
}

static int filter(const char *name, struct arg_map *map, struct err *e)
{
    static struct run_env item;

    item = (struct run_env){name, "v"};
    *map = (struct arg_map){&item, 1};
    return env_filter(map, e);
}

static void refuses_variables_that_change_how_runtimes_start(void **state)
{
    static const char *const names[] = {
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "PATH",
        "HOME",
        "SHELLOPTS",
        "BASH_ENV",
        "ENV",
        "IFS",
        "PS4",
        "BASH_FUNC_ls",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "BUN_OPTIONS",
        "NODE_OPTIONS",
        "npm_config_node_options",
        "GCONV_PATH",
        "MALLOC_CHECK_",
        "GLIBC_TUNABLES",
        "LOCPATH",
        "PERL5LIB",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct arg_map map;
        struct err e = ERR_INIT;

        assert_int_equal(filter(names[i], &map, &e), -1);
        assert_int_equal(e.kind, ERR_DENIED);
        assert_non_null(strstr(e.text, names[i]));
        assert_non_null(strstr(e.text, "cannot be set: it changes"));
    }
}

static void refuses_names_that_are_none(void **state)
{
    char over[ENV_NAME_MAX + 2];
    const char *const names[] = {"",    "A=B", "A=",  "=A",  "1A",       "A B",
                                 "A\n", "A-B", "A.B", "A%%", "\xC3\x84", over};

    (void)state;
    memset(over, 'A', sizeof(over) - 1);
    over[sizeof(over) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct arg_map map;
        struct err e = ERR_INIT;

        assert_int_equal(filter(names[i], &map, &e), -1);
        assert_int_equal(e.kind, ERR_INVALID);
        assert_non_null(strstr(e.text, "is not a valid name"));
        assert_null(strchr(e.text, '\n'));
    }
}

static void lets_ordinary_names_through_and_drops_its_own(void **state)
{
    static const char *const names[] = {"A",         "_",       "a1",   "DEBUG", "DATABASE_URL",
                                        "PATHS",     "ENVIRON", "LDAP", "NODE",  "HOMEPAGE",
                                        "http_proxy"};
    struct arg_map map;
    struct err e = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_int_equal(filter(names[i], &map, &e), 0);
        assert_int_equal(map.n, 1);
    }
    assert_int_equal(filter("FILE_BASE_URL", &map, &e), 0);
    assert_int_equal(map.n, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_file_has_the_names_that_programs_call_it),
    cmocka_unit_test(fills_the_struct),
    cmocka_unit_test(null_is_as_good_as_absent_for_what_is_optional),
    cmocka_unit_test(whole_numbers_may_look_like_fractions),
    cmocka_unit_test(each_mistake_is_named),
    cmocka_unit_test(choices_that_are_not_known_let_everything_through),
    cmocka_unit_test(a_tool_without_arguments_takes_none),
    cmocka_unit_test(the_schema_says_what_the_checks_do),
    cmocka_unit_test(refuses_variables_that_change_how_runtimes_start),
    cmocka_unit_test(refuses_names_that_are_none),
    cmocka_unit_test(lets_ordinary_names_through_and_drops_its_own),
};
UNIT_TESTS(tests)
