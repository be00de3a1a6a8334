/*
 * Grants: what the operator has allowed a client, until it is revoked or not used for long. A
 * client gets a code for it, once, then an access token and a refresh token, and for each refresh
 * token new ones. Whoever sends a code or a refresh token that was used has stolen it, or was
 * stolen from: that revokes the grant.
 *
 * A refresh token is "scr_GRANT.NUMBER.MAC" with a key that does not leave the folder (store.h);
 * the state has the number of the latest one only. A code is kept as a hash.
 */
#pragma once

#include "fcgi/oauth/server/store.h"

#include <stdint.h>

#define GRANTS_MAX        200
#define GRANT_ID_LEN      16           /* hex digits */
#define GRANT_IDLE_S      (90 * 86400) /* not used for so long, a grant ends */
#define CODE_S            60
#define CODE_LEN          64   /* hex digits */
#define ACCESS_TOKEN_S    3600 /* an access token is valid */
#define REFRESH_TOKEN_MAX 128

/* The secret of refresh tokens, with its length STORE_SECRET_LEN. */
typedef const uint8_t grant_secret[STORE_SECRET_LEN];

/* What is allowed. All texts are borrowed. */
struct grant_terms {
    const char *client, *client_name, *host; /* the latter: where it was redirected, for people */
    const char *tenant, *scope, *resource;   /* scope: names with blanks between */
};

/* Makes a grant and a code for it. ERR_LIMIT: there are GRANTS_MAX. */
int grant_allow(json_t *state, const struct grant_terms *terms, const char *redirect,
                const char *challenge, int64_t now, char code[CODE_LEN + 1], struct err *e);

/* What the client shows to get tokens. */
struct grant_claim {
    const char *code, *redirect, *verifier; /* for a code */
    const char *refresh_token;              /* for a refresh token */
    const char *client, *scope, *resource;  /* the last two may be NULL */
};

/* The client and the code, or the refresh token, fit a grant: it gets the next refresh token. */
struct grant_issue {
    char id[GRANT_ID_LEN + 1];
    const json_t *grant; /* of the state */
    char scope[64];      /* of the access token: the grant's, or fewer */
    char refresh_token[REFRESH_TOKEN_MAX];
};

/*
 * Each returns NULL, or the error of RFC 6749 (5.2) with *e as its description. The caller saves
 * the state in either case: a grant may have been revoked.
 */
const char *grant_redeem(json_t *state, grant_secret secret, const struct grant_claim *claim,
                         int64_t now, struct grant_issue *out, struct err *e);
const char *grant_refresh(json_t *state, grant_secret secret, const struct grant_claim *claim,
                          int64_t now, struct grant_issue *out, struct err *e);

/* The grant that a refresh token of ours belongs to, whether it is the latest or not; false: it is
 * none. */
bool grant_of_token(grant_secret secret, const char *refresh_token, char out[GRANT_ID_LEN + 1]);

/* From now on its tokens count no more. false: there is no such grant, or it was revoked before. */
bool grant_revoke(json_t *state, const char *id, int64_t now);
bool grant_is_revoked(const json_t *grant);

/* Drops what has ended, and codes that have expired. */
void grants_sweep(json_t *state, int64_t now);

/* Saves the state, and the list of revoked grants where it has changed. */
int grants_save(const struct store *s, int64_t now, struct err *e);
