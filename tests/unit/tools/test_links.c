/* create_upload and import_url: what they ask the broker, what they make of its answers. */
#include "config.h"

#include "common/mcp/events/event.h"
#include "common/rpc/json.h"
#include "tests/fakes/schema.h"
#include "tests/unit/tools/tools_fixture.h"

static int told;

static void note_event(void *ctx, const struct mcp_event *event)
{
    (void)ctx;
    (void)event;
    told++;
}

static int set_up(void **state)
{
    tools_open_calm(state);
    world.server.publish = note_event;
    world.app.limits.upload_max = 1000;
    world.app.limits.upload_ttl_ms = 60000;
    world.app.limits.import = true;
    told = 0;
    return 0;
}

static void assert_asked(const char *want)
{
    AUTO_FREE char *asked = json_dumps(json_array_get(fake_broker.file_asks, 0),
                                       JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(asked, want);
}

static void assert_refused(const char *tool, const char *arguments, const char *says)
{
    json_auto_t *result = tools_world_call(&world, tool, arguments);

    assert_true(json_is_true(json_object_get(result, "isError")));
    if (!strstr(tools_world_text(result, 0), says))
        fail_msg("%s: %s", arguments, tools_world_text(result, 0));
}

static void an_upload_link_is_passed_on(void **state)
{
    (void)state;
    fake_broker_push_file_answer("{\"url\":\"https://x.test/uploads/1\",\"method\":\"PUT\","
                                 "\"maxBytes\":7,\"expiresAt\":99}");
    json_auto_t *row = tools_world_row(&world, "create_upload");
    json_auto_t *result = tools_world_call(
        &world, "create_upload", "{\"conversationId\":\"c\",\"filename\":\"f\",\"size\":7}");
    const json_t *structured = json_object_get(result, "structuredContent");
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    assert_int_equal(json_get_integer(structured, "maxBytes", 0), 7);
    assert_asked("{\"conversationId\":\"c\",\"name\":\"f\",\"op\":\"create_upload\",\"size\":7,"
                 "\"tenant\":\"me\"}");
    assert_int_equal(told, 0);
    assert_non_null(strstr(json_get_string(row, "description"), "within 60 s"));
}

static void the_limits_of_uploads_are_told(void **state)
{
    (void)state;
    assert_refused("create_upload", "{\"conversationId\":\"c\",\"filename\":\"f\",\"size\":1001}",
                   "'size' must be from 0 to 1000");
    assert_refused("create_upload", "{\"conversationId\":\"c\"}", "filename");
    fake_broker.trouble = (struct err){.kind = ERR_INVALID, .text = "filename must be good"};
    assert_refused("create_upload", "{\"conversationId\":\"c\",\"filename\":\"../x\"}",
                   "filename must be good");
}

static void a_fetched_file_is_linked_and_told(void **state)
{
    (void)state;
    fake_broker_push_file_answer(
        "{\"name\":\"a.csv\",\"size\":12,\"url\":\"https://x.test/files/ab/a.csv\"}");
    json_auto_t *row = tools_world_row(&world, "import_url");
    json_auto_t *result = tools_world_call(
        &world, "import_url", "{\"conversationId\":\"c\",\"url\":\"https://y.test/a.csv\"}");
    const json_t *structured = json_object_get(result, "structuredContent");
    assert_true(schema_fits(json_object_get(row, "outputSchema"), structured));
    assert_string_equal(json_get_string(structured, "mimeType"), "text/csv");
    const json_t *link = json_array_get(json_object_get(result, "content"), 1);
    assert_string_equal(json_get_string(link, "uri"), "https://x.test/files/ab/a.csv");
    assert_asked(
        "{\"conversationId\":\"c\",\"op\":\"import_url\",\"tenant\":\"me\",\"url\":\"https://"
        "y.test/a.csv\"}");
    assert_int_equal(told, 2);
}

static void a_url_that_cannot_be_fetched_is_not_asked_for(void **state)
{
    (void)state;
    assert_refused("import_url", "{\"conversationId\":\"c\",\"url\":\"http://y.test/secret\"}",
                   "url must begin with https://");
    assert_refused("import_url", "{\"conversationId\":\"c\"}", "url");
    assert_int_equal(json_array_size(fake_broker.file_asks), 0);
    fake_broker.trouble = (struct err){.kind = ERR_DENIED, .text = "only public servers"};
    assert_refused("import_url", "{\"conversationId\":\"c\",\"url\":\"https://10.0.0.1/x\"}",
                   "only public servers");
    assert_int_equal(told, 0);
}

static const struct CMUnitTest tests[] = {
    TOOLS_TEST_AFTER(an_upload_link_is_passed_on, set_up),
    TOOLS_TEST_AFTER(the_limits_of_uploads_are_told, set_up),
    TOOLS_TEST_AFTER(a_fetched_file_is_linked_and_told, set_up),
    TOOLS_TEST_AFTER(a_url_that_cannot_be_fetched_is_not_asked_for, set_up),
};
UNIT_TESTS(tests)
