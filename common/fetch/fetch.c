#include "config.h"

#include "common/fetch/fetch.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/fetch/guard.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS   15000
#define SLOW_BYTES_S 1024 /* slower than this for so long is not worth waiting for */
#define SLOW_S       30

struct fetch {
    CURL *curl;
    int fd;
    uint64_t got;
    const struct fetch_limits *limits;
    struct err why; /* what a callback stopped it for */
};

/* libcurl asks for a socket with the address that it has resolved: the one that will be used. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct fetch *f = ctx;

    if (purpose != CURLSOCKTYPE_IPCXN ||
        guard_check(&to->addr, (socklen_t)to->addrlen, &f->why) < 0)
        return CURL_SOCKET_BAD;
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

static size_t take_data(char *data, size_t size, size_t n, void *ctx)
{
    struct fetch *f = ctx;
    size_t len = size * n;

    if (len > f->limits->max_bytes - f->got) {
        err_set(&f->why, ERR_LIMIT, "what url leads to is over %" PRIu64 " bytes",
                f->limits->max_bytes);
        return 0;
    }
    if (fdio_write_all(f->fd, data, len, &f->why) < 0)
        return 0;
    f->got += len;
    return len;
}

static CURLcode limit_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https");
#else
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)CURLPROTO_HTTPS);
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, (long)CURLPROTO_HTTPS);
#endif
}

/* "" is no proxy, whatever the environment says. */
static CURLcode set_up(struct fetch *f, const char *url)
{
    CURL *c = f->curl;
    CURLcode rc = limit_protocols(c);
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_FOLLOWLOCATION, 1},
        {CURLOPT_MAXREDIRS, FETCH_REDIRECTS_MAX},
        {CURLOPT_FAILONERROR, 1},
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        {CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS},
        {CURLOPT_TIMEOUT_MS, (long)f->limits->timeout_ms},
        {CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_S},
        {CURLOPT_LOW_SPEED_TIME, SLOW_S},
        {CURLOPT_FRESH_CONNECT, 1},
        {CURLOPT_FORBID_REUSE, 1},
    };
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        {CURLOPT_URL, url},
        {CURLOPT_PROXY, ""},
        {CURLOPT_USERAGENT, "sandcgi/" PACKAGE_VERSION},
        {CURLOPT_OPENSOCKETDATA, f},
        {CURLOPT_WRITEDATA, f},
        {CURLOPT_CAINFO, f->limits->ca_file},
    };

    for (size_t i = 0; !rc && i < ARRAY_LEN(numbers); i++)
        rc = curl_easy_setopt(c, numbers[i].option, numbers[i].value);
    for (size_t i = 0; !rc && i < ARRAY_LEN(pointers); i++)
        if (pointers[i].value)
            rc = curl_easy_setopt(c, pointers[i].option, pointers[i].value);
    if (!rc)
        rc = curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)f->limits->max_bytes);
    if (!rc)
        rc = curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    return rc ? rc : curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_data);
}

/* In our words: libcurl's may repeat the URL. */
static int explain(struct fetch *f, CURLcode rc, struct err *e)
{
    long status = 0;

    if (f->why.kind != ERR_NONE) {
        *e = f->why;
        return -1;
    }
    switch (rc) {
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(e, ERR_DENIED, "url leads to something else than https");
    case CURLE_URL_MALFORMAT:
        return err_set(e, ERR_INVALID, "url is not a valid URL");
    case CURLE_TOO_MANY_REDIRECTS:
        return err_set(e, ERR_LIMIT, "url leads through more than %d redirects",
                       FETCH_REDIRECTS_MAX);
    case CURLE_FILESIZE_EXCEEDED:
        return err_set(e, ERR_LIMIT, "what url leads to is over %" PRIu64 " bytes",
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
        return err_set(e, ERR_NOT_FOUND, "the server of url cannot be reached, or broke off (%s)",
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
    if (!curl || set_up(&f, url))
        return err_set(e, ERR_INTERNAL, "libcurl does not start");
    CURLcode rc = curl_easy_perform(curl);
    if (rc)
        return explain(&f, rc, e);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return err_set(e, ERR_NOT_FOUND, "the server of url answered with status %ld", status);
    return 0;
}
