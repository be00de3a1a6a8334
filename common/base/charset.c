#include "config.h"

#include "common/base/charset.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>

#define NO_CONVERTER ((iconv_t)-1)
#define REPLACEMENT  "\xEF\xBF\xBD"

/* What is told, and what libc calls it. */
static struct {
    const char *name, *libc;
    size_t unit; /* bytes to pass over where it is malformed */
    iconv_t converter;
} table[] = {
    {"UTF-16LE", "UTF-16LE", 2, NO_CONVERTER},   {"UTF-16BE", "UTF-16BE", 2, NO_CONVERTER},
    {"Windows-1252", "CP1252", 1, NO_CONVERTER}, {"Windows-1251", "CP1251", 1, NO_CONVERTER},
    {"Shift_JIS", "CP932", 1, NO_CONVERTER},     {"GBK", "GB18030", 1, NO_CONVERTER},
    {"IBM437", "CP437", 1, NO_CONVERTER},
};

enum { UTF16LE, UTF16BE, WINDOWS_1252, WINDOWS_1251, SHIFT_JIS, GBK, IBM437 };

void charset_prepare(void)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].converter == NO_CONVERTER)
            table[i].converter = iconv_open("UTF-8", table[i].libc);
}

static const char *named(int i)
{
    return table[i].converter == NO_CONVERTER ? NULL : table[i].name;
}

/* By a byte order mark; -1: there is none. */
static int marked(const char *s, size_t len)
{
    if (len < 2 || (memcmp(s, "\xFF\xFE", 2) != 0 && memcmp(s, "\xFE\xFF", 2) != 0))
        return -1;
    return (unsigned char)s[0] == 0xFF ? UTF16LE : UTF16BE;
}

/* ---- converting ---- */

size_t charset_decode(const char *charset, const char *s, size_t len, struct buf *out)
{
    size_t row = 0, left = len;
    char *at = (char *)s, piece[1024];

    while (row < ARRAY_LEN(table) && strcmp(table[row].name, charset) != 0)
        row++;
    if (row == ARRAY_LEN(table) || table[row].converter == NO_CONVERTER)
        return 0;
    iconv(table[row].converter, NULL, NULL, NULL, NULL);
    if (marked(s, len) == (int)row) {
        at += 2;
        left -= 2;
    }
    while (left > 0 && buf_ok(out)) {
        char *to = piece;
        size_t room = sizeof piece;
        size_t rc = iconv(table[row].converter, &at, &left, &to, &room);

        buf_add(out, piece, (size_t)(to - piece));
        if (rc != (size_t)-1 || (errno == EINVAL && left < 4))
            break;
        if (errno == E2BIG)
            continue;
        size_t skip = table[row].unit < left ? table[row].unit : left;
        buf_add_str(out, REPLACEMENT);
        at += skip;
        left -= skip;
    }
    return len - left;
}

/* ---- guessing ---- */

static bool is_control(unsigned char c)
{
    return (c < ' ' && !strchr("\a\b\t\n\v\f\r\x1b", c)) || c == 0 || c == 0x7F;
}

/* Does it convert without loss, into characters and no controls? */
static bool is_text_in(int row, const char *s, size_t len)
{
    AUTO_BUF struct buf text = BUF_INIT(4 * len + 16);
    size_t taken = named(row) ? charset_decode(table[row].name, s, len, &text) : 0;

    if (taken == 0 || taken + 4 < len || !buf_ok(&text) ||
        memmem(text.data, text.len, REPLACEMENT, strlen(REPLACEMENT)))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (is_control((unsigned char)text.data[i]))
            return false;
    return true;
}

/* Without a mark its NULs are of one parity only, and many: the upper halves of Latin letters. */
static int utf16_of(const char *s, size_t len)
{
    size_t nuls[2] = {0, 0};
    int row = marked(s, len);

    if (row >= 0)
        return row;
    for (size_t i = 0; i < len; i++)
        nuls[i % 2] += s[i] == '\0';
    if ((nuls[0] > 0) == (nuls[1] > 0) || (nuls[0] + nuls[1]) * 4 < len)
        return -1;
    row = nuls[1] > 0 ? UTF16LE : UTF16BE;
    return is_text_in(row, s, len) ? row : -1;
}

