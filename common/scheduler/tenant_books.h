/*
 * What each tenant with limits (base/tenants.h) has used of them: runs of the last minute, and time
 * of programs on this day of UTC. Plain data; both clocks are parameters. A clock that is set back
 * keeps what was used; one that is set back over midnight and on again finds what was used on the
 * later day.
 */
#pragma once

#include "common/base/err.h"
#include "common/base/tenants.h"

#include <jansson.h>

struct tenant_books;

struct tenant_now {
    int64_t mono_ms;
    int64_t unix_s;
};

/* limits is borrowed; NULL: none. */
struct tenant_books *tenant_books_new(const struct tenants *limits);
void tenant_books_free(struct tenant_books *b);

/*
 * May the tenant begin one more program, by these limits: its own, or those of a group of its
 * caller? Then it counts towards runs_per_minute. Else ERR_BUSY, which names the limit, and
 * *out_retry_ms is when it may.
 */
int tenant_books_ask(struct tenant_books *b, const char *tenant, const struct tenant_limits *limits,
                     struct tenant_now now, int64_t *out_retry_ms, struct err *e);
/* A program of the tenant has run for so long. That is noted of tenants whose time has a limit, or
 * was asked about with one on this day. */
void tenant_books_note_run(struct tenant_books *b, const char *tenant, int64_t ms,
                           struct tenant_now now);

/* Is there time that tenant_books_saved has not been told of? */
bool tenant_books_changed(const struct tenant_books *b);
/* Takes in what another process, or one before, has saved; NULL: nothing. */
void tenant_books_merge(struct tenant_books *b, const json_t *saved, struct tenant_now now);
/* The time of programs on this day, and on a later one that the clock has said before it was set
 * back: {"day", "ms": {tenant: ms}, "later"?: {"day", "ms"}}. New reference. */
json_t *tenant_books_encode(const struct tenant_books *b);
/* What tenant_books_encode returned last is saved. */
void tenant_books_saved(struct tenant_books *b);
