/* Conditional requests and ranges for a file (RFC 9110, 13 and 14). What is sent is what nginx
 * sends, but for several ranges, to which the whole file is an answer, too. */
#pragma once

#include "fcgi/http/http_request.h"

#include <stdint.h>
#include <time.h>

#define HTTP_DATE_MAX 32
#define HTTP_ETAG_MAX 40

struct http_version {
    uint64_t size;
    time_t modified;
    char etag[HTTP_ETAG_MAX];          /* nginx's: one file has one ETag behind either */
    char last_modified[HTTP_DATE_MAX]; /* an HTTP date */
};

void http_version_init(struct http_version *v, uint64_t size, time_t modified);

/* What to send: 200, 206 with the bytes from *out_from up to *out_to, 304, 412 or 416. */
int http_judge_conditions(const struct http_request *r, const struct http_version *v,
                          uint64_t *out_from, uint64_t *out_to);
