/* Files as resources: pages and cursors, text and blobs, bounds, completion. */
#include "config.h"

#include "common/base/b64.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "tests/unit/tools/tools_fixture.h"

static const struct mcp_resources *const r = &tools_resources;

static json_t *named; /* conversations */

static int set_up(void **state)
{
    tools_open(state);
    named = json_pack("[s]", "a b");
    return 0;
}

static int tear_down(void **state)
{
    json_decref(named);
    return tools_close(state);
}

static void a_page_tells_what_is_known_of_each_file(void **state)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *next = NULL;

    (void)state;
    fake_broker_push_page("{\"files\":[{\"conversationId\":\"a b\",\"name\":\"d/x.csv\",\"size\":5,"
                          "\"modified\":1000000000},{\"conversationId\":\"a b\",\"name\":\"noext\","
                          "\"size\":0,\"modified\":-1}]}");
    json_auto_t *page = r->list(&world.app, "me", named, NULL, &next, &e);
    AUTO_FREE char *text = json_dumps(page, JSON_COMPACT);
    assert_string_equal(text, "[{\"uri\":\"sandbox://a%20b/d/x.csv\",\"name\":\"d/x.csv\","
                              "\"mimeType\":\"text/csv\",\"size\":5,"
                              "\"annotations\":{\"lastModified\":\"2001-09-09T01:46:40Z\"}},"
                              "{\"uri\":\"sandbox://a%20b/noext\",\"name\":\"noext\",\"size\":0}]");
    assert_null(next);
    assert_string_equal(json_get_string(json_array_get(fake_broker.lists, 0), "tenant"), "me");
    assert_true(
        json_equal(json_object_get(json_array_get(fake_broker.lists, 0), "conversations"), named));
    json_array_clear(named);
    json_auto_t *none = r->list(&world.app, "me", named, NULL, &next, &e);
    json_auto_t *nor = r->list(&world.app, "me", NULL, NULL, &next, &e);
    assert_int_equal(json_array_size(none) + json_array_size(nor), 0);
    assert_int_equal(json_array_size(fake_broker.lists), 1);
}

static void times_that_no_date_can_tell_are_left_out(void **state)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *next = NULL;

    (void)state;
    fake_broker_push_page("{\"files\":[{\"conversationId\":\"c\",\"name\":\"a.csv\",\"size\":1,"
                          "\"modified\":9223372036854775807},{\"conversationId\":\"c\","
                          "\"name\":\"b.csv\",\"size\":1,\"modified\":253402300800}]}");
    json_auto_t *page = r->list(&world.app, "me", named, "", &next, &e);
    assert_int_equal(json_array_size(page), 2);
    assert_null(json_object_get(json_array_get(page, 0), "annotations"));
    assert_null(json_object_get(json_array_get(page, 1), "annotations"));
}

static void a_cursor_brings_back_where_the_broker_stopped(void **state)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *next = NULL;
    AUTO_FREE char *last = NULL;

    (void)state;
    fake_broker_push_page("{\"files\":[],\"next\":{\"created\":7,\"sandbox\":\"ab\",\"name\":"
                          "\"\xc3\xa4\"}}");
    fake_broker_push_page("{\"files\":[]}");
    json_auto_t *first = r->list(&world.app, "me", named, NULL, &next, &e);
    assert_non_null(first);
    assert_non_null(next);
    json_auto_t *second = r->list(&world.app, "me", named, next, &last, &e);
    assert_non_null(second);
    assert_null(last);
    AUTO_FREE char *after = json_dumps(
        json_object_get(json_array_get(fake_broker.lists, 1), "after"), JSON_COMPACT);
    assert_string_equal(after, "{\"created\":7,\"sandbox\":\"ab\",\"name\":\"\xc3\xa4\"}");
}

static void a_cursor_that_is_none_is_refused_before_the_broker_hears_of_it(void **state)
{
    AUTO_FREE char *huge = mem_alloc(100001);
    const char *const cursors[] = {"x", "====", "bm90IGpzb24=", "W1tbW11dXV0=", huge};

    (void)state;
    memset(huge, 'A', 100000);
    for (size_t i = 0; i < ARRAY_LEN(cursors); i++) {
        struct err e = ERR_INIT;
        char *next = NULL;

        assert_null(r->list(&world.app, "me", named, cursors[i], &next, &e));
        assert_int_equal(e.kind, ERR_INVALID);
        assert_null(next);
    }
    assert_int_equal(json_array_size(fake_broker.lists), 0);
}

static void trouble_is_told_without_internals(void **state)
{
    struct err e = ERR_INIT;
    char *next = NULL;

    (void)state;
    assert_null(r->list(&world.app, "me", named, NULL, &next, &e));
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_null(strstr(e.text, "secret"));
}

/* The one entry of the contents of a file that the fake broker has. */
static json_t *read_one(const char *name, const void *data, size_t len)
{
    AUTO_FREE char *uri = mem_printf("sandbox://c/%s", name);
    struct err e = ERR_INIT;

    fake_broker_add_file(name, data, len);
    json_auto_t *contents = r->read(&world.app, "me", uri, &e);
    if (!contents)
        fail_msg("%s: %s", name, e.text);
    assert_int_equal(json_array_size(contents), 1);
    json_t *one = json_array_get(contents, 0);
    assert_string_equal(json_get_string(one, "uri"), uri);
    return json_incref(one); /* outlives its array */
}

