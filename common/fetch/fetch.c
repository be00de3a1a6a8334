#include "config.h"

#include "common/fetch/fetch.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/parse.h"
#include "common/fetch/easy.h"
#include "common/fetch/guard.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define CONNECT_MS   15000
#define SLOW_BYTES_S 1024 /* a transfer slower than this for SLOW_S is aborted */
#define SLOW_S       30

/* ---- the URL ---- */

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

int fetch_check_url(const char *url, struct err *e)
{
    if (strlen(url) > FETCH_URL_MAX)
        return err_set(e, ERR_INVALID, "url must be at most %d bytes long", FETCH_URL_MAX);
    if (strncasecmp(url, "https://", 8) != 0)
        return err_set(e, ERR_INVALID, "url must begin with https://");
    AUTO(free_url) CURLU *parsed = curl_url();
    bool printable = true;
    for (const char *s = url; *s; s++)
        printable &= (unsigned char)*s > ' ' && *s != 0x7f;
    /* libcurl accepts a third slash. */
    if (!parsed || !printable || url[8] == '/' ||
        curl_url_set(parsed, CURLUPART_URL, url, 0) != CURLUE_OK ||
        !has_part(parsed, CURLUPART_HOST))
        return err_set(e, ERR_INVALID, "url is not a valid URL");
    if (has_part(parsed, CURLUPART_USER) || has_part(parsed, CURLUPART_PASSWORD))
        return err_set(e, ERR_INVALID, "url must not hold a user name or password");
    return 0;
}

static int name_decode(const char *s, size_t len, char out[FETCH_NAME_MAX + 1])
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

    if (slash && name_decode(slash + 1, (size_t)(end - slash - 1), out) == 0)
        return 0;
    out[0] = '\0';
    return -1;
}

/* ---- fetching ---- */

struct fetch {
    CURL *curl;
    int fd;
    uint64_t got;
    const struct fetch_limits *limits;
    struct err why; /* set by a callback that stopped it */
};

/* libcurl asks for a socket with the address that it has resolved: the one that will be used. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct fetch *f = ctx;

    if (purpose != CURLSOCKTYPE_IPCXN ||
        guard_check(&to->addr, (socklen_t)to->addrlen, &f->why) < 0)
        return CURL_SOCKET_BAD;
    f->why = ERR_INIT; /* another address of the host may have been denied */
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static size_t take_data(char *data, size_t size, size_t n, void *ctx)
{
    struct fetch *f = ctx;
    size_t len = size * n;

    if (len > f->limits->max_bytes - f->got) {
        err_set(&f->why, ERR_LIMIT, "the file at url is over %" PRIu64 " bytes",
                f->limits->max_bytes);
        return 0;
    }
    if (fdio_write_all(f->fd, data, len, &f->why) < 0)
        return 0;
    f->got += len;
    return len;
}

static CURLcode set_options(struct fetch *f, const char *url)
{
    const struct easy_request request = {.url = url,
                                         .redirects = !f->limits->no_redirects,
                                         .connect_ms = CONNECT_MS,
                                         .timeout_ms = (long)f->limits->timeout_ms,
                                         .max_bytes = f->limits->max_bytes,
                                         .open_socket = open_socket,
                                         .take_data = take_data,
                                         .ctx = f};
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_MAXREDIRS, FETCH_REDIRECTS_MAX},
        {CURLOPT_FAILONERROR, 1},
        {CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_S},
        {CURLOPT_LOW_SPEED_TIME, SLOW_S},
        {CURLOPT_FRESH_CONNECT, 1},
        {CURLOPT_FORBID_REUSE, 1},
    };
    CURLcode rc = easy_set_options(f->curl, &request);

    for (size_t i = 0; !rc && i < ARRAY_LEN(numbers); i++)
        rc = curl_easy_setopt(f->curl, numbers[i].option, numbers[i].value);
    if (!rc && f->limits->ca_file)
        rc = curl_easy_setopt(f->curl, CURLOPT_CAINFO, f->limits->ca_file);
    return rc;
}

/* Texts of our own: libcurl's may repeat the URL. */
static int fetch_fail(struct fetch *f, CURLcode rc, struct err *e)
{
    long status = 0;

    if (f->why.kind != ERR_NONE) {
        *e = f->why;
        return -1;
    }
    switch (rc) {
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(e, ERR_DENIED, "url redirects to another protocol than https");
    case CURLE_URL_MALFORMAT:
        return err_set(e, ERR_INVALID, "url is not a valid URL");
    case CURLE_TOO_MANY_REDIRECTS:
        return err_set(e, ERR_LIMIT, "url leads through more than %d redirects",
                       FETCH_REDIRECTS_MAX);
    case CURLE_FILESIZE_EXCEEDED:
        return err_set(e, ERR_LIMIT, "the file at url is over %" PRIu64 " bytes",
                       f->limits->max_bytes);
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(e, ERR_LIMIT, "the server of url is too slow (limit: %" PRId64 " seconds)",
                       f->limits->timeout_ms / 1000);
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(e, ERR_NOT_FOUND, "the host of url is not known");
    case CURLE_HTTP_RETURNED_ERROR:
        curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
        return err_set(e, ERR_NOT_FOUND, "the server of url answered with status %ld", status);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(e, ERR_NOT_FOUND, "the server of url has no valid certificate");
    default:
        return err_set(e, ERR_NOT_FOUND,
                       "the server of url cannot be reached, or closed the connection (%s)",
                       curl_easy_strerror(rc));
    }
}

static void free_curl(CURL **curl)
{
    curl_easy_cleanup(*curl);
}

int fetch_url(const char *url, int fd, const struct fetch_limits *limits, struct err *e)
{
    AUTO(free_curl) CURL *curl = NULL;
    struct fetch f = {.fd = fd, .limits = limits};

    if (fetch_check_url(url, e) < 0)
        return -1;
    f.curl = curl = curl_easy_init();
    if (!curl || set_options(&f, url))
        return err_set(e, ERR_INTERNAL, "libcurl does not start");
    CURLcode rc = curl_easy_perform(curl);
    if (rc)
        return fetch_fail(&f, rc, e);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return err_set(e, ERR_NOT_FOUND, "the server of url answered with status %ld", status);
    return 0;
}
