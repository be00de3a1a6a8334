/*
 * Access tokens that are JWTs (RFC 7519, 9068) in the compact form of JWS. Nothing in a token says
 * where keys are, or what else to trust: jku, jwk, x5u and x5c are not looked at.
 */
#pragma once

#include "common/rpc/json.h"
#include "fcgi/oauth/jwks.h"

#include <stdint.h>

#define JWT_MAX        8000 /* characters of a token */
#define JWT_HEADER_MAX 2048 /* bytes of its header, decoded */
#define JWT_LEEWAY_S   60   /* for clocks that differ */

struct jwt_rules {
    const char *issuer;
    bool (*audience_ok)(const void *ctx, const char *audience);
    const void *ctx;
    bool typed; /* "typ" must be at+jwt: JWT, which many servers say, is not enough */
    int64_t now_s;
};

struct jwt {
    enum jwt_alg alg;
    char kid[JWK_KID_MAX + 1];
    bool has_kid;
    json_t *claims; /* owned */
    int64_t expires_s;
};

/* Is it of the form of a JWT: three parts, the first of which begins as a JSON object does? */
bool jwt_is_like(const char *token);

/*
 * Takes a token apart and checks all but its signature: jwks_find and jwk_verify come next. -1: *e
 * says why, for error_description: without anything of the token, in printable ASCII without
 * quotes and backslashes.
 */
int jwt_read(const char *token, const struct jwt_rules *rules, struct jwt *out, struct err *e);
void jwt_clear(struct jwt *jwt);

/* issuer, audience, times: also of an answer of an introspection (RFC 7662), which need not have
 * all of them (partly). *out_expires_s: 0: it does not say. */
int jwt_check_claims(const json_t *claims, const struct jwt_rules *rules, bool partly,
                     int64_t *out_expires_s, struct err *e);
