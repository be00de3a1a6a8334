#include "config.h"

#include "common/base/parse.h"

#include "common/base/auto.h"

#include <string.h>
#include <strings.h>
#include <time.h>

struct unit {
    const char *name;
    uint64_t factor;
};

#define SIZE_UNITS(letter, shift)                                                                  \
    {letter, 1ull << (shift)}, {letter "b", 1ull << (shift)},                                      \
    {                                                                                              \
        letter "ib", 1ull << (shift)                                                               \
    }

static const struct unit byte_units[] = {
    {"", 1},
    {"b", 1},
    SIZE_UNITS("k", 10),
    SIZE_UNITS("m", 20),
    SIZE_UNITS("g", 30),
    SIZE_UNITS("t", 40),
};

static const struct unit duration_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"m", 60 * 1000},
    {"h", 3600 * 1000},
    {"d", 24 * 3600 * 1000},
    {"w", 7 * 24 * 3600 * 1000},
    {"", 1000},
};

/* Digits of the base from the front of text; returns what follows them, or NULL without a digit or
 * on overflow. */
static const char *take_digits(const char *text, unsigned base, uint64_t *out)
{
    const char *p = text;
    uint64_t value = 0;
    for (; p && *p >= '0' && *p < (char)('0' + base); p++) {
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return NULL;
    }
    if (p == text)
        return NULL;
    *out = value;
    return p;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t value;
    const char *rest = take_digits(text, 10, &value);
    if (!rest || *rest || value < min || value > max)
        return -1;
    *out = value;
    return 0;
}

int parse_leading_u64(const char *text, uint64_t *out)
{
    return take_digits(text, 10, out) ? 0 : -1;
}

int parse_mode(const char *text, unsigned *out)
{
    uint64_t value;
    const char *rest = take_digits(text, 8, &value);
    if (!rest || *rest || value > 07777)
        return -1;
    *out = (unsigned)value;
    return 0;
}

static int parse_with_unit(const char *text, const struct unit *units, size_t n,
                           int (*differ)(const char *, const char *), uint64_t *out)
{
    uint64_t value;
    const char *rest = take_digits(text, 10, &value);
    for (size_t i = 0; rest && i < n; i++) {
        if (differ(rest, units[i].name) != 0)
            continue;
        if (__builtin_mul_overflow(value, units[i].factor, &value))
            return -1;
        *out = value;
        return 0;
    }
    return -1;
}

int parse_bytes(const char *text, uint64_t *out)
{
    return parse_with_unit(text, byte_units, ARRAY_LEN(byte_units), strcasecmp, out);
}

int parse_share(const char *text, uint64_t max_percent, uint64_t *out_bytes, uint64_t *out_percent)
{
    uint64_t percent;
    const char *rest = take_digits(text, 10, &percent);

    if (rest && strcmp(rest, "%") == 0 && percent <= max_percent) {
        *out_percent = percent;
        *out_bytes = 0;
        return 0;
    }
    if (parse_bytes(text, out_bytes) < 0)
        return -1;
    *out_percent = 0;
    return 0;
}

int parse_duration_ms(const char *text, uint64_t *out)
{
    return parse_with_unit(text, duration_units, ARRAY_LEN(duration_units), strcmp, out);
}

int parse_milli(const char *text, uint64_t *out)
{
    uint64_t whole, part = 0;
    const char *rest = take_digits(text, 10, &whole);
    if (!rest)
        return -1;
    if (*rest == '.') {
        const char *places = rest + 1;
        rest = take_digits(places, 10, &part);
        if (!rest || rest - places > 3)
            return -1;
        for (ptrdiff_t n = rest - places; n < 3; n++)
            part *= 10;
    }
    if (*rest || __builtin_mul_overflow(whole, 1000u, &whole) ||
        __builtin_add_overflow(whole, part, &whole))
        return -1;
    *out = whole;
    return 0;
}

int parse_bool(const char *text, bool *out)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"no", "yes"}, {"off", "on"}, {"0", "1"}};
    for (size_t i = 0; text && i < ARRAY_LEN(words); i++) {
        for (int value = 0; value < 2; value++) {
            if (strcmp(text, words[i][value]) != 0)
                continue;
            *out = value;
            return 0;
        }
    }
    return -1;
}

#define DAY_S 86400

/* form: '#' is a digit, anything else itself. */
static bool has_form(const char *text, const char *form)
{
    for (; *form; text++, form++)
        if (*form == '#' ? *text < '0' || *text > '9' : *text != *form)
            return false;
    return !*text;
}

static int two_digits(const char *text)
{
    return (text[0] - '0') * 10 + (text[1] - '0');
}

int parse_date(const char *text, int64_t *out)
{
    const bool is_moment = has_form(text, "####-##-##T##:##:##Z");

    if (!is_moment && !has_form(text, "####-##-##"))
        return -1;
    const struct tm given = {.tm_year = two_digits(text) * 100 + two_digits(text + 2) - 1900,
                             .tm_mon = two_digits(text + 5) - 1,
                             .tm_mday = two_digits(text + 8),
                             .tm_hour = is_moment ? two_digits(text + 11) : 0,
                             .tm_min = is_moment ? two_digits(text + 14) : 0,
                             .tm_sec = is_moment ? two_digits(text + 17) : 0};
    struct tm same = given;
    time_t at = timegm(&same); /* takes February 30th for a day in March */
    if (at < 0 || same.tm_mon != given.tm_mon || same.tm_mday != given.tm_mday ||
        same.tm_hour != given.tm_hour || same.tm_min != given.tm_min || same.tm_sec != given.tm_sec)
        return -1;
    *out = at + (is_moment ? 0 : DAY_S);
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int parse_percent(const char *s, size_t len)
{
    int high = len >= 3 && s[0] == '%' ? hex_digit(s[1]) : -1;
    int low = high < 0 ? -1 : hex_digit(s[2]);

    return low < 0 ? -1 : high * 16 + low;
}
