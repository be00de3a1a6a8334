#include "config.h"

#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"
#include <stdio.h>
#include <string.h>

#define PNG      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1 and the rest"
#define PNG_LEN  (sizeof PNG - 1)
#define JPEG     "\xff\xd8\xff\xe0\0\2\xff\xc0\0\x11\x08\0\1\0\1"
#define JPEG_LEN (sizeof JPEG - 1)

/* extra: further members of the arguments, with a comma in front. */
static json_t *run_with(const char *extra)
{
    AUTO_FREE char *arguments = mem_printf(
        "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"print(1)\"%s}", extra);

    return tools_world_call(&world, "run_code", arguments);
}

static json_t *run_making(const char *files)
{
    fake_broker_push_ok("", files);
    return run_with("");
}

/* That file, and n of another name. */
static json_t *run_making_many(const char *first, int n, const char *name, int size)
{
    json_auto_t *files = json_array();

    for (int i = 0; i <= n; i++)
        json_array_append_new(files,
                              json_pack("{s:s, s:i, s:s, s:s}", "name", i == 0 ? first : name,
                                        "size", size, "change", "created", "url", "u"));
    AUTO_FREE char *text = json_dumps(files, 0);
    return run_making(text);
}

static const char *type_at(const json_t *result, size_t n)
{
    const char *type = json_get_string(json_array_get(json_object_get(result, "content"), n),
                                       "type");

    return type ? type : "";
}

static size_t count_type(const json_t *result, const char *type)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(json_object_get(result, "content")); i++)
        n += strcmp(type_at(result, i), type) == 0;
    return n;
}

static bool is_error(const json_t *result)
{
    return json_is_true(json_object_get(result, "isError"));
}

static const json_t *structured(const json_t *result)
{
    return json_object_get(result, "structuredContent");
}

static bool conforms(const json_t *result)
{
    json_auto_t *row = tools_world_row(&world, "run_code");

    return schema_fits(json_object_get(row, "outputSchema"), structured(result));
}

static void asks_the_broker_for_exactly_what_was_said(void **state)
{
    const json_t *request;

    (void)state;
    fake_broker_push_ok("1\n", "[]");
    json_auto_t *result = run_with(",\"network\":true,\"environment\":{\"A\":\"b\\nc\","
                                   "\"FILE_BASE_URL\":\"https://evil.test\"},\"timeoutMs\":1500.0,"
                                   "\"stdin\":\"in\",\"args\":[\"-x\",\"\"]");
    request = json_array_get(fake_broker.runs, 0);
    AUTO_FREE char *text = json_dumps(request, JSON_COMPACT);
    assert_false(is_error(result));
    assert_string_equal(text, "{\"tenant\":\"me\",\"conversationId\":\"c\",\"language\":\"python\","
                              "\"code\":\"print(1)\",\"stdin\":\"in\",\"network\":true,"
                              "\"timeoutMs\":1500,\"keepBytes\":0,\"args\":[\"-x\",\"\"],"
                              "\"env\":{\"A\":\"b\\nc\"},\"waitMs\":50000,\"background\":false,"
                              "\"detach\":false,\"imports\":[]}");
}

static void leaves_out_what_was_not_said(void **state)
{
    (void)state;
    fake_broker_push_ok("1\n", "[]");
    json_auto_t *result = run_with(",\"stdin\":\"\"");
    AUTO_FREE char *text = json_dumps(json_array_get(fake_broker.runs, 0), JSON_COMPACT);
    assert_false(is_error(result));
    assert_string_equal(text, "{\"tenant\":\"me\",\"conversationId\":\"c\",\"language\":\"python\","
                              "\"code\":\"print(1)\",\"stdin\":null,\"network\":false,"
                              "\"timeoutMs\":0,\"keepBytes\":0,\"args\":[],\"env\":{},"
                              "\"waitMs\":50000,\"background\":false,\"detach\":false,"
                              "\"imports\":[]}");
}

