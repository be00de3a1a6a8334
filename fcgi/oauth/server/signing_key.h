/* The key that signs access tokens: ECDSA on P-256 (ES256), made at the first start. */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <jansson.h>

struct signing_key;

/* Reads the key from the folder (store.h); makes it, and jwks.json, if they are not there. */
struct signing_key *signing_key_open(int folder_fd, struct err *e);
void signing_key_free(struct signing_key *k);

/* Appends the claims as a signed token (RFC 9068: typ at+jwt). */
int signing_key_sign(const struct signing_key *k, const json_t *claims, struct buf *out,
                     struct err *e);

/* The claims of a token that this key has signed, whether it has expired or not; NULL: it has not.
 */
json_t *signing_key_verify(const struct signing_key *k, const char *token);
