/* Wrong passphrases: the address (IPv6: its network of 64 bits) that sent them waits, longer after
 * each. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/*
 * Before a passphrase is looked at. Returns 0, and the try counts as a wrong one until
 * attempts_forget; or the number of seconds after which that address may try again. attempts: the
 * part of the state; now: Unix seconds.
 */
int64_t attempts_begin(json_t *attempts, const char *client, int64_t now);
/* The passphrase was right. */
void attempts_forget(json_t *attempts, const char *client);
