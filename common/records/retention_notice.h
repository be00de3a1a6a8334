/* What a result tells of how long its conversation's files are kept, and how many may be. Private
 * to common/broker. */
#ifndef SANDCGI_RECORDS_RETENTION_NOTICE_H
#define SANDCGI_RECORDS_RETENTION_NOTICE_H

#include "common/sandbox/sandbox.h"
#include "common/sandbox/snapshot.h"

#include <jansson.h>

/* filesExpireAt: Unix seconds, when nobody uses them before; absent when they do not. */
void retention_notice_expiry(const struct sandbox *sb, json_t *result);

/* A sentence in notices when files of this conversation had expired before this use of it; it is
 * told once. */
void retention_notice_expired(const struct sandbox *sb, json_t *result);

/* Both, to who puts files into it. */
void retention_notice_owner(const struct sandbox *sb, json_t *result);

/* Before something is run: the files, and whether the conversation is within its bounds. */
int retention_notice_before(const struct sandbox *sb, struct snapshot *out, struct err *e);

/* filesExpireAt, and a sentence in notices when the files afterwards are above the bounds. Takes no
 * time: an answer waits for it. */
void retention_notice_after(const struct sandbox *sb, const struct snapshot *after, json_t *result);

#endif
