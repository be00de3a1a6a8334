/* Codes that an administrator makes on the server: each allows one client, as the passphrase does,
 * however many wrong passphrases there were. They are kept as hashes. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define ONCE_S   600 /* a code can be used */
#define ONCE_LEN 29  /* characters: "once-" and 96 random bits as hex */

/* once: the part of the state. The oldest of too many goes. */
void once_make(json_t *once, int64_t now, char out[ONCE_LEN + 1]);

/* Has the text the form of a code? */
bool once_is_code(const char *text);
/* Is it one that can be used? Then it is used. */
bool once_take(json_t *once, const char *text, int64_t now);
