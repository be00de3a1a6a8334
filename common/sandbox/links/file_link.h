/*
 * URLs of files, which nginx checks by itself with its module secure_link, and the broker under
 * other web servers:
 *
 *   <base_url>/files/<id>/<token>/<path>                  token of "<id>"
 *   <base_url>/files/<id>/<path>?expires=<N>&sig=<token>  token of "<N> <id>/<path>"
 *
 * The id is the name of the sandbox directory, which every account of the machine finds in
 * /proc/PID/mountinfo; a token needs the key. It is the keyed MD5 of RFC 1828: the key fills MD5's
 * first block and follows the text once more, so collisions of MD5, which an attacker finds only
 * from a known state, are of no use.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define FILE_FOLDER    "/files/"
#define FILE_ID_LEN    64 /* hex digits */
#define FILE_KEY_LEN   64 /* one block of MD5 */
#define FILE_TOKEN_LEN 22 /* base64url */

/* Derived from FILE_SECRET; workers have neither. */
struct file_key {
    char text[FILE_KEY_LEN + 1];
};

/* Fails also when the crypto library refuses MD5. */
int file_key_derive(const char *file_secret, struct file_key *out, struct err *e);

/* What URLs are checked with: the key that makes new ones and, up to old_until, the one before. */
struct file_keys {
    struct file_key now, old;
    int64_t old_until; /* Unix seconds; 0: there is no old one */
};

/* A failure (logged) makes a token that no check accepts. */
void file_token(const struct file_key *key, const char *text, char out[FILE_TOKEN_LEN + 1]);

/* Is it the token of text, at now (Unix seconds)? Constant time in the token. */
bool file_token_is(const struct file_keys *keys, const char *text, const char *token, int64_t now);

/* A URL of a file, taken apart. */
struct file_url {
    char id[FILE_ID_LEN + 1];
    char token[FILE_TOKEN_LEN + 1];
    int64_t expires; /* Unix seconds; 0: the URL is not signed */
    char *path;      /* decoded, any bytes but NUL; owned */
};

#define AUTO_FILE_URL AUTO(file_url_clear)

/*
 * Takes apart a request's URI, as the client wrote it; what stands in front of "/files/" is passed
 * over. with_expiry: the form with a signature is the only one, as for nginx with SIGNED_URLS.
 * Refuses what nginx refuses: ERR_NOT_FOUND for a path of another form, or with an encoded slash or
 * dot; ERR_DENIED for a query that is no signature.
 */
int file_url_parse(const char *uri, bool with_expiry, struct file_url *out, struct err *e);
void file_url_clear(struct file_url *u);

/* Is the token right, and at now (Unix seconds) not expired? Constant time in the token.
 * ERR_NOT_FOUND, of a signed URL ERR_DENIED. */
int file_url_check(const struct file_keys *keys, const struct file_url *u, int64_t now,
                   struct err *e);
