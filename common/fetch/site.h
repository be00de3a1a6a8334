/* One look at our own site from outside, for the operator. */
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
