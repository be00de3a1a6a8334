/* What a result tells of how long its conversation's files are kept, and how many may be. Private
 * to common/broker. */
#ifndef SANDCGI_BROKER_KEEPING_H
#define SANDCGI_BROKER_KEEPING_H

#include "common/sandbox/sandbox.h"
#include "common/sandbox/usage.h"

#include <jansson.h>

/* filesExpireAt: Unix seconds, when nobody uses them before; absent when they do not. */
void keeping_tell_expiry(const struct sandbox *sb, json_t *result);

/* A sentence in notices when files of this conversation had expired before this use of it; it is
 * told once. */
void keeping_tell_expired(const struct sandbox *sb, json_t *result);

/* A sentence in notices when that is above the conversation's bounds. */
void keeping_tell_usage(const struct sandbox *sb, const struct usage *now, json_t *result);

#endif
