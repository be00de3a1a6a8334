/*
 * Which conversations' files go: those that were not used for longer than the bounds allow
 * (ttl_s), and of the others, while all together take more than total_bytes, those that were not
 * used for longest. Rules on plain data, and the way that gathers it.
 */
#pragma once

#include "common/sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct retention_item {
    char name[SANDBOX_NAME_LEN + 1];
    int64_t last_used; /* Unix seconds */
    uint64_t bytes;    /* 0 if not asked for; so is in_use */
    bool in_use;       /* it cannot go now */
};

struct retention {
    struct retention_item *items;
    size_t n;
    uint64_t beside_bytes; /* kept results and sessions, which count in the total */
};

#define AUTO_RETENTION AUTO(retention_clear)

/*
 * Sorts the items, the one not used for longest first, those in use last, and returns how many of
 * them are to go: the first of the list, in this order. Last uses are known to within slack_s
 * (state_fresh_s): no files go before ttl_s is over for certain. now: expiry_now.
 */
size_t retention_plan(struct retention *r, const struct sandbox_bounds *bounds, int64_t slack_s,
                      int64_t now);

/* In how many seconds to look again, when these stay (r is sorted); between 1 and 600. */
int64_t retention_next_s(const struct retention *r, size_t n_gone,
                         const struct sandbox_bounds *bounds, int64_t slack_s, int64_t now);

/*
 * Every sandbox there is, with its last use; when total_bytes is set with in_use and bytes: as
 * noted, or else counted and noted now. Takes a moment where there are many: not for a process that
 * others wait for. Cleared with retention_clear.
 */
int retention_gather(const struct sandbox_root *root, struct retention *out, struct err *e);
void retention_clear(struct retention *r);

/* When files that are used now will expire (Unix seconds); 0: never. */
int64_t retention_expires_at(const struct sandbox_bounds *bounds, int64_t now);
