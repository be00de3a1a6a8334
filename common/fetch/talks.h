/*
 * Requests to servers that the settings name, several at once, for a process that must not wait:
 * it waits for them (talks_wait) and for one descriptor of its own. No redirects, no proxy, bounds
 * on size and time.
 */
#pragma once

#include "common/base/clock.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALKS_MAX 32 /* at once */

struct talks;

/* The end of a request, whose answer is text (valid during the call) with status 200; else text is
 * NULL and why says what happened, without the URL. */
typedef void talk_done(void *ctx, const char *text, size_t len, const char *why);

struct talk_request {
    const char *url;           /* https://; http:// leads to this machine only */
    bool may_be_private;       /* the operator has named the host; else guard.h decides */
    const char *form;          /* the body of a POST, urlencoded; NULL: GET */
    const char *user_password; /* "USER:PASSWORD" of Basic authentication; NULL: none */
    size_t max_bytes;
    int64_t timeout_ms;
    talk_done *done;
    void *ctx;
};

/* NULL: *e. */
struct talks *talks_new(struct err *e);
/* Requests that are under way end without done. */
void talks_free(struct talks *t);

/* Copies what request points to. -1 with ERR_BUSY: there are TALKS_MAX. */
int talks_begin(struct talks *t, const struct talk_request *request, struct err *e);
size_t talks_count(const struct talks *t);

/* Until fd is readable, a request has ended (done is called), or d has passed. */
int talks_wait(struct talks *t, int fd, struct deadline d, struct err *e);
