/*
 * Judges access tokens: JWTs by the issuer's keys, others by asking the issuer (RFC 7662). What was
 * found out is kept, by the token's SHA-256, until the token ends; what the issuer was asked about
 * for a minute.
 */
#pragma once

#include "common/base/loop.h"
#include "fcgi/oauth/verdicts.h"
#include "fcgi/settings.h"

enum judged {
    JUDGED_GOOD, /* text: "TENANT SCOPES", and behind another blank a section of limits */
    JUDGED_BAD,  /* text: why, for error_description */
    JUDGED_LATER /* the issuer is being asked: try again when changed was called */
};

/* The scopes of a token without any. */
#define JUDGED_NO_SCOPES "none"

struct judge;

/*
 * s is borrowed. state_fd (borrowed): the public folder of builtin, else -1. client: "ID:SECRET"
 * for SANDCGI_OAUTH_INTROSPECT, copied; NULL: none. changed: a token that was to be tried later may
 * be tried now.
 */
struct judge *judge_new(const struct settings *s, int state_fd, const char *client,
                        void (*changed)(void *ctx), void *ctx, struct err *e);
void judge_free(struct judge *j);

/* *out_until_s (of a good one; Unix): how long that counts at most. first: not a try after
 * JUDGED_LATER, so that no question is asked twice for one call. */
enum judged judge_token(struct judge *j, const char *token, const uint8_t digest[CRYPTO_SHA256_LEN],
                        bool first, char text[VERDICT_TEXT_MAX], int64_t *out_until_s);

/* Waits until fd is readable, something has changed, or d has passed; signals that are blocked come
 * through while_waiting (NULL: none) only while the issuer is not being asked, which lasts seconds.
 */
int judge_wait(struct judge *j, struct loop *loop, struct deadline d, const sigset_t *while_waiting,
               struct err *e);

/* Requests to the issuer so far. */
unsigned judge_fetches(const struct judge *j);
