/* Looks at our own site from outside, for the operator. */
#pragma once

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct fetch_site {
    long status;     /* of the answer to GET; 0: none */
    int64_t expires; /* the certificate, Unix seconds; 0: there is none, or it is not known */
    bool foreign;    /* the certificate is for another host */
    char wrong[256]; /* why this machine does not trust the certificate; "": it does, or none */
    int64_t date;    /* the answer's Date; 0: none */
};

/* GETs url (http or https), without redirects, within some seconds. at: "HOST:PORT" where it is
 * reached; NULL: where the url says. -1: nothing answers there, and *e says why. Not confined: for
 * a URL of the settings. */
int fetch_site(const char *url, const char *at, struct fetch_site *out, struct err *e);

/* Adds what keeps every client from site, if its certificate does: "the certificate of
 * PUBLIC_BASE_URL expired 3 days ago". */
void fetch_site_fault(const struct fetch_site *site, int64_t now_unix, struct buf *out);

/* A look at the certificate from time to time, in a process without rights. */
struct site_watch {
    struct deadline due; /* the next look, or the end of the one that lasts; never: none */
    int fd;              /* what the process says; -1: it does not run */
    pid_t pid;
};

/* The first look is soon after the start, when the web server has started, too. */
void site_watch_init(struct site_watch *w);

/* Call it when due has passed, or fd can be read: begins or ends a look at the site of url. A fault
 * is logged as a warning, once a day. A site that does not answer is looked at again in some
 * minutes. */
void site_watch_go_on(struct site_watch *w, const char *url);

/* Ends a look that lasts. */
void site_watch_clear(struct site_watch *w);

/* The main function of that process, which the command SITE_WATCH_COMMAND starts. */
int site_watch_main(void);
#define SITE_WATCH_COMMAND "look-at-site"

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
