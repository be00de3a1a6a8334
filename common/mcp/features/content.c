#include "config.h"

#include "common/mcp/features/content.h"

#include "common/base/b64.h"
#include "common/rpc/json.h"

#define REPLACEMENT    "\xEF\xBF\xBD"
#define NAME_MAX_BYTES (16u * 1024)

/* The length of the unwanted character at s; 0: it is harmless. Never reads behind the NUL. */
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

json_t *content_text_new(const char *text, size_t len)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", json_from_bytes(text, len));
}

json_t *content_image_new(const void *data, size_t len, const char *mime_type)
{
    AUTO_BUF struct buf encoded = BUF_INIT(B64_ENCODED_LEN(len));

    b64_encode(data, len, &encoded);
    return json_pack("{s:s, s:o, s:s}", "type", "image", "data",
                     json_stringn_nocheck(buf_str(&encoded), encoded.len), "mimeType", mime_type);
}

json_t *content_link_new(const char *uri, const char *name, const char *mime_type, int64_t size)
{
    AUTO_BUF struct buf clean = BUF_INIT(NAME_MAX_BYTES);

    content_clean_name(name, &clean);
    return json_pack("{s:s, s:s, s:o, s:s, s:o*}", "type", "resource_link", "uri", uri, "name",
                     json_from_bytes(buf_str(&clean), clean.len), "mimeType", mime_type, "size",
                     size >= 0 ? json_integer(size) : NULL);
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
