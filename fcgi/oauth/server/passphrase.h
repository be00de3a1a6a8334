/* The operator's passphrase: what it takes to allow a client. Its Argon2id hash is kept. */
#pragma once

#include "fcgi/settings.h"

#include <stdbool.h>

#define PASSPHRASE_MIN 12 /* characters */
#define PASSPHRASE_MAX 1024

/* Is one set, if the authorization server is wanted? folder_fd: store.h; -1: the folder does not
 * exist. *e says in one line what to do. */
int passphrase_need(const struct settings *s, int folder_fd, struct err *e);

/* Sets it; ERR_INVALID: it is too short, too long, or of few different characters. */
int passphrase_set(int folder_fd, const char *text, struct err *e);

/* *out_right: is it the one? Takes some tenths of a second and 64 MiB. -1: it could not be checked.
 */
int passphrase_check(int folder_fd, const char *text, bool *out_right, struct err *e);
