/*
 * The folder of the authorization server, SANDBOX_ROOT/.oauth, which belongs to the workers'
 * account (0700) and holds small files, each replaced in one step:
 *
 *   state.json    documents of clients, codes, grants, wrong passphrases; clients of an earlier
 *                 version
 *   passphrase    its Argon2id hash
 *   key.pem       the key that signs tokens
 *   secret        256 random bits: key of refresh tokens, of clients' ids and of the consent page
 *
 * and in its folder public, which alone the judge may read:
 *
 *   jwks.json     the public key, for whoever checks tokens
 *   revoked.json  the ids of revoked grants whose tokens have not expired, as an array
 */
#pragma once

#include "common/base/buf.h"
#include "fcgi/process/resources.h"

#include <jansson.h>

#define STORE_FOLDER     ".oauth"
#define STORE_PUBLIC     "public"
#define STORE_STATE      "state.json"
#define STORE_PASSPHRASE "passphrase"
#define STORE_KEY        "key.pem"
#define STORE_SECRET     "secret"
#define STORE_JWKS       STORE_PUBLIC "/jwks.json"
#define STORE_REVOKED    STORE_PUBLIC "/revoked.json"

#define STORE_SECRET_LEN 32

/* Opens the folder, and makes it, the one in it and SANDBOX_ROOT if they do not exist. Returns the
 * descriptor or -1. */
int store_folder_open(const struct settings *s, const struct account *workers, struct err *e);

/* Reads a file of at most out->max bytes; ERR_NOT_FOUND: there is none. */
int store_read(int folder_fd, const char *name, struct buf *out, struct err *e);

/* Replaces or makes a file (0600, of the folder's owner). The lock must be held. */
int store_write(int folder_fd, const char *name, const char *text, size_t len, struct err *e);

/* Waits for the lock of the folder: one process changes it at a time. Returns a descriptor that
 * holds it until it is closed. */
int store_lock(int folder_fd, struct err *e);
/* The same for fetching documents, without waiting; -1 with ERR_BUSY. */
int store_lock_fetch(int folder_fd, struct err *e);

/* Reads the secret; makes it if there is none. */
int store_secret(int folder_fd, uint8_t out[STORE_SECRET_LEN], struct err *e);

/* The state while it is locked: an object with the objects "clients", "documents", "codes",
 * "grants", "attempts" and "once". */
struct store {
    int folder_fd, lock_fd;
    json_t *state;
};

#define STORE_INIT ((struct store){.folder_fd = -1, .lock_fd = -1})
#define AUTO_STORE AUTO(store_end)

/* Locks and reads. folder_fd stays the caller's. -1: the file cannot be read or is no state. */
int store_begin(int folder_fd, struct store *out, struct err *e);
/* Writes what has changed. */
int store_save(const struct store *s, struct err *e);
/* Unlocks. What was not saved has not happened. */
void store_end(struct store *s);
