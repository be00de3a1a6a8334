#include "config.h"

#include "common/base/utf8.h"

/* The length of a character that begins with c; 1 when no longer one does. */
static size_t promised_len(unsigned char c)
{
    if (c < 0xc2 || c > 0xf4)
        return 1;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/*
 * Returns how many bytes of the character at s are present and allowed (at least 1), and whether
 * they complete it. If not, they are the "maximal subpart" of the Unicode standard, section 3.9,
 * which one U+FFFD replaces.
 */
static size_t scan_char(const unsigned char *s, size_t len, bool *whole)
{
    unsigned char c = s[0], low = 0x80, high = 0xbf;
    size_t need = promised_len(c), n = 1;
    *whole = c < 0x80;
    if (need == 1)
        return 1;
    /* The range of the second byte excludes overlong forms, surrogates and all above U+10FFFF. */
    if (c == 0xe0)
        low = 0xa0;
    else if (c == 0xed)
        high = 0x9f;
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f;

    while (n < need && n < len && s[n] >= low && s[n] <= high) {
        n++;
        low = 0x80;
        high = 0xbf;
    }
    *whole = n == need;
    return n;
}

size_t utf8_char_len(const char *s, size_t len)
{
    bool whole;
    if (len == 0)
        return 0;
    size_t n = scan_char((const unsigned char *)s, len, &whole);
    return whole ? n : 0;
}

/* The length of the longest well-formed prefix. */
static size_t valid_prefix(const char *s, size_t len)
{
    size_t i = 0;
    while (i < len) {
        if ((unsigned char)s[i] < 0x80) {
            i++;
            continue;
        }
        size_t n = utf8_char_len(s + i, len - i);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

bool utf8_valid(const char *s, size_t len)
{
    return valid_prefix(s, len) == len;
}

size_t utf8_repair(const char *s, size_t len, struct buf *out)
{
    size_t replaced = 0;
    while (len > 0) {
        size_t good = valid_prefix(s, len);
        buf_add(out, s, good);
        s += good;
        len -= good;
        if (len == 0)
            break;
        bool whole;
        size_t bad = scan_char((const unsigned char *)s, len, &whole);
        buf_add_str(out, "\xef\xbf\xbd");
        s += bad;
        len -= bad;
        replaced++;
    }
    return replaced;
}

size_t utf8_cut(const char *s, size_t len, size_t max)
{
    if (len <= max)
        return len;
    /* A character that crosses the limit begins at most three bytes before it. */
    for (size_t back = 1; back <= 3 && back <= max; back++) {
        size_t start = max - back;
        size_t n = utf8_char_len(s + start, len - start);
        if (n > back)
            return start;
        if (n > 0)
            break;
    }
    return max;
}

size_t utf8_lost_start(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && n < 3 && ((unsigned char)s[n] & 0xc0) == 0x80)
        n++;
    return n;
}

size_t utf8_whole_len(const char *s, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char c = (unsigned char)s[len - back];
        if ((c & 0xc0) != 0x80)
            return promised_len(c) > back ? len - back : len;
    }
    return len;
}
