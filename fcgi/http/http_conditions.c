#include "config.h"

#include "fcgi/http/http_conditions.h"

#include "common/base/auto.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNIT "bytes="

void http_version_init(struct http_version *v, uint64_t size, time_t modified)
{
    struct tm tm = {.tm_mday = 1};

    *v = (struct http_version){.size = size, .modified = modified};
    snprintf(v->etag, sizeof v->etag, "\"%" PRIx64 "-%" PRIx64 "\"", (uint64_t)modified, size);
    gmtime_r(&modified, &tm);
    strftime(v->last_modified, sizeof v->last_modified, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* -1: it is no date. */
static time_t parse_date(const char *text)
{
    static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                          "%a %b %e %H:%M:%S %Y"};

    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct tm tm = {.tm_mday = 1};
        const char *end = strptime(text, formats[i], &tm);
        if (end && !*end)
            return timegm(&tm);
    }
    return -1;
}

/* Is the ETag in the list? weak: W/ in front of one makes no difference. */
static bool lists_etag(const char *list, const char *etag, bool weak)
{
    if (strcmp(list, "*") == 0)
        return true;
    while (*(list += strspn(list, ", \t"))) {
        bool is_weak = strncmp(list, "W/", 2) == 0;
        list += is_weak ? 2 : 0;
        const char *end = *list == '"' ? strchr(list + 1, '"') : NULL;
        if (!end)
            return false;
        size_t len = (size_t)(end + 1 - list);
        if ((weak || !is_weak) && len == strlen(etag) && memcmp(list, etag, len) == 0)
            return true;
        list = end + 1;
    }
    return false;
}

static bool precondition_fails(const struct http_request *r, const struct http_version *v)
{
    if (r->if_match)
        return !lists_etag(r->if_match, v->etag, false);
    time_t date = r->if_unmodified_since ? parse_date(r->if_unmodified_since) : -1;
    return date >= 0 && date < v->modified;
}

/* Another date is another version, also a later one: programs set dates as they like. */
static bool is_unchanged(const struct http_request *r, const struct http_version *v)
{
    if (r->if_none_match)
        return lists_etag(r->if_none_match, v->etag, true);
    return r->if_modified_since && parse_date(r->if_modified_since) == v->modified;
}

static bool range_holds(const struct http_request *r, const struct http_version *v)
{
    const char *is = r->if_range;

    if (!is)
        return true;
    return strchr(is, '"') ? strcmp(is, v->etag) == 0 : parse_date(is) == v->modified;
}

/* ---- ranges ---- */

/* Digits and the blanks behind them; NULL: none, or more than fit. */
static const char *read_number(const char *p, uint64_t *out)
{
    const char *start = p;

    for (*out = 0; *p >= '0' && *p <= '9'; p++) {
        if (*out > (INT64_MAX - 9) / 10)
            return NULL;
        *out = *out * 10 + (uint64_t)(*p - '0');
    }
    return p == start ? NULL : p + strspn(p, " ");
}

/* One range of a list, [*from, *to) as it meets the file; NULL: it is none. */
static const char *read_range(const char *p, uint64_t size, uint64_t *from, uint64_t *to)
{
    uint64_t last;

    p += strspn(p, " ");
    if (*p == '-') {
        p = read_number(p + 1, &last);
        *from = p && last < size ? size - last : 0;
        *to = size;
        return p;
    }
    p = read_number(p, from);
    if (!p || *p != '-')
        return NULL;
    p += 1 + strspn(p + 1, " ");
    *to = size;
    if (*p == ',' || !*p)
        return p;
    p = read_number(p, &last);
    if (p && last < size)
        *to = last + 1;
    return p;
}

/* Status 206, 416, or 200 where the whole file is to be sent. */
static int judge_range(const char *list, uint64_t size, uint64_t *out_from, uint64_t *out_to)
{
    size_t found = 0;

    for (const char *p = list;; p++) {
        uint64_t from, to;
        p = read_range(p, size, &from, &to);
        if (!p || (*p && *p != ','))
            return 416;
        if (from < to) {
            *out_from = from;
            *out_to = to;
            found++;
        } else if (from == 0) {
            return 200;
        }
        if (!*p)
            break;
    }
    return found == 0 ? 416 : found == 1 ? 206 : 200;
}

int http_judge_conditions(const struct http_request *r, const struct http_version *v,
                          uint64_t *out_from, uint64_t *out_to)
{
    int status = 200;

    if (precondition_fails(r, v))
        return 412;
    if (is_unchanged(r, v))
        return 304;
    if (r->range && strncasecmp(r->range, UNIT, strlen(UNIT)) == 0 && r->range[strlen(UNIT)] &&
        range_holds(r, v))
        status = judge_range(r->range + strlen(UNIT), v->size, out_from, out_to);
    if (status == 200) {
        *out_from = 0;
        *out_to = v->size;
    }
    return status;
}
