#include "config.h"

#include "common/base/auto.h"
#include "common/sandbox/files/media.h"
#include "tests/unit/unit.h"

#include <string.h>

static void the_extension_decides_when_it_is_known(void **state)
{
    static const char *const cases[][2] = {
        {"a.csv", "text/csv"},
        {"a.tsv", "text/tab-separated-values"},
        {"a.json", "application/json"},
        {"a.ndjson", "application/x-ndjson"},
        {"a.md", "text/markdown"},
        {"a.markdown", "text/markdown"},
        {"a.txt", "text/plain"},
        {"a.py", "text/x-python"},
        {"a.ts", "text/x-typescript"}, /* not MPEG transport streams */
        {"a.js", "text/javascript"},
        {"a.html", "text/html"},
        {"a.svg", "image/svg+xml"},
        {"a.png", "image/png"},
        {"a.PNG", "image/png"},
        {"a.JpEg", "image/jpeg"},
        {"dir.png/a.jpg", "image/jpeg"},
        {"a.tar.gz", "application/gzip"},
        {"a.parquet", "application/vnd.apache.parquet"},
        {"a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
        {"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
        {"a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
        {"a.pdf", "application/pdf"},
        {"a.7z", "application/x-7z-compressed"},
        {"a.zst", "application/zstd"},
        {"a.webp", "image/webp"},
        {"a.sqlite3", "application/vnd.sqlite3"},
        {"a.yml", "application/yaml"},
        {"a.wav", "audio/wav"},
        {"a.mp4", "video/mp4"},
        {"\xff\n.gif", "image/gif"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_string_equal(media_type(cases[i][0], NULL, 0), cases[i][1]);
        assert_string_equal(media_type(cases[i][0], "%PDF-1.4\n", 9), cases[i][1]);
    }
}

static void unknown_names_without_content_are_octets(void **state)
{
    static const char *const names[] = {"a",           "",      ".",      ".csv",    "a.",
                                        "dir.png/a",   "a.xyz", "a.csv~", "a.csv ",  "a.c\xc3\xa4v",
                                        "a.123456789", "a.\n",  "/",      "dir.csv/"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        assert_string_equal(media_type(names[i], NULL, 0), "application/octet-stream");
        assert_string_equal(media_type(names[i], "", 0), "application/octet-stream");
    }
}

static void content_decides_for_the_rest(void **state)
{
#define BYTES(text) (text), sizeof(text) - 1
    static const struct {
        const char *head;
        size_t len;
        const char *type;
    } cases[] = {
        {BYTES("\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png"},
        {BYTES("\xff\xd8\xff\xe0"), "image/jpeg"},
        {BYTES("GIF89a\1\0"), "image/gif"},
        {BYTES("RIFF\1\2\3\4WEBPVP8 "), "image/webp"},
        {BYTES("RIFF\1\2\3\4WAVE"), "audio/wav"},
        {BYTES("RIFF\1\2\3\4WEB"), "application/octet-stream"},
        {BYTES("%PDF-1.4\n%\xe2\xe3"), "application/pdf"},
        {BYTES("%PDF-"), "application/pdf"},
        {BYTES("%PDF"), "text/plain"},
        {BYTES("PK\3\4\24"), "application/zip"},
        {BYTES("\x1f\x8b\b"), "application/gzip"},
        {BYTES("SQLite format 3\0"), "application/vnd.sqlite3"},
        {BYTES("hello, world\n"), "text/plain"},
        {BYTES("{\"a\": [1, 2]}\n"), "text/plain"},
        {BYTES("gr\xc3\xbc\xc3"), "text/plain"}, /* cut within a character */
        {BYTES("gr\xfc\xdf"), "application/octet-stream"},
        {BYTES("a\0b"), "application/octet-stream"},
        {BYTES("\x00\x01\x02\x03\xfe\xff\x80\x81"), "application/octet-stream"},
    };
#undef BYTES

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(media_type("a.unknown", cases[i].head, cases[i].len), cases[i].type);
}

static void a_large_head_is_cut(void **state)
{
    size_t len = 8 << 20;
    char *zeros = calloc(1, len);

    (void)state;
    assert_non_null(zeros);
    for (int i = 0; i < 50; i++)
        assert_string_equal(media_type("zeros", zeros, len), "application/octet-stream");
    free(zeros);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_extension_decides_when_it_is_known),
    cmocka_unit_test(unknown_names_without_content_are_octets),
    cmocka_unit_test(content_decides_for_the_rest),
    cmocka_unit_test(a_large_head_is_cut),
};
UNIT_TESTS(tests)
