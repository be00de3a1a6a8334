/* Conditional requests, ranges and media types of files: what nginx answers, from a table. */
#include "config.h"

#include "fcgi/http/file_types.h"
#include "fcgi/http/http_conditions.h"
#include "tests/unit/unit.h"

#define MODIFIED 1700000000
#define DATE     "Tue, 14 Nov 2023 22:13:20 GMT"
#define ETAG     "\"6553f100-a\""
#define SIZE     10

struct judged {
    int status;
    uint64_t from, to;
};

static struct judged judge(const struct http_request *r, uint64_t size)
{
    struct http_version v;
    struct judged out = {0};

    http_version_init(&v, size, MODIFIED);
    out.status = http_judge_conditions(r, &v, &out.from, &out.to);
    return out;
}

static void a_version_has_the_names_that_nginx_gives_it(void **state)
{
    struct http_version v;
    (void)state;

    http_version_init(&v, SIZE, MODIFIED);
    assert_string_equal(v.etag, ETAG);
    assert_string_equal(v.last_modified, DATE);
}

static void ranges_are_cut_to_the_file(void **state)
{
    static const struct {
        const char *range;
        struct judged is;
    } rows[] = {
        {"bytes=0-0", {206, 0, 1}},
        {"bytes=2-4", {206, 2, 5}},
        {"BYTES=2-4", {206, 2, 5}},
        {"bytes=2-", {206, 2, 10}},
        {"bytes= 2 - 4 ", {206, 2, 5}},
        {"bytes=-3", {206, 7, 10}},
        {"bytes=-99", {206, 0, 10}},
        {"bytes=8-99", {206, 8, 10}},
        {"bytes=0-1,50-", {206, 0, 2}},
        {"bytes=50-,3-3", {206, 3, 4}},
        {"bytes=0-1,4-5", {200, 0, 10}},
        {"bytes=", {200, 0, 10}},
        {"items=0-1", {200, 0, 10}},
        {"bytes=10-", {416, 0, 0}},
        {"bytes=5-4", {416, 0, 0}},
        {"bytes=-0", {416, 0, 0}},
        {"bytes=x", {416, 0, 0}},
        {"bytes=1", {416, 0, 0}},
        {"bytes=1-2-3", {416, 0, 0}},
        {"bytes=1-2,", {416, 0, 0}},
        {"bytes=--1", {416, 0, 0}},
        {"bytes=1-99999999999999999999", {416, 0, 0}},
        {"bytes=99999999999999999999-", {416, 0, 0}},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct http_request r = {.range = rows[i].range};
        struct judged got = judge(&r, SIZE);
        if (got.status != rows[i].is.status)
            fail_msg("%s: %d", rows[i].range, got.status);
        if (got.status != 416 && (got.from != rows[i].is.from || got.to != rows[i].is.to))
            fail_msg("%s: from %d to %d", rows[i].range, (int)got.from, (int)got.to);
    }
}

static void an_empty_file_is_sent_whole(void **state)
{
    static const char *const ranges[] = {"bytes=0-0", "bytes=0-", "bytes=-1"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
        const struct http_request r = {.range = ranges[i]};
        assert_int_equal(judge(&r, 0).status, 200);
        assert_int_equal(judge(&r, 0).to, 0);
    }
}

static void conditions_are_judged_before_the_range(void **state)
{
    static const struct {
        struct http_request r;
        int status;
    } rows[] = {
        {{.if_none_match = ETAG}, 304},
        {{.if_none_match = "W/" ETAG}, 304},
        {{.if_none_match = "\"x\", " ETAG}, 304},
        {{.if_none_match = "*"}, 304},
        {{.if_none_match = "\"x\""}, 200},
        {{.if_none_match = "6553f100-a"}, 200},
        {{.if_none_match = "\"x\"", .if_modified_since = DATE}, 200},
        {{.if_modified_since = DATE}, 304},
        {{.if_modified_since = "Tuesday, 14-Nov-23 22:13:20 GMT"}, 304},
        {{.if_modified_since = "Tue Nov 14 22:13:20 2023"}, 304},
        {{.if_modified_since = "Tue, 14 Nov 2023 22:13:21 GMT"}, 200},
        {{.if_modified_since = "yesterday"}, 200},
        {{.if_match = ETAG}, 200},
        {{.if_match = "*"}, 200},
        {{.if_match = "W/" ETAG}, 412},
        {{.if_match = "\"x\""}, 412},
        {{.if_unmodified_since = DATE}, 200},
        {{.if_unmodified_since = "Tue, 14 Nov 2023 22:13:19 GMT"}, 412},
        {{.if_unmodified_since = "yesterday"}, 200},
        {{.range = "bytes=0-0", .if_range = ETAG}, 206},
        {{.range = "bytes=0-0", .if_range = DATE}, 206},
        {{.range = "bytes=0-0", .if_range = "W/" ETAG}, 200},
        {{.range = "bytes=0-0", .if_range = "\"x\""}, 200},
        {{.range = "bytes=99-", .if_range = "\"x\""}, 200},
        {{.range = "bytes=99-", .if_none_match = ETAG}, 304},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (judge(&rows[i].r, SIZE).status != rows[i].status)
            fail_msg("row %zu: %d", i, judge(&rows[i].r, SIZE).status);
}

static void types_go_by_the_extension(void **state)
{
    static const struct {
        const char *name, *type;
        bool is_shown;
    } rows[] = {
        {"a.png", "image/png", true},
        {"d.x/A.PNG", "image/png", true},
        {"a.txt", "text/plain; charset=utf-8", true},
        {"a.html", "text/html; charset=utf-8", false},
        {"a.svg", "image/svg+xml", false},
        {"a.pdf", "application/pdf", false},
        {"a.png\n", "application/octet-stream", false},
        {"d.png/a", "application/octet-stream", false},
        {".png", "application/octet-stream", false},
        {"d/.png", "application/octet-stream", false},
        {"a.", "application/octet-stream", false},
        {"", "application/octet-stream", false},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct file_type got = file_type_of(rows[i].name);
        assert_string_equal(got.type, rows[i].type);
        assert_int_equal(got.is_shown, rows[i].is_shown);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_version_has_the_names_that_nginx_gives_it),
    cmocka_unit_test(ranges_are_cut_to_the_file),
    cmocka_unit_test(an_empty_file_is_sent_whole),
    cmocka_unit_test(conditions_are_judged_before_the_range),
    cmocka_unit_test(types_go_by_the_extension),
};
UNIT_TESTS(tests)
