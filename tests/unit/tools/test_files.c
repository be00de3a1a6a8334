/* The tools on single files: what they ask the broker, what they make of its answers. */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/events/event.h"
#include "common/rpc/json.h"
#include "tests/unit/tools/tools_fixture.h"

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1"

static json_t *published; /* array of the URIs that were told */

static void note_event(void *ctx, const struct mcp_event *event)
{
    (void)ctx;
    if (event->uri)
        json_array_append_new(published, json_string(event->uri));
}

static int set_up(void **state)
{
    tools_open(state);
    world.server.publish = note_event;
    published = json_array();
    return 0;
}

static int tear_down(void **state)
{
    json_decref(published);
    return tools_close(state);
}

/* A call that works; its structured result, borrowed from *out, which the caller gives back. */
static const json_t *works(const char *tool, const char *arguments, json_t **out)
{
    *out = tools_world_call(&world, tool, arguments);
    if (json_is_true(json_object_get(*out, "isError")))
        fail_msg("%s %s: %s", tool, arguments, tools_world_text(*out, 0));
    return json_object_get(*out, "structuredContent");
}

static void assert_refused(const char *tool, const char *arguments, const char *says)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);

    if (!json_is_true(json_object_get(result, "isError")))
        fail_msg("not refused: %s", arguments);
    if (!strstr(tools_world_text(result, 0), says))
        fail_msg("'%s' does not say '%s'", tools_world_text(result, 0), says);
}

static void assert_json(const json_t *value, const char *want)
{
    AUTO_FREE char *got = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    assert_string_equal(got, want);
}

/* ---- read_file ---- */

static void read_gives(const char *arguments, const char *encoding, const char *content,
                       json_int_t next)
{
    json_auto_t *whole = NULL;
    const json_t *result = works("read_file", arguments, &whole);

    assert_string_equal(json_get_string(result, "encoding"), encoding);
    if (strcmp(json_get_string(result, "content"), content) != 0)
        fail_msg("%s: got '%s'", arguments, json_get_string(result, "content"));
    assert_int_equal(json_get_integer(result, "nextOffset", -1), next);
}

static void text_comes_as_text_and_the_rest_as_base64(void **state)
{
    (void)state;
    fake_broker_add_file("t", "gr\xc3\xbc\xc3\x9f", 6);
    fake_broker_add_file("b", "a\0b", 3);
    fake_broker_add_file("l", "gr\xfc\xdf", 4);
    fake_broker_add_file("e", "", 0);
#define READ(name, more) "{\"conversationId\":\"c\",\"filename\":\"" name "\"" more "}"
    read_gives(READ("t", ""), "text", "gr\xc3\xbc\xc3\x9f", -1);
    read_gives(READ("t", ",\"encoding\":\"base64\""), "base64", "Z3LDvMOf", -1);
    read_gives(READ("b", ""), "base64", "YQBi", -1);
    read_gives(READ("l", ""), "base64", "Z3L83w==", -1);
    read_gives(READ("l", ",\"encoding\":\"text\""), "text", "gr\xef\xbf\xbd\xef\xbf\xbd", -1);
    read_gives(READ("e", ""), "text", "", -1);
}

/* Every length from every offset: pieces put together are the file, no character is cut. */
static void pieces_make_the_whole(void **state)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";

    (void)state;
    fake_broker_add_file("t", text, strlen(text));
    for (int length = 4; length <= 12; length++) {
        AUTO_BUF struct buf all = BUF_INIT(100);
        json_int_t offset = 0;

        for (int i = 0; offset >= 0; i++) {
            AUTO_FREE char *arguments = mem_printf(READ("t", ",\"offset\":%d,\"length\":%d"),
                                                   (int)offset, length);
            json_auto_t *whole = NULL;
            const json_t *result = works("read_file", arguments, &whole);
            assert_true(i < 20);
            assert_string_equal(json_get_string(result, "encoding"), "text");
            assert_int_equal(json_get_integer(result, "size", 0), strlen(text));
            buf_add_str(&all, json_get_string(result, "content"));
            offset = json_get_integer(result, "nextOffset", -1);
        }
        assert_string_equal(buf_str(&all), text);
    }
    read_gives(READ("t", ",\"offset\":1,\"length\":1"), "base64", "ww==", 2);
    read_gives(READ("t", ",\"offset\":11"), "text", "", -1);
}

