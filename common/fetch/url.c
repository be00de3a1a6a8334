#include "config.h"

#include "common/base/auto.h"
#include "common/base/parse.h"
#include "common/fetch/fetch.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

static void free_url(CURLU **url)
{
    curl_url_cleanup(*url);
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(url, part, &text, 0) == CURLUE_OK && text && *text;
    curl_free(text);
    return there;
}

static bool is_printable(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == 0x7f)
            return false;
    return true;
}

int fetch_check_url(const char *url, struct err *e)
{
    if (strlen(url) > FETCH_URL_MAX)
        return err_set(e, ERR_INVALID, "url must be at most %d bytes long", FETCH_URL_MAX);
    if (strncasecmp(url, "https://", 8) != 0)
        return err_set(e, ERR_INVALID, "url must begin with https://");
    AUTO(free_url) CURLU *parsed = curl_url();
    /* libcurl forgives a third slash. */
    if (!parsed || !is_printable(url) || url[8] == '/' ||
        curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
        !has_part(parsed, CURLUPART_HOST))
        return err_set(e, ERR_INVALID, "url is not a valid URL");
    if (has_part(parsed, CURLUPART_USER) || has_part(parsed, CURLUPART_PASSWORD))
        return err_set(e, ERR_INVALID, "url must not hold a user name or password");
    return 0;
}

static int decode(const char *s, size_t len, char out[FETCH_NAME_MAX + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++, n++) {
        int c = parse_percent(s + i, len - i);
        if (c >= 0)
            i += 2;
        else
            c = (unsigned char)s[i];
        if (n == FETCH_NAME_MAX || c == 0 || c == '/')
            return -1;
        out[n] = (char)c;
    }
    out[n] = '\0';
    return n == 0 || strcmp(out, ".") == 0 || strcmp(out, "..") == 0 ? -1 : 0;
}

int fetch_name_of_url(const char *url, char out[FETCH_NAME_MAX + 1])
{
    const char *host = strstr(url, "://");
    const char *path = host ? host + 3 : url;
    const char *end = path + strcspn(path, "?#");
    const char *slash = memrchr(path, '/', (size_t)(end - path));

    if (slash && decode(slash + 1, (size_t)(end - slash - 1), out) == 0)
        return 0;
    out[0] = '\0';
    return -1;
}