static void a_result_conforms_and_its_text_says_how_it_ended(void **state)
{
    (void)state;
    fake_broker_push_ok("1\n", "[{\"name\":\"a.csv\",\"size\":5,\"change\":\"created\","
                               "\"url\":\"https://x.test/a.csv\"},"
                               "{\"name\":\"b\",\"size\":5,\"change\":\"deleted\"}]");
    json_auto_t *result = run_with("");
    assert_true(conforms(result));
    assert_string_equal(tools_world_text(result, 0), "exit code 0, 0.0 s\n"
                                                     "a.csv: https://x.test/a.csv\n"
                                                     "b (deleted)");
    assert_string_equal(json_get_string(structured(result), "stdout"), "1\n");
    assert_string_equal(json_get_string(structured(result), "output"), "1\n");
}

static void a_program_that_fails_is_a_successful_call(void **state)
{
    static const char failed[] =
        "{\"success\":false,\"status\":\"%s\",\"exitCode\":%s,\"signal\":%s,\"stdout\":\"\","
        "\"stderr\":\"no\\u001b[31m\",\"output\":\"no\",\"truncation\":{"
        "\"stdout\":{\"truncated\":false,\"kept\":0,\"total\":0},"
        "\"stderr\":{\"truncated\":true,\"kept\":0,\"total\":5000000000},"
        "\"output\":{\"truncated\":false,\"kept\":0,\"total\":0}},\"durationMs\":1,"
        "\"cpuMs\":null,\"peakMemoryBytes\":9,\"runId\":\"1\",\"files\":[],\"filesOmitted\":0,"
        "\"fileBaseUrl\":\"https://x.test\"}";
    static const struct {
        const char *status, *code, *signal;
    } cases[] = {{"error", "124", "null"},       {"timeout", "null", "9"},
                 {"out_of_memory", "null", "9"}, {"output_limit", "null", "9"},
                 {"killed", "null", "15"},       {"error", "137", "null"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];

        snprintf(text, sizeof(text), failed, cases[i].status, cases[i].code, cases[i].signal);
        fake_broker_push_result(text);
        json_auto_t *result = run_with("");
        assert_false(is_error(result));
        assert_true(conforms(result));
        assert_string_equal(json_get_string(structured(result), "status"), cases[i].status);
        /* Escape sequences stay escaped in the text that a model or a terminal sees. */
        assert_null(strchr(tools_world_text(result, 0), 0x1b));
    }
}

static void every_file_is_a_link_with_its_type(void **state)
{
    const json_t *link;

    (void)state;
    fake_broker_add_file("noext", "%PDF-1.4\n%\xe2\xe3\n1 0 obj", 20);
    json_auto_t *result = run_making(
        "[{\"name\":\"d/a.csv\",\"size\":5,\"change\":\"created\",\"url\":\"u1\"},"
        "{\"name\":\"gone.txt\",\"size\":5,\"change\":\"deleted\"},"
        "{\"name\":\"noext\",\"size\":20,\"change\":\"modified\",\"url\":\"u2\"},"
        "{\"name\":\"unread\",\"size\":20,\"change\":\"modified\",\"url\":\"u3\"}]");
    assert_true(conforms(result));
    assert_int_equal(count_type(result, "resource_link"), 3);
    link = json_array_get(json_object_get(result, "content"), 1);
    AUTO_FREE char *text = json_dumps(link, JSON_COMPACT);
    assert_string_equal(text, "{\"type\":\"resource_link\",\"uri\":\"u1\",\"name\":\"d/a.csv\","
                              "\"mimeType\":\"text/csv\",\"size\":5}");
    link = json_array_get(json_object_get(result, "content"), 2);
    assert_string_equal(json_get_string(link, "mimeType"), "application/pdf");
    link = json_array_get(json_object_get(result, "content"), 3);
    assert_string_equal(json_get_string(link, "mimeType"), "application/octet-stream");
}

static void links_are_counted_and_names_cleaned_for_display(void **state)
{
    json_auto_t *result = run_making_many("a\n\xE2\x80\xAEx.csv", 59, "x.csv", 1);

    (void)state;
    assert_int_equal(count_type(result, "resource_link"), 50);
    assert_non_null(strstr(tools_world_text(result, 0), "50 more files"));
    assert_string_equal(
        json_get_string(json_array_get(json_object_get(result, "content"), 1), "name"),
        "a\xEF\xBF\xBD\xEF\xBF\xBDx.csv");
    /* The exact name is in the result. */
    assert_string_equal(
        json_get_string(json_array_get(json_object_get(structured(result), "files"), 0), "name"),
        "a\n\xE2\x80\xAEx.csv");
}

