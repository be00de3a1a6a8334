/* What transfers by libcurl have in common: one protocol, also after a redirect; no proxy, no
 * netrc, no signal; bounds on time and size. */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct easy_request {
    const char *url; /* as the others, borrowed until the transfer has ended */
    bool plain;      /* http, else https */
    bool redirects;  /* are followed */
    long connect_ms, timeout_ms;
    uint64_t max_bytes;
    curl_opensocket_callback open_socket; /* both with ctx */
    curl_write_callback take_data;
    void *ctx;
};

/* Not CURLE_OK: libcurl does not take an option, perhaps the URL. */
CURLcode easy_set_options(CURL *curl, const struct easy_request *r);