struct look {
    size_t high, letters; /* bytes from 0x80 on, and ASCII letters */
    size_t upper;         /* of 0xC0 and more: Windows-1251's letters */
    size_t pairs;         /* two bytes of a multibyte encoding */
    size_t together;      /* of these beside another */
    size_t typical;       /* in its usual rows */
    bool whole;           /* nothing but ASCII and pairs (and Shift_JIS's half-width letters) */
};

static bool between(unsigned char c, unsigned char from, unsigned char to)
{
    return c >= from && c <= to;
}

/* 0: no pair; 1; 2: one of the usual rows. */
static int gbk_pair(unsigned char a, unsigned char b)
{
    if (!between(a, 0x81, 0xFE) || !between(b, 0x40, 0xFE) || b == 0x7F)
        return 0;
    return b >= 0xA1 && (between(a, 0xA1, 0xA9) || between(a, 0xB0, 0xF7)) ? 2 : 1;
}

static int sjis_pair(unsigned char a, unsigned char b)
{
    if (!(between(a, 0x81, 0x9F) || between(a, 0xE0, 0xFC)) || !between(b, 0x40, 0xFC) || b == 0x7F)
        return 0;
    return between(a, 0x81, 0x9F) ? 2 : 1;
}

/* A character that is cut off at the end counts for nothing. */
static struct look look_at(const char *s, size_t len, int (*pair)(unsigned char, unsigned char))
{
    struct look l = {.whole = true};
    bool after_pair = false, counted = false;

    for (size_t i = 0, n; i < len; i += n) {
        unsigned char c = (unsigned char)s[i];
        int kind = c >= 0x80 && i + 1 < len ? pair(c, (unsigned char)s[i + 1]) : 0;

        n = kind ? 2 : 1;
        l.high += c >= 0x80;
        l.upper += c >= 0xC0;
        l.letters += between(c | 0x20, 'a', 'z');
        if (c >= 0x80 && !kind && i + 1 < len)
            l.whole = false;
        l.pairs += kind > 0;
        l.typical += kind == 2;
        if (kind && after_pair)
            l.together += counted ? 1 : 2;
        counted = kind && after_pair;
        after_pair = kind > 0;
    }
    return l;
}

static bool is_east_asian(const struct look *l)
{
    return l->whole && l->pairs > 0 && l->together * 2 >= l->pairs &&
           l->typical * 4 >= l->pairs * 3;
}

/* Letters of Western texts stand alone among ASCII letters; those of others stand together. */
static const char *multibyte_of(const char *s, size_t len)
{
    const struct look sjis = look_at(s, len, sjis_pair), gbk = look_at(s, len, gbk_pair);

    if (is_east_asian(&sjis) && is_text_in(SHIFT_JIS, s, len))
        return named(SHIFT_JIS);
    if (is_east_asian(&gbk) && is_text_in(GBK, s, len))
        return named(GBK);
    return NULL;
}

const char *charset_of_text(const char *s, size_t len)
{
    const int utf16 = utf16_of(s, len);
    const char *multibyte;
    size_t high = 0, upper = 0, letters = 0;

    if (utf16 >= 0)
        return named(utf16);
    if (utf8_valid(s, utf8_whole_len(s, len)))
        return NULL;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (is_control(c))
            return NULL;
        high += c >= 0x80;
        upper += c >= 0xC0;
        letters += between(c | 0x20, 'a', 'z');
    }
    multibyte = multibyte_of(s, len);
    if (multibyte)
        return multibyte;
    if (upper > letters && upper * 10 >= high * 9 && is_text_in(WINDOWS_1251, s, len))
        return named(WINDOWS_1251);
    /* Random bytes have as many letters above ASCII as in it. */
    return high * 2 <= len && is_text_in(WINDOWS_1252, s, len) ? named(WINDOWS_1252) : NULL;
}

const char *charset_of_name(const char *s, size_t len)
{
    const char *multibyte = multibyte_of(s, len);
    bool low = false;

    for (size_t i = 0; i < len; i++)
        low |= between((unsigned char)s[i], 0x80, 0x9F);
    if (multibyte)
        return multibyte;
    /* Western letters of DOS lie below 0xA0 but for a few, those of Windows above. */
    return named(low ? IBM437 : WINDOWS_1252);
}
