#include "config.h"

#include "common/tools/runs/picture.h"

#include "common/base/auto.h"
#include "common/mcp/features/content.h"

#include <stdint.h>
#include <string.h>

/* Its bytes, least significant first. */
static uint32_t little(const unsigned char *at, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

static uint32_t big(const unsigned char *at, unsigned bytes)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

static struct picture_size png_size(const unsigned char *data, size_t len)
{
    if (len < 24 || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0 || memcmp(data + 12, "IHDR", 4) != 0)
        return (struct picture_size){0};
    return (struct picture_size){big(data + 16, 4), big(data + 20, 4)};
}

static struct picture_size gif_size(const unsigned char *data, size_t len)
{
    if (len < 10 || memcmp(data, "GIF8", 4) != 0 || data[5] != 'a')
        return (struct picture_size){0};
    return (struct picture_size){little(data + 6, 2), little(data + 8, 2)};
}

/* The size stands in the first segment SOF0 to SOF15; DHT, JPG and DAC have numbers among them. */
static struct picture_size jpeg_size(const unsigned char *data, size_t len)
{
    size_t at = 2;

    if (len < 3 || memcmp(data, "\xff\xd8\xff", 3) != 0)
        return (struct picture_size){0};
    while (at + 9 <= len && data[at] == 0xff) {
        unsigned char marker = data[at + 1];
        if (marker == 0xff) { /* fill */
            at++;
            continue;
        }
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
            return (struct picture_size){big(data + at + 7, 2), big(data + at + 5, 2)};
        at += 2 + big(data + at + 2, 2);
    }
    return (struct picture_size){0};
}

/* Extended, lossless, or lossy after a start code. */
static struct picture_size webp_size(const unsigned char *data, size_t len)
{
    if (len < 30 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WEBP", 4) != 0)
        return (struct picture_size){0};
    if (memcmp(data + 12, "VP8X", 4) == 0)
        return (struct picture_size){little(data + 24, 3) + 1, little(data + 27, 3) + 1};
    if (memcmp(data + 12, "VP8L", 4) == 0 && data[20] == 0x2f)
        return (struct picture_size){(little(data + 21, 4) & 0x3fff) + 1,
                                     (little(data + 21, 4) >> 14 & 0x3fff) + 1};
    if (memcmp(data + 12, "VP8 ", 4) == 0 && memcmp(data + 23, "\x9d\x01\x2a", 3) == 0)
        return (struct picture_size){little(data + 26, 2) & 0x3fff, little(data + 28, 2) & 0x3fff};
    return (struct picture_size){0};
}

static const struct format {
    const char *mime_type;
    struct picture_size (*size)(const unsigned char *data,
                                size_t len); /* 0 by 0: it is none, or torn */
} formats[] = {
    {"image/png", png_size},
    {"image/jpeg", jpeg_size},
    {"image/gif", gif_size},
    {"image/webp", webp_size},
};

static const struct format *format_of(const char *mime_type)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(mime_type, formats[i].mime_type) == 0)
            return &formats[i];
    return NULL;
}

bool picture_type_is_shown(const char *mime_type)
{
    return format_of(mime_type) != NULL;
}

struct picture_size picture_measure(const char *mime_type, const void *data, size_t len)
{
    const struct format *format = format_of(mime_type);

    return format ? format->size(data, len) : (struct picture_size){0};
}

json_t *picture_new(const char *mime_type, const struct buf *content)
{
    struct picture_size size = picture_measure(mime_type, buf_str(content), content->len);

    if (size.width == 0 || size.height == 0 || size.width > PICTURE_PIXELS_MAX / size.height)
        return NULL;
    return content_image_new(content->data, content->len, mime_type);
}