static void a_picture_comes_as_an_image(void **state)
{
    json_auto_t *whole = NULL, *part = NULL, *big = NULL, *other = NULL;
    char huge[5000] = PNG;

    (void)state;
    fake_broker_add_file("p.png", PNG "rest", sizeof PNG - 1 + 4);
    fake_broker_add_file("big.png", huge, sizeof(huge));
    fake_broker_add_file("no.png", "<html>", 6);
    const json_t *result = works("read_file", READ("p.png", ""), &whole);
    assert_string_equal(json_get_string(result, "encoding"), "image");
    assert_null(json_object_get(result, "content"));
    const json_t *block = json_array_get(json_object_get(whole, "content"), 1);
    assert_string_equal(json_get_string(block, "type"), "image");
    assert_string_equal(json_get_string(block, "data"), "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABcmVzdA==");
    result = works("read_file", READ("p.png", ",\"offset\":0"), &part);
    assert_string_equal(json_get_string(result, "encoding"), "base64");
    result = works("read_file", READ("big.png", ",\"length\":9"), &big);
    assert_string_equal(json_get_string(result, "content"), "iVBORw0KGgoA");
    assert_int_equal(json_get_integer(result, "nextOffset", 0), 9);
    result = works("read_file", READ("no.png", ""), &other);
    assert_string_equal(json_get_string(result, "encoding"), "text");
}

static void bad_ranges_and_names_are_refused(void **state)
{
    (void)state;
    fake_broker_add_file("t", "12345", 5);
    assert_refused("read_file", READ("t", ",\"offset\":6"), "it has 5 bytes");
    assert_refused("read_file", READ("t", ",\"length\":0"), "'length' must be from 1");
    assert_refused("read_file", READ("t", ",\"length\":0"), "'length'");
    assert_refused("read_file", READ("t", ",\"offset\":-1"), "'offset'");
    assert_refused("read_file", READ("t", ",\"offset\":1e300"), "'offset'");
    assert_refused("read_file", READ("t", ",\"encoding\":\"latin1\""), "text, base64");
    assert_refused("read_file", READ("../t", ""), "filename");
    assert_refused("read_file", READ("absent", ""), "no such file");
}

/* ---- write_file ---- */

#define WRITE(more) "{\"conversationId\":\"c\",\"filename\":\"a\\nb\"" more "}"

/* At a place for models. */
static void reads(const char *arguments, const char *says)
{
    json_auto_t *result = tools_world_call(&world, "read_file", arguments);

    if (!strstr(tools_world_text(result, 0), says))
        fail_msg("%s: '%s' does not say '%s'", arguments, tools_world_text(result, 0), says);
}

static void a_model_gets_text_whatever_its_encoding(void **state)
{
    (void)state;
    world.server.in_text = true;
    world.app.limits.answer_max = 1000;
    fake_broker_add_file("l.csv",
                         "Gr\xf6\xdf"
                         "e;Stra\xdf"
                         "e\n",
                         13);
    fake_broker_add_file("u.txt", "h\0i\0\xe4\0", 6);
    fake_broker_add_file("j.txt", "\x93\xfa\x96\x7b\x8c\xea", 6);
    fake_broker_add_file("t", "gr\xc3\xbc\xc3\x9f", 6);
    fake_broker_add_file("b.bin", "\x01\0\xff\xfe", 4);
    reads(READ("l.csv", ""), "Gr\xc3\xb6\xc3\x9f"
                             "e;Stra\xc3\x9f"
                             "e\n");
    reads(READ("l.csv", ""), "(13 bytes, from Windows-1252)");
    reads(READ("u.txt", ""), "hi\xc3\xa4\n");
    reads(READ("u.txt", ",\"offset\":2,\"length\":3"), "i\n\nu.txt (6 bytes, from UTF-16LE): "
                                                       "bytes 2 to 4; the next with offset 4");
    reads(READ("j.txt", ""), "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e");
    reads(READ("t", ",\"offset\":3"), "\xef\xbf\xbd\xc3\x9f");
    reads(READ("b.bin", ",\"encoding\":\"base64\""), "AQD//g==");
    reads(READ("b.bin", ""), "b.bin: not text: 4 bytes of application/octet-stream");
}

