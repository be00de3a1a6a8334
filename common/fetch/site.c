#include "config.h"

#include "common/fetch/site.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define DAY_S      86400
#define CONNECT_MS 4000
#define TIME_MS    8000

static size_t drop_body(char *data, size_t size, size_t n, void *ctx)
{
    (void)data;
    (void)ctx;
    return size * n;
}

static size_t take_header(char *data, size_t size, size_t n, void *ctx)
{
    struct fetch_site *site = ctx;
    char date[64];
    size_t len = size * n;

    if (len > 6 && len < sizeof date && strncasecmp(data, "Date: ", 6) == 0) {
        snprintf(date, sizeof date, "%.*s", (int)(len - 6), data + 6);
        site->date = curl_getdate(date, NULL);
    }
    return len;
}

/* Of the first certificate, the server's own. */
static int64_t find_expiry(CURL *curl)
{
    static const char label[] = "Expire date:";
    struct curl_certinfo *info = NULL;

    if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info) != CURLE_OK || !info ||
        info->num_of_certs < 1)
        return 0;
    for (const struct curl_slist *s = info->certinfo[0]; s; s = s->next)
        if (strncmp(s->data, label, sizeof label - 1) == 0) {
            time_t at = curl_getdate(s->data + sizeof label - 1, NULL);
            return at > 0 ? at : 0;
        }
    return 0;
}

/* What a certificate must be. */
enum trust { TRUST_ANY, TRUST_HOST, TRUST_FULL };

static CURL *begin(const char *url, enum trust trust, char *why)
{
    CURL *curl = curl_easy_init();

    why[0] = '\0';
    if (!curl)
        return NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TIME_MS);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, trust == TRUST_FULL ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, trust == TRUST_ANY ? 0L : 2L);
    return curl;
}

/* "::HOST:PORT": whatever host and port the URL has. */
static CURLcode look(const char *url, const char *at, enum trust trust, char *why,
                     struct fetch_site *out)
{
    AUTO_FREE char *instead = at ? mem_printf("::%s", at) : NULL;
    struct curl_slist to = {.data = instead};
    CURL *curl = begin(url, trust, why);

    if (!curl)
        return CURLE_FAILED_INIT;
    if (instead)
        curl_easy_setopt(curl, CURLOPT_CONNECT_TO, &to);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_body);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, out);
    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
        out->expires = find_expiry(curl);
    } else if (!why[0]) {
        snprintf(why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(code));
    }
    curl_easy_cleanup(curl);
    return code;
}

int fetch_site(const char *url, const char *at, struct fetch_site *out, struct err *e)
{
    char why[CURL_ERROR_SIZE];

    *out = (struct fetch_site){0};
    CURLcode code = look(url, at, TRUST_FULL, why, out);
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        snprintf(out->wrong, sizeof out->wrong, "%s", why);
        code = look(url, at, TRUST_HOST, why, out);
    }
    out->foreign = code == CURLE_PEER_FAILED_VERIFICATION;
    if (out->foreign)
        code = look(url, at, TRUST_ANY, why, out);
    return code == CURLE_OK ? 0 : err_set(e, ERR_UNAVAILABLE, "%s", why);
}

void fetch_site_fault(const struct fetch_site *site, int64_t now_unix, struct buf *out)
{
    if (site->foreign)
        buf_add_str(out, "the certificate of PUBLIC_BASE_URL is for another host");
    else if (site->expires && site->expires < now_unix)
        buf_addf(out, "the certificate of PUBLIC_BASE_URL expired %lld days ago",
                 (long long)((now_unix - site->expires) / DAY_S));
}

/* ---- a stream ---- */

static bool is_loopback(const struct curl_sockaddr *to)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (to->family == AF_INET) {
        memcpy(&in, &to->addr, sizeof in);
        return ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    memcpy(&in6, &to->addr, sizeof in6);
    return to->family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static curl_socket_t open_loopback(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct fetch_stream *stream = ctx;

    (void)purpose;
    if (is_loopback(to))
        return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    stream->foreign = true;
    return CURL_SOCKET_BAD;
}

/* The first byte is enough. */
static size_t note_body(char *data, size_t size, size_t n, void *ctx)
{
    struct fetch_stream *stream = ctx;

    (void)data;
    stream->began = size * n > 0;
    return 0;
}

int fetch_stream(const char *url, bool trusted, const char *const *headers, const char *body,
                 struct fetch_stream *out, struct err *e)
{
    char why[CURL_ERROR_SIZE];
    const char *type = NULL;
    struct curl_slist *list = NULL;
    CURL *curl = begin(url, trusted ? TRUST_FULL : TRUST_ANY, why);

    *out = (struct fetch_stream){0};
    if (!curl)
        return err_set(e, ERR_INTERNAL, "no memory for a look at a stream");
    for (; *headers; headers++)
        list = curl_slist_append(list, *headers);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, note_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, out);
    if (!trusted) {
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_loopback);
        curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, out);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &out->status);
    curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    out->is_stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
    curl_easy_cleanup(curl);
    curl_slist_free_all(list);
    if (code == CURLE_OK || code == CURLE_WRITE_ERROR || code == CURLE_OPERATION_TIMEDOUT ||
        out->foreign)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "%s", why[0] ? why : curl_easy_strerror(code));
}