static void pictures_are_shown(void **state)
{
    const json_t *image;

    (void)state;
    fake_broker_add_file("a.png", PNG, PNG_LEN);
    fake_broker_add_file("b.jpg", JPEG, JPEG_LEN);
    json_auto_t *result = run_making(
        "[{\"name\":\"a.png\",\"size\":20,\"change\":\"created\",\"url\":\"u\"},"
        "{\"name\":\"b.jpg\",\"size\":20,\"change\":\"modified\",\"url\":\"u\"}]");
    assert_int_equal(count_type(result, "image"), 2);
    image = json_array_get(json_object_get(result, "content"), 1);
    assert_string_equal(json_get_string(image, "mimeType"), "image/png");
    AUTO_BUF struct buf decoded = BUF_INIT(1000);
    const char *data = json_get_string(image, "data");
    assert_int_equal(b64_decode(data, strlen(data), &decoded), 0);
    assert_int_equal(decoded.len, PNG_LEN);
    assert_memory_equal(decoded.data, PNG, decoded.len);
}

static void only_real_gifs_and_webps_are_shown(void **state)
{
    static const struct {
        const char *name, *content;
        size_t len;
        const char *type; /* NULL: not shown */
    } cases[] = {
        {"a.gif", "GIF89a\1\0\1\0", 10, "image/gif"},
        {"b.gif", "GIF87a\1\0\1\0", 10, "image/gif"},
        {"c.gif", "GIF89<svg>", 10, NULL},
        {"d.gif", "GIF8", 4, NULL},
        {"a.webp", "RIFF\4\0\0\0WEBPVP8 \4\0\0\0\0\0\0\x9d\1\x2a\1\0\1\0", 30, "image/webp"},
        {"b.webp", "RIFF\4\0\0\0WAVEfmt ", 16, NULL},
        {"c.webp", "<html>  WEBP", 12, NULL},
        {"d.webp", "RIFF\4\0\0\0WEB", 11, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *files = mem_printf(
            "[{\"name\":\"%s\",\"size\":10,\"change\":\"created\",\"url\":\"u\"}]", cases[i].name);
        fake_broker_add_file(cases[i].name, cases[i].content, cases[i].len);
        json_auto_t *result = run_making(files);
        assert_int_equal(count_type(result, "image"), cases[i].type != NULL);
        const json_t *image = json_array_get(json_object_get(result, "content"), 1);
        if (cases[i].type)
            assert_string_equal(json_get_string(image, "mimeType"), cases[i].type);
    }
}

static void files_that_come_opened_are_not_asked_for(void **state)
{
    (void)state;
    fake_broker_add_file("unnamed", "%PDF-1.4\n%\xe2\xe3\n1 0 obj", 20);
    fake_broker_add_file("a.png", PNG, PNG_LEN);
    fake_broker_add_file("b.jpg", JPEG, JPEG_LEN);
    for (size_t opened = 0; opened <= 3; opened++) {
        fake_broker.opens = 0;
        fake_broker.opened = opened;
        json_auto_t *result = run_making(
            "[{\"name\":\"unnamed\",\"size\":20,\"change\":\"created\",\"url\":\"u\"},"
            "{\"name\":\"gone.png\",\"size\":20,\"change\":\"deleted\"},"
            "{\"name\":\"a.png\",\"size\":20,\"change\":\"created\",\"url\":\"u\"},"
            "{\"name\":\"b.jpg\",\"size\":20,\"change\":\"created\",\"url\":\"u\"}]");
        const json_t *files = json_object_get(structured(result), "files");
        assert_string_equal(json_get_string(json_array_get(files, 0), "mimeType"),
                            "application/pdf");
        assert_int_equal(count_type(result, "image"), 2);
        assert_int_equal(fake_broker.opens, 3 - opened);
    }
}

static void pictures_that_are_none_or_too_many_or_too_big_are_not_shown(void **state)
{
    AUTO_FREE char *big = mem_alloc(5000);

    (void)state;
    memcpy(big, PNG, PNG_LEN);
    fake_broker_add_file("grew.png", big, 5000);
    fake_broker_add_file("fake.png", "<svg/>", 6);
    fake_broker_add_file("as.jpg", PNG, PNG_LEN);
    json_auto_t *none = run_making(
        "[{\"name\":\"fake.png\",\"size\":6,\"change\":\"created\",\"url\":\"u\"},"
        "{\"name\":\"as.jpg\",\"size\":20,\"change\":\"created\",\"url\":\"u\"},"
        "{\"name\":\"huge.png\",\"size\":1099511627776,\"change\":\"created\",\"url\":\"u\"},"
        "{\"name\":\"grew.png\",\"size\":20,\"change\":\"created\",\"url\":\"u\"},"
        "{\"name\":\"gone.png\",\"size\":20,\"change\":\"deleted\"},"
        "{\"name\":\"vanished.png\",\"size\":20,\"change\":\"created\",\"url\":\"u\"}]");
    assert_false(is_error(none));
    assert_int_equal(count_type(none, "image"), 0);
    assert_int_equal(fake_broker.opens, 4); /* the huge and the gone one are not even opened */
}

#define MADE(name, ms)                                                                             \
    "{\"name\":\"" name "\",\"size\":9,\"change\":\"created\",\"url\":\"u\",\"modifiedMs\":" ms "}"

static void pictures_come_in_the_order_of_their_making_and_none_twice(void **state)
{
    static const char *const names[] = {"f10.png", "f2.png", "late.png", "f1.png", "again.png"};
    AUTO_FREE char *content = mem_alloc(PNG_LEN + 1);

    (void)state;
    memcpy(content, PNG, PNG_LEN);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        content[PNG_LEN] = (char)(i == 4 ? 3 : i); /* as f1.png */
        fake_broker_add_file(names[i], content, PNG_LEN + 1);
    }
    json_auto_t *result = run_making("[" MADE("f10.png", "7") "," MADE("f2.png", "7") "," MADE(
        "late.png", "9") "," MADE("again.png", "6") "," MADE("f1.png", "5") "]");
    assert_int_equal(count_type(result, "image"), 3);
    assert_contains(tools_world_text(result, 0), "pictures: f1.png, f2.png, f10.png, and 1 more\n");
    AUTO_FREE char *all = json_dumps(result, 0);
    assert_null(strstr(all, "modifiedMs"));
}

