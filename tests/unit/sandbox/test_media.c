#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/auto.h"
#include "common/sandbox/files/media.h"

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
    static const char png[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89";

    (void)state;
    assert_string_equal(media_type("picture", png, sizeof(png) - 1), "image/png");
    assert_string_equal(media_type("paper.unknown", "%PDF-1.4\n%\xe2\xe3", 12), "application/pdf");
    assert_string_equal(media_type("notes", "hello, world\n", 13), "text/plain");
    assert_string_equal(media_type("data", "{\"a\": [1, 2]}\n", 14), "application/json");
    assert_string_equal(media_type("noise", "\x00\x01\x02\x03\xfe\xff\x80\x81", 8),
                        "application/octet-stream");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_extension_decides_when_it_is_known),
        cmocka_unit_test(unknown_names_without_content_are_octets),
        cmocka_unit_test(content_decides_for_the_rest),
        cmocka_unit_test(a_large_head_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