/* Though they could be read as text. */
static void what_is_no_text_by_its_type_is_a_link(void **state)
{
    static const char pdf[] = "%PDF-1.4\n%\x93\x8c\x8b\x9e ReportLab Generated PDF document\n";

    (void)state;
    world.server.in_text = true;
    world.app.limits.answer_max = 1000;
    fake_broker_add_file("a.pdf", pdf, sizeof pdf - 1);
    fake_broker_add_file("a", pdf, sizeof pdf - 1);
    fake_broker_add_file("a.rtf", "{\\rtf1 x}", 9);
    fake_broker_add_file("a.svg", "<svg/>", 6);
    reads(READ("a.pdf", ""), "a.pdf: not text: 48 bytes of application/pdf");
    reads(READ("a", ""), "a: not text: 48 bytes of application/pdf");
    reads(READ("a.rtf", ""), "a.rtf: not text: 9 bytes of application/rtf");
    reads(READ("a.rtf", ",\"encoding\":\"text\""), "{\\rtf1 x}");
    reads(READ("a.svg", ""), "<svg/>");
}

static void a_file_is_written_from_text_or_base64(void **state)
{
    json_auto_t *text = NULL, *bytes = NULL;

    (void)state;
    fake_broker.trouble.kind = ERR_NONE;
    const json_t *result = works("write_file", WRITE(",\"text\":\"h\\u0000i\""), &text);
    assert_json(json_array_get(fake_broker.puts, 0),
                "{\"content\":\"h\\u0000i\",\"conversationId\":\"c\",\"name\":\"a\\nb\","
                "\"replace\":false,\"tenant\":\"me\"}");
    assert_string_equal(json_get_string(json_object_get(result, "file"), "mimeType"),
                        "application/octet-stream");
    works("write_file", WRITE(",\"base64\":\"aGk=\",\"overwrite\":true"), &bytes);
    assert_json(json_array_get(fake_broker.puts, 1),
                "{\"content\":\"hi\",\"conversationId\":\"c\",\"name\":\"a\\nb\","
                "\"replace\":true,\"tenant\":\"me\"}");
    assert_json(published, "[\"sandbox://c/a%0Ab\",\"sandbox://c/a%0Ab\"]");
    json_auto_t *both = NULL;
    works("write_file", WRITE(",\"text\":\"\",\"base64\":\"aGk=\""), &both);
    assert_string_equal(json_get_string(json_array_get(fake_broker.puts, 2), "content"), "hi");
}

