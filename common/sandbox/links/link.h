/*
 * Signed links to uploads and archives: URLs below PUBLIC_BASE_URL that prove by themselves what
 * they are for and until when, so that their server needs no list of them. (Files: file_link.h.)
 *
 *   <base_url>/<folder of the kind>/<subject, percent-encoded>?expires=<Unix seconds>&sig=<64 hex>
 *
 * The subject is any relative path; what it means is its kind's matter.
 * The signature covers kind, subject (its bytes, however they were encoded) and expiry. Nothing
 * else may stand in the query.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define LINK_SUBJECT_MAX 8192 /* bytes, decoded */

enum link_kind {
    LINK_UPLOAD,  /* uploads/<ticket's id>, see upload.h */
    LINK_ARCHIVE, /* archives/… */
};

/* What signs: derived from FILE_SECRET, which workers must not have. */
struct link_key {
    uint8_t bytes[CRYPTO_SHA256_LEN];
};

int link_key_derive(const char *file_secret, struct link_key *out, struct err *e);

/* What links are checked with: the key that signs new ones and, up to old_until, the one before. */
struct link_keys {
    struct link_key now, old;
    int64_t old_until; /* Unix seconds; 0: there is no old one */
};

/* Appends a path, whatever its bytes: percent-encoded except unreserved characters and '/'. */
void link_encode(const char *path, struct buf *out);

/*
 * The relative path that len percent-encoded bytes stand for. Caller frees. NULL: it is one that no
 * link of ours has (a NUL, an encoded slash, an empty, "." or ".." component, over
 * LINK_SUBJECT_MAX).
 */
char *link_decode(const char *path, size_t len);

/* Caller frees. A key that cannot sign (the crypto library failed) makes a link that no check
 * accepts. */
char *link_url(const struct link_key *key, const char *base_url, enum link_kind kind,
               const char *subject, int64_t expires);

/*
 * The subject of a request's URI (path and query as the client wrote them; whatever stands in front
 * of the kind's folder is passed over). Caller frees. NULL: it is no path of this kind, or
 * link_decode refuses it.
 */
char *link_subject(const char *uri, enum link_kind kind);

/*
 * Is the subject signed by the URI's query? ERR_DENIED: no signature, another's, or altered;
 * ERR_TIMEOUT: rightly signed, but expired at now (Unix seconds). Constant time in the signature.
 */
int link_verify(const struct link_keys *keys, enum link_kind kind, const char *subject,
                const char *uri, int64_t now, struct err *e);
