#include "config.h"

#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"
#include <errno.h>
#include <string.h>

/* arguments with this file name, given as JSON text, and the content "hi". */
static json_t *upload_named(const char *name)
{
    AUTO_FREE char *arguments = mem_printf(
        "{\"conversationId\":\"c\",\"filename\":%s,\"content\":\"aGk=\"}", name);

    return tools_world_call(&world, "upload_file", arguments);
}

static json_t *upload_content(const char *content)
{
    AUTO_FREE char *arguments = mem_printf(
        "{\"conversationId\":\"c\",\"filename\":\"a.csv\",\"content\":\"%s\"}", content);

    return tools_world_call(&world, "upload_file", arguments);
}

static void stores_the_content_and_says_where(void **state)
{
    json_auto_t *result = upload_named("\"a/b.csv\"");
    const json_t *structured = json_object_get(result, "structuredContent");
    const json_t *file = json_object_get(structured, "file");
    const json_t *put = json_array_get(fake_broker.puts, 0);
    const json_t *link = json_array_get(json_object_get(result, "content"), 1);
    json_auto_t *row = tools_world_row(&world, "upload_file");

    (void)state;
    assert_true(json_is_false(json_object_get(result, "isError")));
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    assert_string_equal(json_get_string(structured, "message"),
                        "File 'a/b.csv' uploaded successfully (2 bytes)");
    assert_string_equal(json_get_string(file, "name"), "a/b.csv");
    assert_string_equal(json_get_string(file, "mimeType"), "text/csv");
    assert_int_equal(json_get_integer(file, "size", -1), 2);
    assert_string_equal(json_get_string(put, "content"), "hi");
    assert_string_equal(json_get_string(put, "tenant"), "me");
    assert_string_equal(json_get_string(put, "conversationId"), "c");
    assert_string_equal(json_get_string(put, "name"), "a/b.csv");
    assert_string_equal(json_get_string(link, "type"), "resource_link");
    assert_string_equal(json_get_string(link, "uri"), json_get_string(file, "url"));
}

static void the_text_names_the_file(void **state)
{
    json_auto_t *result = upload_named("\"a.csv\"");
    const json_t *file = json_object_get(json_object_get(result, "structuredContent"), "file");
    AUTO_FREE char *wanted = mem_printf("a.csv (%d bytes): %s",
                                        (int)json_get_integer(file, "size", 0),
                                        json_get_string(file, "url"));

    (void)state;
    assert_string_equal(tools_world_text(result, 0), wanted);
}

static void an_empty_content_is_an_empty_file(void **state)
{
    json_auto_t *result = upload_content("");

    (void)state;
    assert_true(json_is_false(json_object_get(result, "isError")));
    assert_string_equal(json_get_string(json_array_get(fake_broker.puts, 0), "content"), "");
}

