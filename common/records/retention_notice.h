/* The members of a result about the retention and the quota of its conversation's files. */
#ifndef SANDCGI_RECORDS_RETENTION_NOTICE_H
#define SANDCGI_RECORDS_RETENTION_NOTICE_H

#include "common/sandbox/sandbox.h"
#include "common/sandbox/snapshot.h"

#include <jansson.h>

/* Adds filesExpireAt, in Unix seconds, unless files do not expire. */
void retention_notice_expiry(const struct sandbox *sb, json_t *result);

/* Adds a notice, once, when files of this conversation have expired. */
void retention_notice_expired(const struct sandbox *sb, json_t *result);

/* Both, for results of calls that add files. */
void retention_notice_owner(const struct sandbox *sb, json_t *result);

/* Before a run: takes the snapshot and checks the quota. */
int retention_notice_before(const struct sandbox *sb, struct snapshot *out, struct err *e);

/* Adds filesExpireAt, and a notice when the files are above the quota. Must be quick: an answer
 * waits for it. */
void retention_notice_after(const struct sandbox *sb, const struct snapshot *after, json_t *result);

#endif
