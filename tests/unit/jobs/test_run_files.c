/* Which of very many changed files a run's result lists. */
#include "config.h"

#include "common/records/run_result.h"

#include "common/rpc/json.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

/* The files of a result as text: "+name -name " in its order. */
static void list(const json_t *result, char *out, size_t size)
{
    size_t i, len = 0;
    const json_t *file;

    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        bool gone = strcmp(json_get_string(file, "change"), "deleted") == 0;

        assert_int_equal(!json_object_get(file, "url"), gone);
        len += (size_t)snprintf(out + len, size - len, "%c%s ", gone ? '-' : '+',
                                json_get_string(file, "name"));
        assert_true(len < size);
    }
}

static void take(struct fixture *f, struct snapshot *out)
{
    if (snapshot_take(&f->sb, out, &f->e) < 0)
        fail_msg("%s", f->e.text);
}

static void plant_many(struct fixture *f, const char *folder, int n)
{
    char name[64];

    if (*folder)
        assert_int_equal(mkdirat(f->sb.fd, folder, 0755), 0);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s%sf%03d", folder, *folder ? "/" : "", i);
        fixture_plant(f, name, "1");
    }
}

static json_t *result_of(struct fixture *f, const struct snapshot *before)
{
    AUTO_SNAPSHOT struct snapshot after = {0};
    json_t *result = json_object();

    take(f, &after);
    run_result_add_files(result, &f->sb, before, &after);
    return result;
}

static void a_short_list_is_in_order_of_names(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};
    char text[1000];

    fixture_plant(f, "b-gone", "1");
    take(f, &before);
    plant_many(f, "a", 1);
    fixture_plant(f, "c", "1");
    assert_int_equal(unlinkat(f->sb.fd, "b-gone", 0), 0);
    json_auto_t *result = result_of(f, &before);
    list(result, text, sizeof(text));
    assert_string_equal(text, "+a/f000 -b-gone +c ");
    assert_int_equal(json_get_integer(result, "filesOmitted", -1), 0);
}

static void what_lies_at_the_top_is_listed_however_much_there_is_below(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};
    char text[20000];

    take(f, &before);
    plant_many(f, "cache", 250);
    fixture_plant(f, "report.xlsx", "1");
    json_auto_t *result = result_of(f, &before);
    list(result, text, sizeof(text));
    assert_int_equal(json_array_size(json_object_get(result, "files")), RUN_FILES_MAX);
    assert_int_equal(json_get_integer(result, "filesOmitted", -1), 251 - RUN_FILES_MAX);
    assert_non_null(strstr(text, "+cache/f198 +report.xlsx "));
    assert_null(strstr(text, "f199"));
}

static void what_is_gone_gives_way_to_what_is_there(void **state)
{
    struct fixture *f = *state;
    AUTO_SNAPSHOT struct snapshot before = {0};
    char text[20000], name[64];

    plant_many(f, "", 250);
    take(f, &before);
    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof(name), "f%03d", i);
        assert_int_equal(unlinkat(f->sb.fd, name, 0), 0);
    }
    plant_many(f, "z", 2);
    json_auto_t *result = result_of(f, &before);
    list(result, text, sizeof(text));
    assert_int_equal(json_get_integer(result, "filesOmitted", -1), 252 - RUN_FILES_MAX);
    assert_non_null(strstr(text, "-f197 +z/f000 +z/f001 "));
    assert_null(strstr(text, "f198"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

static const struct CMUnitTest tests[] = {
    TEST(a_short_list_is_in_order_of_names),
    TEST(what_lies_at_the_top_is_listed_however_much_there_is_below),
    TEST(what_is_gone_gives_way_to_what_is_there),
};
UNIT_TESTS(tests)