static void the_old_name_works_too(void **state)
{
    json_auto_t *result = tools_world_call(
        &world, "sandbox.upload_file",
        "{\"conversationId\":\"c\",\"filename\":\"a\",\"content\":\"aGk=\"}");

    (void)state;
    assert_true(json_is_false(json_object_get(result, "isError")));
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const names[] = {
        "\"../../../../etc/cron.d/x\"",
        "\"a/../../b\"",
        "\"/etc/passwd\"",
        "\".\"",
        "\"..\"",
        "\"\"",
        "\"a\\u0000b\"",
        "\"a/\"",
        "\"%2e%2e%2f\"",
        "1",
        "null",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        json_auto_t *result = upload_named(names[i]);

        if (!json_is_true(json_object_get(result, "isError")))
            print_error("name: %s\n", names[i]);
        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_non_null(strstr(tools_world_text(result, 0), "filename"));
        assert_null(json_object_get(result, "structuredContent"));
    }
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

static void an_over_long_name_is_refused(void **state)
{
    char name[259] = "\"";

    (void)state;
    memset(name + 1, 'a', 256);
    name[257] = '"';
    json_auto_t *result = upload_named(name);
    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

static void strange_but_harmless_names_are_kept_as_they_are(void **state)
{
    static const char *const names[] = {"100%",         "a b", "-rf",    "$(id)",
                                        "\xC3\xA4.csv", "...", "a;b`c'd"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        AUTO_FREE char *quoted = mem_printf("\"%s\"", names[i]);
        json_auto_t *result = upload_named(quoted);

        assert_true(json_is_false(json_object_get(result, "isError")));
        assert_string_equal(json_get_string(json_array_get(fake_broker.puts, i), "name"), names[i]);
    }
}

static void what_is_not_base64_is_refused(void **state)
{
    static const char *const contents[] = {
        "aGk==", "a", "====", "aGl=", "aGk=aGk=", "aG!k", "\\u0000\\u0000\\u0000="};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        json_auto_t *result = upload_content(contents[i]);

        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_non_null(strstr(tools_world_text(result, 0), "argument 'content' is not base64"));
    }
    assert_int_equal(json_array_size(fake_broker.puts), 0);
}

/* The limit of this world is 1000 bytes. */
static void the_size_limit_counts_decoded_bytes(void **state)
{
    static const struct {
        size_t size;
        bool fits;
    } cases[] = {{999, true}, {1000, true}, {1001, false}, {1002, false}, {5000, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf encoded = BUF_INIT(10000);
        AUTO_FREE char *raw = mem_alloc(cases[i].size);

        b64_encode(raw, cases[i].size, &encoded);
        json_auto_t *result = upload_content(buf_str(&encoded));
        assert_int_equal(json_is_false(json_object_get(result, "isError")), cases[i].fits);
        if (!cases[i].fits)
            assert_string_equal(tools_world_text(result, 0),
                                "argument 'content' decodes to more than 1000 bytes; over HTTP "
                                "create_upload makes a link for larger files");
    }
}

static void trouble_is_told_without_our_paths(void **state)
{
    static const struct {
        enum err_kind kind;
        const char *text, *told;
        int sys;
    } cases[] = {
        {ERR_UNAVAILABLE, "connect /run/x.sock", "container engine does not answer", 0},
        {ERR_AWAY, "/run/x.sock: no process listens there", "broker is starting or stopping", 0},
        {ERR_IO, "write /srv/secret/x: No space left on device", "no room left", ENOSPC},
        {ERR_IO, "write /srv/secret/x: Disk quota exceeded", "no room left", EDQUOT},
        {ERR_IO, "open /srv/secret: Permission denied", "cannot write", EACCES},
        {ERR_IO, "open /srv/secret: Input/output error", "could not read or write", EIO},
        {ERR_INTERNAL, "assert /srv/secret", "the server failed", 0},
        {ERR_INVALID, "filename: 'a' is a folder", "filename: 'a' is a folder", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        err_set(&fake_broker.trouble, cases[i].kind, "%s", cases[i].text);
        fake_broker.trouble.sys = cases[i].sys;
        json_auto_t *result = upload_named("\"a\"");

        assert_true(json_is_true(json_object_get(result, "isError")));
        assert_non_null(strstr(tools_world_text(result, 0), cases[i].told));
        assert_null(strstr(tools_world_text(result, 0), "secret"));
        assert_null(strstr(tools_world_text(result, 0), "/run"));
    }
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(stores_the_content_and_says_where, tools_open_calm),
    TOOLS_TEST_AFTER(the_text_names_the_file, tools_open_calm),
    TOOLS_TEST_AFTER(an_empty_content_is_an_empty_file, tools_open_calm),
    TOOLS_TEST_AFTER(the_old_name_works_too, tools_open_calm),
    TOOLS_TEST_AFTER(names_that_lead_elsewhere_are_refused, tools_open_calm),
    TOOLS_TEST_AFTER(an_over_long_name_is_refused, tools_open_calm),
    TOOLS_TEST_AFTER(strange_but_harmless_names_are_kept_as_they_are, tools_open_calm),
    TOOLS_TEST_AFTER(what_is_not_base64_is_refused, tools_open_calm),
    TOOLS_TEST_AFTER(the_size_limit_counts_decoded_bytes, tools_open_calm),
    TOOLS_TEST_AFTER(trouble_is_told_without_our_paths, tools_open_calm),
};
UNIT_TESTS(tests)
