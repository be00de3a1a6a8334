/* download_archive and upload_archive: what they ask the broker for, and what they refuse. */
#include "config.h"

#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"

static void assert_fits(const char *tool, const json_t *result)
{
    json_auto_t *row = tools_world_row(&world, tool);

    assert_true(schema_fits(json_object_get(row, "outputSchema"),
                            json_object_get(result, "structuredContent")));
}

static void assert_refused(const char *tool, const char *arguments, const char *part)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);

    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_contains(tools_world_text(result, 0), part);
    assert_int_equal(json_array_size(fake_broker.asked), 0);
}

static void a_download_is_a_link(void **state)
{
    (void)state;
    fake_broker_set_archive("{\"url\":\"https://x.test/archives/a/d.zip?sig=1\",\"name\":\"d.zip\","
                            "\"format\":\"zip\",\"files\":2,\"bytes\":10,\"expiresAt\":1}");
    json_auto_t *result = tools_world_call(
        &world, "download_archive",
        "{\"conversationId\":\"c\",\"folder\":\"d\",\"format\":\"zip\"}");
    const json_t *asked = json_array_get(fake_broker.asked, 0);
    const json_t *link = json_array_get(json_object_get(result, "content"), 1);

    assert_fits("download_archive", result);
    assert_string_equal(json_get_string(asked, "folder"), "d");
    assert_string_equal(json_get_string(asked, "format"), "zip");
    assert_string_equal(json_get_string(link, "type"), "resource_link");
    assert_string_equal(json_get_string(link, "mimeType"), "application/zip");
    assert_null(json_object_get(link, "size"));
}

static void a_download_of_everything_is_a_tar(void **state)
{
    (void)state;
    json_auto_t *result = tools_world_call(&world, "download_archive",
                                           "{\"conversationId\":\"c\"}");
    const json_t *asked = json_array_get(fake_broker.asked, 0);

    assert_true(json_is_true(json_object_get(result, "isError")));
    assert_string_equal(json_get_string(asked, "folder"), "");
    assert_string_equal(json_get_string(asked, "format"), "tar.gz");
}

static void an_upload_is_unpacked(void **state)
{
    (void)state;
    fake_broker_set_archive("{\"files\":1,\"bytes\":3,\"names\":[\"d/a\"]}");
    json_auto_t *first = tools_world_call(
        &world, "upload_archive",
        "{\"conversationId\":\"c\",\"content\":\"aGk=\",\"folder\":\"d\",\"overwrite\":true}");
    json_auto_t *second = tools_world_call(&world, "upload_archive",
                                           "{\"conversationId\":\"c\",\"filename\":\"a.zip\"}");
    const json_t *bytes = json_array_get(fake_broker.asked, 0);
    const json_t *named = json_array_get(fake_broker.asked, 1);

    assert_fits("upload_archive", first);
    assert_fits("upload_archive", second);
    assert_int_equal(json_get_integer(bytes, "size", 0), 2);
    assert_string_equal(json_get_string(bytes, "folder"), "d");
    assert_true(json_get_bool(bytes, "replace", 0));
    assert_string_equal(json_get_string(named, "archive"), "a.zip");
    assert_string_equal(json_get_string(named, "folder"), "");
    assert_false(json_get_bool(named, "replace", 1));
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    assert_refused("upload_archive", "{\"conversationId\":\"c\"}", "either");
    assert_refused("upload_archive",
                   "{\"conversationId\":\"c\",\"content\":\"QQ==\",\"filename\":\"a\"}", "either");
    assert_refused("upload_archive", "{\"conversationId\":\"c\",\"filename\":\"../a\"}",
                   "filename");
    assert_refused("upload_archive",
                   "{\"conversationId\":\"c\",\"content\":\"aGk=\",\"folder\":\"/etc\"}", "folder");
    assert_refused("upload_archive", "{\"conversationId\":\"c\",\"content\":\"?\"}", "base64");
    assert_refused("download_archive", "{\"conversationId\":\"c\",\"folder\":\"a/../b\"}",
                   "folder");
    assert_refused("download_archive", "{\"conversationId\":\"c\",\"format\":\"rar\"}", "tar.gz");
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST(a_download_is_a_link),
    TOOLS_TEST(a_download_of_everything_is_a_tar),
    TOOLS_TEST(an_upload_is_unpacked),
    TOOLS_TEST(what_makes_no_sense_is_refused),
};
UNIT_TESTS(tests)
