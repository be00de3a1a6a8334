/* Looks at our own site from outside, for the operator. */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct fetch_site {
    long status;     /* of the answer to GET; 0: none */
    int64_t expires; /* the certificate, Unix seconds; 0: there is none, or it is not known */
    char wrong[256]; /* why this machine does not trust the certificate; "": it does, or none */
    int64_t date;    /* the answer's Date; 0: none */
};

/* GETs url (http or https), without redirects, within some seconds. -1: nothing answers there, and
 * *e says why. Not confined: for a URL of the settings. */
int fetch_site(const char *url, struct fetch_site *out, struct err *e);

struct fetch_stream {
    bool foreign; /* nothing was sent: it is another machine's, and nothing says whose */
    long status;  /* of the answer; 0: its head has not come */
    bool is_stream, began;
};

/*
 * POSTs body with those headers (NULL at the end), which hold a token, and waits some seconds for
 * the first byte of an event stream. trusted: url is https, and fetch_site trusted its certificate;
 * else nothing is sent to another machine. -1: nothing answers, and *e says why.
 */
int fetch_stream(const char *url, bool trusted, const char *const *headers, const char *body,
                 struct fetch_stream *out, struct err *e);
