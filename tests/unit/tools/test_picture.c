/* Pictures by their heads: which are shown inline, and which would fill the client's memory. */
#include "config.h"

#include "common/base/mem.h"
#include "common/tools/runs/picture.h"
#include "tests/unit/unit.h"

#define PNG(w, h)  "\x89PNG\r\n\x1a\n\0\0\0\rIHDR" w h
#define GIF(w, h)  "GIF89a" w h
#define JPEG(h, w) "\xff\xd8\xff\xe0\0\4xx\xff\xff\xff\xc4\0\2\xff\xc2\0\x11\x08" h w
#define VP8(w, h)  "RIFF....WEBPVP8 ....ttt\x9d\1\x2a" w h
#define VP8L(bits) "RIFF....WEBPVP8L....\x2f" bits "....."
#define VP8X(w, h) "RIFF....WEBPVP8X....ffff" w h

struct row {
    const char *type, *data;
    size_t len;
    bool shown;
};

#define ROW(type, data, shown)                                                                     \
    {                                                                                              \
        "image/" type, data, sizeof data - 1, shown                                                \
    }

static const struct row rows[] = {
    ROW("png", PNG("\0\0\x20\0", "\0\0\x20\0"), true), /* 8192 by 8192: 64 Mi */
    ROW("png", PNG("\0\0\x20\0", "\0\0\x20\1"), false),
    ROW("png", PNG("\0\0\xc3\x50", "\0\0\xc3\x50"), false), /* 50000 by 50000 */
    ROW("png", PNG("\xff\xff\xff\xff", "\xff\xff\xff\xff"), false),
    ROW("png", PNG("\0\0\0\0", "\0\0\0\1"), false),
    ROW("jpeg", PNG("\0\0\0\1", "\0\0\0\1"), false), /* another type's */
    ROW("gif", GIF("\0\x20", "\0\x20"), true),
    ROW("gif", GIF("\1\x20", "\0\x20"), false),
    ROW("gif", GIF("\0\x20", "\1\x20"), false),
    ROW("gif", GIF("\xff\xff", "\xff\xff"), false),
    ROW("jpeg", JPEG("\x20\0", "\x20\0"), true),
    ROW("jpeg", JPEG("\x20\1", "\x20\0"), false),
    ROW("jpeg", JPEG("\x20\0", "\x20\1"), false),
    ROW("jpeg", JPEG("\xff\xff", "\xff\xff"), false),
    ROW("jpeg", "\xff\xd8\xff\xda\0\2 no size before the data", false),
    ROW("webp", VP8("\0\x20", "\0\x20"), true),
    ROW("webp", VP8("\1\x20", "\0\x20"), false),
    ROW("webp", VP8("\0\x20", "\1\x20"), false),
    ROW("webp", VP8("\xff\x3f", "\xff\x3f"), false),
    ROW("webp", VP8L("\xff\xdf\xff\7"), true),  /* 8192 by 8192 */
    ROW("webp", VP8L("\0\xe0\xff\7"), false),   /* 8193 by 8192 */
    ROW("webp", VP8L("\xff\x1f\0\x08"), false), /* 8192 by 8193 */
    ROW("webp", VP8L("\xff\xff\xff\x0f"), false),
    ROW("webp", VP8X("\xff\x1f\0", "\xff\x1f\0"), true),
    ROW("webp", VP8X("\0\x20\0", "\xff\x1f\0"), false),
    ROW("webp", VP8X("\xff\x1f\0", "\0\x20\0"), false),
    ROW("webp", VP8X("\xff\xff\xff", "\xff\xff\xff"), false),
    ROW("svg+xml", "<svg/>", false),
};

static json_t *show(const char *type, const char *data, size_t len)
{
    AUTO_FREE char *exact = mem_alloc(len); /* a sanitizer sees a byte too many */
    const struct buf content = {.data = exact, .len = len, .max = len};

    memcpy(exact, data, len);
    return picture_new(type, &content);
}

static void pictures_of_few_pixels_are_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        json_auto_t *image = show(rows[i].type, rows[i].data, rows[i].len);
        if ((image != NULL) != rows[i].shown)
            fail_msg("row %zu (%s)", i, rows[i].type);
    }
}

static void a_cut_head_is_no_picture(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t len = 1; rows[i].shown && len < 10; len++)
            assert_null(show(rows[i].type, rows[i].data, len));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t len = 10; len < rows[i].len; len++) {
            json_auto_t *image = show(rows[i].type, rows[i].data, len);
            assert_true(!image || rows[i].shown);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pictures_of_few_pixels_are_shown),
    cmocka_unit_test(a_cut_head_is_no_picture),
};
UNIT_TESTS(tests)