static void content_is_one_of_two_and_bounded(void **state)
{
    AUTO_FREE char *longest = mem_alloc(1002);

    (void)state;
    memset(longest, 'x', 1001);
    AUTO_FREE char *over = mem_printf(WRITE(",\"text\":\"%s\""), longest);
    assert_refused("write_file", WRITE(""), "either");
    assert_refused("write_file", WRITE(",\"text\":\"a\",\"base64\":\"QQ==\""), "either");
    assert_refused("write_file", WRITE(",\"base64\":\"a\""), "not base64");
    assert_refused("write_file", over, "'text' is longer than 1000 bytes");
    world.app.limits.file_max = 20;
    assert_refused("write_file", WRITE(",\"text\":{\"a\":[1,2]}"),
                   "'text' is longer than 20 bytes");
    err_set(&fake_broker.trouble, ERR_EXISTS, "there is something");
    assert_refused("write_file", WRITE(",\"text\":\"\""),
                   "argument 'filename': there is something of that name already; overwrite");
    assert_refused("write_file", WRITE(",\"text\":\"\",\"overwrit\":true"),
                   "unknown argument 'overwrit' (did you mean 'overwrite'?): passed over");
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

/* ---- list_files ---- */

static void a_page_is_asked_for_as_the_call_says(void **state)
{
    json_auto_t *first = NULL, *second = NULL;

    (void)state;
    fake_broker_push_file_answer("{\"files\":[{\"name\":\"a\",\"type\":\"folder\","
                                 "\"modified\":1}],\"next\":\"YQ==\",\"incomplete\":true}");
    fake_broker_push_file_answer("{\"files\":[]}");
    const json_t *page = works("list_files", "{\"conversationId\":\"c\"}", &first);
    assert_json(page, "{\"files\":[{\"modified\":1,\"name\":\"a\",\"type\":\"folder\"}],"
                      "\"incomplete\":true,\"nextCursor\":\"YQ==\"}");
    page = works("list_files",
                 "{\"conversationId\":\"c\",\"folder\":\"f\",\"glob\":\"*.c\",\"recursive\":true,"
                 "\"limit\":7,\"cursor\":\"YQ==\"}",
                 &second);
    assert_json(page, "{\"files\":[]}");
    assert_json(fake_broker.file_asks,
                "[{\"conversationId\":\"c\",\"folder\":\"\",\"max\":200,\"op\":\"list_folder\","
                "\"recursive\":false,\"tenant\":\"me\"},"
                "{\"after\":\"YQ==\",\"conversationId\":\"c\",\"folder\":\"f\",\"glob\":\"*.c\","
                "\"max\":7,\"op\":\"list_folder\",\"recursive\":true,\"tenant\":\"me\"}]");
}

static void push_signed(int n)
{
    json_auto_t *rows = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(rows,
                              json_pack("{s:o, s:s, s:i, s:o}", "name", json_sprintf("%060d", i),
                                        "type", "file", "size", 5, "url",
                                        json_sprintf("https://x.test/%060d?s=%d", i, i)));
    json_auto_t *page = json_pack("{s:O, s:s}", "files", rows, "next", "YQ==");
    AUTO_FREE char *text = json_dumps(page, 0);
    fake_broker_push_file_answer(text);
}

/* The entries that are counted are those that are shown, each with its link or none of them. */
static void links_that_are_signed_are_said_of_short_lists(void **state)
{
    static const struct {
        int page[2];
        const char *arguments;
        size_t links;
        const char *says;
    } cases[] = {
        {{30, 14}, "", 0, "\n14 entries; more with cursor YQ==\nlinks: list_files with limit 20"},
        {{20, 6}, ",\"limit\":20", 6, "\n6 entries; more with cursor YQ=="},
        {{3, 0}, "", 3, "\n3 entries; more with cursor YQ=="},
    };

    (void)state;
    world.server.in_text = true;
    world.app.limits.answer_max = 1024;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_FREE char *arguments = mem_printf("{\"conversationId\":\"c\"%s}", cases[i].arguments);
        size_t links = 0, asked = json_array_size(fake_broker.file_asks);

        push_signed(cases[i].page[0]);
        if (cases[i].page[1])
            push_signed(cases[i].page[1]);
        json_auto_t *result = tools_world_call(&world, "list_files", arguments);
        const char *text = tools_world_text(result, 0);
        for (const char *at = text; (at = strstr(at, ": https://x.test/")); at++)
            links++;
        assert_int_equal(links, cases[i].links);
        assert_contains(text, cases[i].says);
        if (cases[i].page[1])
            assert_int_equal(
                json_get_integer(json_array_get(fake_broker.file_asks, asked + 1), "max", 0),
                cases[i].page[1]);
    }
}

