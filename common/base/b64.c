#include "config.h"

#include "common/base/b64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#define BAD 64u

/* The value of one character, or BAD. */
static uint32_t value_of(char ch)
{
    unsigned char c = (unsigned char)ch;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 0u;
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26u;
    if (c >= '0' && c <= '9')
        return c - '0' + 52u;
    return c == '+' ? 62 : c == '/' ? 63 : BAD;
}

/* Decodes four characters, the last pad of which are '=', into 3 - pad bytes; false: not strict. */
static bool decode_group(const char *text, unsigned pad, unsigned char *out)
{
    uint32_t bits = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t v = i < 4 - pad ? value_of(text[i]) : 0;
        if (v == BAD)
            return false;
        bits = bits << 6 | v;
    }
    /* Unused bits must be zero, or one value would have several spellings. */
    if (bits & ((1u << (8 * pad)) - 1))
        return false;
    for (unsigned i = 0; i < 3 - pad; i++)
        out[i] = (unsigned char)(bits >> (16 - 8 * i));
    return true;
}

int b64_decode(const char *text, size_t len, struct buf *out)
{
    if (len % 4 != 0)
        return -1;
    if (len == 0)
        return 0;
    unsigned pad = text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    unsigned char *to = (unsigned char *)buf_reserve(out, B64_DECODED_MAX(len) - pad);
    if (!to)
        return -1;
    size_t last = len - 4, n = 0;
    for (size_t i = 0; i < last; i += 4, n += 3)
        if (!decode_group(text + i, 0, to + n))
            return -1;
    if (!decode_group(text + last, pad, to + n))
        return -1;
    buf_grew(out, n + 3 - pad);
    return 0;
}

void b64_encode(const void *data, size_t len, struct buf *out)
{
    const unsigned char *from = data;
    char *to = buf_reserve(out, B64_ENCODED_LEN(len));
    if (!to)
        return;
    for (size_t i = 0; i < len; i += 3, to += 4) {
        size_t left = len - i;
        uint32_t bits = (uint32_t)from[i] << 16;
        if (left > 1)
            bits |= (uint32_t)from[i + 1] << 8;
        if (left > 2)
            bits |= from[i + 2];
        to[0] = alphabet[bits >> 18];
        to[1] = alphabet[bits >> 12 & 63];
        to[2] = left > 1 ? alphabet[bits >> 6 & 63] : '=';
        to[3] = left > 2 ? alphabet[bits & 63] : '=';
    }
    buf_grew(out, B64_ENCODED_LEN(len));
}

/* Of "ab+/==" the text "ab-_". */
void b64url_encode(const void *data, size_t len, struct buf *out)
{
    size_t start = out->len;

    b64_encode(data, len, out);
    if (!buf_ok(out))
        return;
    for (char *s = out->data + start; len > 0 && *s; s++) {
        if (*s == '+')
            *s = '-';
        else if (*s == '/')
            *s = '_';
        else if (*s == '=') {
            out->len = (size_t)(s - out->data);
            *s = '\0';
            return;
        }
    }
}

int b64url_decode(const char *text, size_t len, struct buf *out)
{
    AUTO_BUF struct buf plain = BUF_INIT(len + 4);

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '+' || c == '/' || c == '=')
            return -1;
        buf_add_char(&plain, (char)(c == '-' ? '+' : c == '_' ? '/' : c));
    }
    while (plain.len % 4 != 0)
        buf_add_char(&plain, '=');
    return buf_ok(&plain) && b64_decode(buf_str(&plain), plain.len, out) == 0 && buf_ok(out) ? 0
                                                                                             : -1;
}
