/*
 * Fetching a file by https. Server and caller may both be hostile: only public addresses (guard.h),
 * only https (redirects included), no proxy, no credentials, bounds on size and time.
 */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_URL_MAX       4096 /* bytes */
#define FETCH_REDIRECTS_MAX 5
#define FETCH_NAME_MAX      255 /* bytes of a file's name made of a URL */

/* A URL that could be fetched: https, a host, no user or password, no blanks or control characters,
 * up to FETCH_URL_MAX bytes. ERR_INVALID about "url", without repeating it: it may hold keys. */
int fetch_check_url(const char *url, struct err *e);

/* The file's name: the last part of the URL's path, decoded. -1 with "" in out: it has none, or one
 * that is no name (".", "..", with a slash or a NUL in it, too long). */
int fetch_name_of_url(const char *url, char out[FETCH_NAME_MAX + 1]);

struct fetch_limits {
    uint64_t max_bytes;
    int64_t timeout_ms;
    bool no_redirects;   /* an answer that leads elsewhere is a failure */
    const char *ca_file; /* NULL: the certificates that the system trusts */
    /* Called every second by fetch_in_process: -1 with *e ends it; may be NULL. */
    int (*go_on)(void *ctx, struct err *e);
    void *ctx;
};

/*
 * Writes the file at url to fd. *e may be shown to the caller: ERR_INVALID (the URL), ERR_DENIED
 * (guard.h, or a redirect to another protocol), ERR_LIMIT (size, time), ERR_NOT_FOUND (the
 * other server does not answer, has no valid certificate, or another status than 200); ERR_IO when
 * fd cannot be written.
 */
int fetch_url(const char *url, int fd, const struct fetch_limits *limits, struct err *e);

/*
 * The same in a process of its own that has no rights, no secrets of ours and no environment: this
 * very program, started anew with the argument "fetch". It ends when the caller does, and with
 * ERR_CANCELLED when caller_fd (-1: none) hangs up. limits->ca_file is not for it.
 */
int fetch_in_process(const char *url, int fd, int caller_fd, const struct fetch_limits *limits,
                     struct err *e);
/* The main function of that process; returns its exit status. */
int fetch_process_main(void);
/* How it gives up its rights, before it connects; for tests. */
int fetch_process_enter(uint64_t max_bytes, struct err *e);
