/* How a file of a program is sent to a browser: the table of nginx/types.conf.in and of
 * $sandcgi_disposition in nginx/http.conf.in, for other web servers (tests/lint/types.sh). */
#pragma once

#include <stdbool.h>

struct file_type {
    const char *type; /* the value of Content-Type */
    bool is_shown;    /* else it is a download: a browser might run it */
};

/* By the extension of the name, whatever its case; else a download of unknown type. */
struct file_type file_type_of(const char *name);
