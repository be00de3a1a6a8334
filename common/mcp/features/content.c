#include "config.h"

#include "common/mcp/features/content.h"

#include "common/base/b64.h"
#include "common/rpc/json.h"

#define REPLACEMENT    "\xEF\xBF\xBD"
#define NAME_MAX_BYTES (16u * 1024)

/* Length of the unwanted character at s, 0 when it is harmless. Looks at most 3 bytes ahead, never
 * past the NUL. */
static size_t unwanted(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;

    if (u[0] < 0x20 || u[0] == 0x7F)
        return 1;
    if (u[0] == 0xC2 && u[1] >= 0x80 && u[1] <= 0x9F) /* C1 controls */
        return 2;
    if (u[0] == 0xE2 && u[1] == 0x80 &&
        (u[2] == 0x8E || u[2] == 0x8F ||
         (u[2] >= 0xA8 && u[2] <= 0xAE))) /* LRM RLM LS PS, embeddings */
        return 3;
    if (u[0] == 0xE2 && u[1] == 0x81 && u[2] >= 0xA6 && u[2] <= 0xA9) /* isolates */
        return 3;
    return 0;
}

void content_clean_name(const char *s, struct buf *out)
{
    while (*s) {
        size_t bad = unwanted(s);

        if (bad > 0)
            buf_add_str(out, REPLACEMENT);
        else
            buf_add_char(out, *s);
        s += bad > 0 ? bad : 1;
    }
}

static json_t *block_new(const char *type)
{
    json_t *block = json_object();

    json_object_set_new(block, "type", json_string(type));
    return block;
}

json_t *content_text_new(const char *text, size_t len)
{
    json_t *block = block_new("text");

    json_object_set_new(block, "text", json_from_bytes(text, len));
    return block;
}

json_t *content_image_new(const void *data, size_t len, const char *mime_type)
{
    AUTO_BUF struct buf encoded = BUF_INIT(B64_ENCODED_LEN(len));
    json_t *block = block_new("image");

    b64_encode(data, len, &encoded);
    json_object_set_new(block, "data", json_stringn_nocheck(buf_str(&encoded), encoded.len));
    json_object_set_new(block, "mimeType", json_string(mime_type));
    return block;
}

json_t *content_link_new(const char *uri, const char *name, const char *mime_type, int64_t size)
{
    AUTO_BUF struct buf clean = BUF_INIT(NAME_MAX_BYTES);
    json_t *block = block_new("resource_link");

    content_clean_name(name, &clean);
    json_object_set_new(block, "uri", json_string(uri));
    json_object_set_new(block, "name", json_from_bytes(buf_str(&clean), clean.len));
    json_object_set_new(block, "mimeType", json_string(mime_type));
    if (size >= 0)
        json_object_set_new(block, "size", json_integer(size));
    return block;
}

json_t *content_link_to_text(const json_t *link)
{
    AUTO_BUF struct buf line = BUF_INIT(2 * NAME_MAX_BYTES);

    buf_addf(&line, "%s (%s", json_get_string(link, "name"), json_get_string(link, "mimeType"));
    if (json_object_get(link, "size"))
        buf_addf(&line, ", %" JSON_INTEGER_FORMAT " bytes", json_get_integer(link, "size", 0));
    buf_addf(&line, "): %s", json_get_string(link, "uri"));
    return content_text_new(buf_str(&line), line.len);
}
