/*
 * URLs of files, which nginx checks by itself with its module secure_link:
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

#include "common/base/err.h"

#include <stdbool.h>

#define FILE_KEY_LEN   64 /* one block of MD5 */
#define FILE_TOKEN_LEN 22 /* base64url */

/* Derived from FILE_SECRET; workers have neither. */
struct file_key {
    char text[FILE_KEY_LEN + 1];
};

/* Fails also when the crypto library refuses MD5. */
int file_key_derive(const char *file_secret, struct file_key *out, struct err *e);

/* A failure (logged) makes a token that no check accepts. */
void file_token(const struct file_key *key, const char *text, char out[FILE_TOKEN_LEN + 1]);

/* Constant time in the token. */
bool file_token_is(const struct file_key *key, const char *text, const char *token);