static void text_is_read_as_text_and_everything_else_as_a_blob(void **state)
{
    static const struct {
        const char *name, *data;
        size_t len;
        const char *type;
        bool text;
    } cases[] = {
        {"a.csv", "a,b\n1,2\n", 8, "text/csv", true},
        {"a.json", "{}", 2, "application/json", true},
        {"a.svg", "<svg/>", 6, "image/svg+xml", true},
        {"a.ipynb", "{}", 2, "application/x-ipynb+json", true},
        {"empty.txt", "", 0, "text/plain", true},
        {"noext", "just words\n", 11, "text/plain", true},
        {"nothing", "", 0, "text/plain", true},
        {"latin.txt", "gr\xfc\xdf", 4, "text/plain", false},
        {"nul.txt", "a\0b", 3, "text/plain", false},
        {"a.png", "plain ascii", 11, "image/png", false},
        {"a.zip", "PK\3\4", 4, "application/zip", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *one = read_one(cases[i].name, cases[i].data, cases[i].len);
        const json_t *value = json_object_get(one, cases[i].text ? "text" : "blob");
        AUTO_BUF struct buf decoded = BUF_INIT(100);

        assert_string_equal(json_get_string(one, "mimeType"), cases[i].type);
        assert_int_equal(json_object_size(one), 3);
        assert_true(json_is_string(value));
        if (cases[i].text)
            buf_add(&decoded, json_string_value(value), json_string_length(value));
        else
            assert_int_equal(
                b64_decode(json_string_value(value), json_string_length(value), &decoded), 0);
        assert_int_equal(decoded.len, cases[i].len);
        assert_memory_equal(buf_str(&decoded), cases[i].data, cases[i].len);
    }
}

static void what_is_too_large_is_refused_with_the_bound(void **state)
{
    AUTO_FREE char *big = mem_alloc(1002);
    struct err e = ERR_INIT;

    (void)state;
    memset(big, 'x', 1001);
    json_auto_t *fits = read_one("fits.txt", big, 1000);
    assert_non_null(fits);
    fake_broker_add_file("big.txt", big, 1001);
    assert_null(r->read(&world.app, "me", "sandbox://c/big.txt", &e));
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_contains(e.text, "1001 bytes");
    assert_contains(e.text, "1000");
}

static void unknown_and_impossible_uris_look_the_same(void **state)
{
    static const char *const uris[] = {"sandbox://c/missing", "sandbox://c/../x", "file:///etc",
                                       ""};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(uris); i++) {
        struct err e = ERR_INIT;

        assert_null(r->read(&world.app, "me", uris[i], &e));
        assert_int_equal(e.kind, ERR_NOT_FOUND);
        assert_string_equal(e.text, "there is no such resource");
    }
}

static void one_can_wait_for_files_that_do_not_exist_yet(void **state)
{
    (void)state;
    assert_true(r->can_subscribe(&world.app, "me", "sandbox://c/yet/to/come.csv"));
    assert_false(r->can_subscribe(&world.app, "me", "sandbox://c/a+b"));
    assert_false(r->can_subscribe(&world.app, "me", "sandbox://c/"));
    assert_false(r->can_subscribe(&world.app, "me", "https://x.test/"));
}

static void the_template_and_its_variables(void **state)
{
    (void)state;
    fake_broker_set_names("[\"one\",\"other\"]");
    json_auto_t *templates = r->templates(&world.app);
    const char *template = json_get_string(json_array_get(templates, 0), "uriTemplate");
    json_auto_t *context = json_pack("{s:s}", "conversationId", "one");
    json_auto_t *files = r->complete(&world.app, "me", template, "path", "d/", context);
    assert_string_equal(template, "sandbox://{conversationId}/{+path}");
    assert_int_equal(json_array_size(files), 2);
    AUTO_FREE char *asked = json_dumps(json_array_get(fake_broker.lists, 0), JSON_COMPACT);
    assert_string_equal(asked, "{\"tenant\":\"me\",\"conversationId\":\"one\",\"prefix\":\"d/\","
                               "\"max\":100}");
    assert_null(r->complete(&world.app, "me", template, "path", "d", NULL));
    assert_null(r->complete(&world.app, "me", template, "other", "", context));
    assert_null(r->complete(&world.app, "me", "file://{x}", "path", "", context));
    json_decref(fake_broker.names);
    fake_broker.names = NULL;
    assert_null(r->complete(&world.app, "me", template, "path", "o", context));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    CASE(a_page_tells_what_is_known_of_each_file),
    CASE(times_that_no_date_can_tell_are_left_out),
    CASE(a_cursor_brings_back_where_the_broker_stopped),
    CASE(a_cursor_that_is_none_is_refused_before_the_broker_hears_of_it),
    CASE(trouble_is_told_without_internals),
    CASE(text_is_read_as_text_and_everything_else_as_a_blob),
    CASE(what_is_too_large_is_refused_with_the_bound),
    CASE(unknown_and_impossible_uris_look_the_same),
    CASE(one_can_wait_for_files_that_do_not_exist_yet),
    CASE(the_template_and_its_variables),
};
UNIT_TESTS(tests)
