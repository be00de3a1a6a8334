#include "config.h"

#include "common/fetch/easy.h"

#include "common/base/auto.h"

static CURLcode limit_protocols(CURL *curl, bool plain)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    const char *protocol = plain ? "http" : "https";
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocol);
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocol);
#else
    const long protocol = plain ? CURLPROTO_HTTP : CURLPROTO_HTTPS;
    CURLcode rc = curl_easy_setopt(curl, CURLOPT_PROTOCOLS, protocol);
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, protocol);
#endif
}

/* An empty CURLOPT_PROXY overrides the environment: no proxy. */
CURLcode easy_set_options(CURL *curl, const struct easy_request *r)
{
    CURLcode rc = limit_protocols(curl, r->plain);
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_FOLLOWLOCATION, r->redirects}, {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},    {CURLOPT_CONNECTTIMEOUT_MS, r->connect_ms},
        {CURLOPT_TIMEOUT_MS, r->timeout_ms},
    };
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        {CURLOPT_URL, r->url},
        {CURLOPT_PROXY, ""},
        {CURLOPT_USERAGENT, "sandcgi/" PACKAGE_VERSION},
        {CURLOPT_OPENSOCKETDATA, r->ctx},
        {CURLOPT_WRITEDATA, r->ctx},
    };

    for (size_t i = 0; !rc && i < ARRAY_LEN(numbers); i++)
        rc = curl_easy_setopt(curl, numbers[i].option, numbers[i].value);
    for (size_t i = 0; !rc && i < ARRAY_LEN(pointers); i++)
        rc = curl_easy_setopt(curl, pointers[i].option, pointers[i].value);
    if (!rc)
        rc = curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)r->max_bytes);
    if (!rc)
        rc = curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, r->open_socket);
    return rc ? rc : curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, r->take_data);
}