static void what_models_see_scaled_is_scaled_where_python_is(void **state)
{
    static const char wide[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\6\x21\0\0\0\1 1569 by 1";
    AUTO_BUF struct buf drawn = BUF_INIT(1000);

    (void)state;
    b64_encode(JPEG, JPEG_LEN, &drawn);
    buf_add_str(&drawn, "\n");
    fake_broker_add_file("wide.png", wide, sizeof wide - 1);
    fake_broker_add_file("a.png", PNG, PNG_LEN);
    for (size_t answered = 0; answered <= 1; answered++) {
        fake_broker_push_ok("", "[" MADE("wide.png", "1") "," MADE("a.png", "2") "]");
        if (answered)
            fake_broker_push_ok(buf_str(&drawn), "[]");
        json_auto_t *result = run_with("");
        const json_t *first = json_array_get(json_object_get(result, "content"), 1);
        assert_int_equal(count_type(result, "image"), 2);
        assert_string_equal(json_get_string(first, "mimeType"),
                            answered ? "image/jpeg" : "image/png");
        const json_t *args = json_object_get(json_array_get(fake_broker.runs, 2 * answered + 1),
                                             "args");
        assert_int_equal(json_array_size(args), 2);
        assert_string_equal(json_string_value(json_array_get(args, 1)), "wide.png");
    }
}

#define TWO_SVG                                                                                    \
    "[{\"name\":\"a b.svg\",\"size\":9,\"change\":\"created\",\"url\":\"u\"},"                     \
    "{\"name\":\"-c.svg\",\"size\":9,\"change\":\"created\",\"url\":\"u\"}]"

static void svg_is_drawn_inside_the_sandbox(void **state)
{
    const json_t *request;
    AUTO_BUF struct buf drawn = BUF_INIT(1000);

    (void)state;
    buf_add_str(&drawn, "\n"); /* the first cannot be drawn */
    b64_encode(PNG, PNG_LEN, &drawn);
    buf_add_str(&drawn, "\n");
    fake_broker_push_ok("", TWO_SVG);
    fake_broker_push_ok(buf_str(&drawn), "[]");
    json_auto_t *result = run_with(",\"network\":true,\"environment\":{\"A\":\"b\"}");
    assert_int_equal(count_type(result, "image"), 1);
    assert_int_equal(count_type(result, "resource_link"), 2);

    request = json_array_get(fake_broker.runs, 1);
    AUTO_FREE char *args = json_dumps(json_object_get(request, "args"), JSON_COMPACT);
    assert_string_equal(args, "[\"281247\",\"-c.svg\",\"a b.svg\"]");
    assert_null(strstr(json_get_string(request, "code"), "a b.svg"));
    assert_string_equal(json_get_string(request, "language"), "python");
    assert_string_equal(json_get_string(request, "conversationId"), "c");
    assert_true(json_is_false(json_object_get(request, "network")));
    assert_int_equal(json_object_size(json_object_get(request, "env")), 0);
    assert_true(json_get_integer(request, "keepBytes", 0) > 2 * 4096);
}

static void what_is_drawn_badly_is_left_out_quietly(void **state)
{
    static const char *const printed[] = {"", "\n\n", "not base64\nAAAA\n", "PHN2Zz4=\n\n\n\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(printed); i++) {
        fake_broker_push_ok("", TWO_SVG);
        fake_broker_push_ok(printed[i], "[]");
        json_auto_t *result = run_with("");
        assert_false(is_error(result));
        assert_int_equal(count_type(result, "image"), 0);
        assert_int_equal(count_type(result, "resource_link"), 2);
    }
    fake_broker_push_ok("", TWO_SVG); /* and no answer at all to the drawing */
    json_auto_t *result = run_with("");
    assert_false(is_error(result));
    assert_int_equal(count_type(result, "image"), 0);
}

static void without_python_nothing_is_drawn(void **state)
{
    (void)state;
    fake_broker_set_runners("[{\"language\":\"bash\",\"image\":\"b\",\"version\":\"5\"}]");
    fake_broker_push_ok("", TWO_SVG);
    json_auto_t *result = tools_world_call(
        &world, "run_code", "{\"conversationId\":\"c\",\"language\":\"bash\",\"code\":\"\"}");
    assert_false(is_error(result));
    assert_int_equal(json_array_size(fake_broker.runs), 1);
}

static void an_unknown_language_lists_what_there_is(void **state)
{
    json_auto_t *result = tools_world_call(
        &world, "run_code", "{\"conversationId\":\"c\",\"language\":\"cobol\",\"code\":\"\"}");

    (void)state;
    assert_true(is_error(result));
    assert_string_equal(tools_world_text(result, 0),
                        "argument 'language' must be one of: bash, python");
    assert_int_equal(json_array_size(fake_broker.runs), 0);
}

static void a_language_that_just_arrived_runs_at_once(void **state)
{
    json_auto_t *before = tools_world_row(&world, "run_code"); /* fills the memory */

    (void)state;
    assert_non_null(before);
    fake_broker_set_runners("[{\"language\":\"ruby\",\"image\":\"r\",\"version\":\"3\"}]");
    fake_broker_push_ok("", "[]");
    json_auto_t *result = tools_world_call(
        &world, "run_code", "{\"conversationId\":\"c\",\"language\":\"ruby\",\"code\":\"\"}");
    assert_false(is_error(result));
}

static void another_name_of_a_language_that_is_known_asks_no_one(void **state)
{
    json_auto_t *before = tools_world_row(&world, "run_code"); /* fills the memory */

    (void)state;
    assert_non_null(before);
    fake_broker_push_ok("", "[]");
    json_auto_t *result = tools_world_call(
        &world, "run_code", "{\"conversationId\":\"c\",\"language\":\"py\",\"code\":\"\"}");
    assert_false(is_error(result));
    assert_int_equal(fake_broker.runner_questions, 1);
}

static void mistakes_are_named_and_nothing_runs(void **state)
{
    static const struct {
        const char *arguments, *problem;
    } cases[] = {
        {"{}", "argument 'language' is required"},
        {"{\"conversationId\":\"abc\\n\",\"language\":\"python\",\"code\":\"\"}",
         "argument 'conversationId' must not contain control characters"},
        {"{\"conversationId\":\"c\",\"language\":\"python\"}", "argument 'code' is required"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":1}",
         "argument 'code' must be a string, not a number"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\",\"timeoutMs\":\"soon\"}",
         "argument 'timeoutMs' must be an integer from 1000 to 300000 milliseconds, not a string"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\",\"timeoutMs\":300}",
         "argument 'timeoutMs' must be from 1000 to 300000 milliseconds"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\","
         "\"environment\":{\"LD_PRELOAD\":\"x\"}}",
         "environment variable 'LD_PRELOAD' cannot be set: it changes how programs are loaded"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\","
         "\"environment\":{\"A=B\":\"x\"}}",
         "environment variable 'A=B' is not a valid name: letters, digits and '_', not starting "
         "with a digit, at most 128 characters"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"cod\":\"\"}",
         "unknown argument 'cod'; did you mean 'code'?"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\",\"waitMs\":-1}",
         "argument 'waitMs' must be from 0 to 300000"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\",\"waitMs\":0.5}",
         "argument 'waitMs' must be an integer from 0 to 300000, not a fraction"},
        {"{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\",\"waitMs\":\"one\"}",
         "argument 'waitMs' must be an integer from 0 to 300000, not a string"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *result = tools_world_call(&world, "run_code", cases[i].arguments);

        assert_true(is_error(result));
        assert_string_equal(tools_world_text(result, 0), cases[i].problem);
        assert_null(structured(result));
    }
    assert_int_equal(json_array_size(fake_broker.runs), 0);
}

static void without_a_conversation_each_call_gets_one_of_its_own(void **state)
{
    const char *names[2];
    json_t *results[2];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fake_broker_push_ok("out", "[]");
        results[i] = tools_world_call(&world, "run_code",
                                      "{\"language\":\"python\",\"code\":\"\"}");
        const json_t *run = json_array_get(fake_broker.runs, i);
        const json_t *content = json_object_get(results[i], "content");
        size_t last = json_array_size(content) - 1;

        assert_false(is_error(results[i]));
        names[i] = json_get_string(structured(results[i]), "conversationId");
        assert_non_null(names[i]);
        assert_true(strlen(names[i]) > 16);
        assert_string_equal(json_get_string(run, "conversationId"), names[i]);
        assert_non_null(strstr(tools_world_text(results[i], last), names[i]));
    }
    assert_string_not_equal(names[0], names[1]);
    json_decref(results[0]);
    json_decref(results[1]);
}

static void a_conversation_that_is_named_is_not_told_again(void **state)
{
    (void)state;
    fake_broker_push_ok("out", "[]");
    json_auto_t *result = tools_world_call(
        &world, "run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"\"}");
    assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
}

static void sizes_are_bounded_and_the_bound_is_named(void **state)
{
    static const struct {
        const char *field;
        size_t size;
    } cases[] = {{"code", 1024}, {"stdin", 512}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *over = mem_alloc(cases[i].size + 2);
        AUTO_FREE char *wanted = mem_printf("argument '%s' is longer than %zu bytes",
                                            cases[i].field, cases[i].size);

        memset(over, 'x', cases[i].size + 1);
        json_auto_t *arguments = json_pack("{s:s, s:s, s:s}", "conversationId", "c", "language",
                                           "python", "code", "");
        json_object_set_new(arguments, cases[i].field, json_string(over));
        AUTO_FREE char *text = json_dumps(arguments, 0);
        json_auto_t *result = tools_world_call(&world, "run_code", text);
        assert_true(is_error(result));
        assert_string_equal(tools_world_text(result, 0), wanted);
    }
}

static void network_is_refused_where_it_is_not_allowed(void **state)
{
    (void)state;
    world.app.limits.network = NETWORK_NONE;
    json_auto_t *refused = run_with(",\"network\":true");
    assert_true(is_error(refused));
    assert_non_null(strstr(tools_world_text(refused, 0), "network"));
    assert_int_equal(json_array_size(fake_broker.runs), 0);
    fake_broker_push_ok("", "[]");
    json_auto_t *fine = run_with(",\"network\":false");
    assert_false(is_error(fine));
}

static void a_location_can_only_have_containers_used_less(void **state)
{
    static const struct {
        const char *said;
        bool single;
    } cases[] = {{NULL, false}, {"conversation", false}, {"never", true}, {"nevre", true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        world.reuse = cases[i].said;
        fake_broker_push_ok("", "[]");
        json_decref(run_with(""));
        assert_int_equal(json_get_bool(json_array_get(fake_broker.runs, i), "singleUse", 0),
                         cases[i].single);
    }
}

static void too_many_runs_is_status_busy(void **state)
{
    (void)state;
    err_set(&fake_broker.trouble, ERR_BUSY, "16 programs are running; try again soon");
    json_auto_t *result = run_with("");
    assert_true(is_error(result));
    assert_true(conforms(result));
    assert_string_equal(json_get_string(structured(result), "status"), "busy");
    assert_string_equal(tools_world_text(result, 0), "16 programs are running; try again soon");
}

static void an_engine_that_is_down_is_told_without_internals_and_recovers(void **state)
{
    (void)state;
    fake_broker_reset();
    json_auto_t *down = run_with("");
    assert_true(is_error(down));
    assert_non_null(strstr(tools_world_text(down, 0), "does not answer at the moment"));
    assert_null(strstr(tools_world_text(down, 0), "secret"));
    fake_broker_push_ok("", "[]");
    json_auto_t *up = run_with("");
    assert_false(is_error(up));
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST(asks_the_broker_for_exactly_what_was_said),
    TOOLS_TEST(leaves_out_what_was_not_said),
    TOOLS_TEST(a_result_conforms_and_its_text_says_how_it_ended),
    TOOLS_TEST(a_program_that_fails_is_a_successful_call),
    TOOLS_TEST(every_file_is_a_link_with_its_type),
    TOOLS_TEST(links_are_counted_and_names_cleaned_for_display),
    TOOLS_TEST(pictures_are_shown),
    TOOLS_TEST(only_real_gifs_and_webps_are_shown),
    TOOLS_TEST(files_that_come_opened_are_not_asked_for),
    TOOLS_TEST(pictures_that_are_none_or_too_many_or_too_big_are_not_shown),
    TOOLS_TEST(pictures_come_in_the_order_of_their_making_and_none_twice),
    TOOLS_TEST(what_models_see_scaled_is_scaled_where_python_is),
    TOOLS_TEST(svg_is_drawn_inside_the_sandbox),
    TOOLS_TEST(what_is_drawn_badly_is_left_out_quietly),
    TOOLS_TEST(without_python_nothing_is_drawn),
    TOOLS_TEST(an_unknown_language_lists_what_there_is),
    TOOLS_TEST(a_language_that_just_arrived_runs_at_once),
    TOOLS_TEST(another_name_of_a_language_that_is_known_asks_no_one),
    TOOLS_TEST(mistakes_are_named_and_nothing_runs),

    TOOLS_TEST(without_a_conversation_each_call_gets_one_of_its_own),

    TOOLS_TEST(a_conversation_that_is_named_is_not_told_again),
    TOOLS_TEST(sizes_are_bounded_and_the_bound_is_named),
    TOOLS_TEST(network_is_refused_where_it_is_not_allowed),
    TOOLS_TEST(a_location_can_only_have_containers_used_less),
    TOOLS_TEST(too_many_runs_is_status_busy),
    TOOLS_TEST(an_engine_that_is_down_is_told_without_internals_and_recovers),
};
UNIT_TESTS(tests)