static void a_conversation_without_a_sandbox_has_no_files(void **state)
{
    json_auto_t *whole = NULL;

    (void)state;
    err_set(&fake_broker.trouble, ERR_NOT_FOUND, "there is no such sandbox");
    assert_json(works("list_files", "{\"conversationId\":\"c\"}", &whole), "{\"files\":[]}");
    assert_refused("list_files", "{\"conversationId\":\"c\",\"folder\":\"f\"}", "no such");
    assert_refused("list_files", "{\"conversationId\":\"c\",\"limit\":0}", "from 1 to 1000");
}

/* ---- delete_file, move_file ---- */

static void deleting_a_folder_tells_of_its_files(void **state)
{
    json_auto_t *one = NULL, *all = NULL;

    (void)state;
    fake_broker_push_file_answer("{\"deleted\":1}");
    assert_json(works("delete_file", "{\"conversationId\":\"c\",\"filename\":\"a\"}", &one),
                "{\"deleted\":1}");
    assert_json(published, "[\"sandbox://c/a\"]");
    fake_broker_push_file_answer(
        "{\"files\":[{\"name\":\"f/x\",\"url\":\"u\"},{\"name\":\"f/g\"}]}");
    fake_broker_push_file_answer("{\"deleted\":3}");
    works("delete_file", "{\"conversationId\":\"c\",\"filename\":\"f\",\"recursive\":true}", &all);
    assert_json(published, "[\"sandbox://c/a\",\"sandbox://c/f/x\",\"sandbox://c/f\"]");
}

static void moving_a_folder_tells_of_old_and_new_names(void **state)
{
    json_auto_t *one = NULL, *all = NULL;

    (void)state;
    fake_broker_push_file_answer("{\"name\":\"b\",\"type\":\"file\",\"url\":\"u\"}");
    const json_t *result = works("move_file",
                                 "{\"conversationId\":\"c\",\"from\":\"a\",\"to\":\"b\"}", &one);
    assert_string_equal(json_get_string(json_object_get(result, "file"), "name"), "b");
    assert_json(published, "[\"sandbox://c/a\",\"sandbox://c/b\"]");
    json_array_clear(published);
    fake_broker_push_file_answer("{\"name\":\"n\",\"type\":\"folder\"}");
    fake_broker_push_file_answer("{\"files\":[{\"name\":\"n/x\",\"url\":\"u\"}]}");
    works("move_file", "{\"conversationId\":\"c\",\"from\":\"o\",\"to\":\"n\",\"overwrite\":true}",
          &all);
    assert_json(published, "[\"sandbox://c/n/x\",\"sandbox://c/o/x\",\"sandbox://c/o\","
                           "\"sandbox://c/n\"]");
}

static void what_the_broker_refuses_is_told_and_not_published(void **state)
{
    (void)state;
    err_set(&fake_broker.trouble, ERR_EXISTS, "there is something of the new name already");
    assert_refused("move_file", "{\"conversationId\":\"c\",\"from\":\"a\",\"to\":\"b\"}",
                   "something of the new name");
    assert_refused("delete_file", "{\"conversationId\":\"c\",\"filename\":\"a\"}", "something");
    assert_int_equal(json_array_size(published), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    CASE(text_comes_as_text_and_the_rest_as_base64),
    CASE(pieces_make_the_whole),
    CASE(a_picture_comes_as_an_image),
    CASE(bad_ranges_and_names_are_refused),
    CASE(a_model_gets_text_whatever_its_encoding),
    CASE(what_is_no_text_by_its_type_is_a_link),
    CASE(a_file_is_written_from_text_or_base64),
    CASE(content_is_one_of_two_and_bounded),
    CASE(a_page_is_asked_for_as_the_call_says),
    CASE(links_that_are_signed_are_said_of_short_lists),
    CASE(a_conversation_without_a_sandbox_has_no_files),
    CASE(deleting_a_folder_tells_of_its_files),
    CASE(moving_a_folder_tells_of_old_and_new_names),
    CASE(what_the_broker_refuses_is_told_and_not_published),
};
UNIT_TESTS(tests)
