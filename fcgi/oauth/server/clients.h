/*
 * Clients: those that have registered themselves (RFC 7591), and those whose id is the https URL of
 * a document about them (client id metadata documents). All are public ones: they have no secret,
 * and prove with PKCE that a code is theirs. The id of a registered one holds its metadata, and
 * nothing is kept of it: strangers take no place by registering.
 */
#pragma once

#include "fcgi/oauth/server/store.h"

#include <stdbool.h>

#define CLIENT_NAME_MAX      100 /* bytes */
#define CLIENT_REDIRECTS_MAX 16
#define CLIENT_REDIRECTS_LEN 2048 /* bytes of all of them */
#define CLIENT_ID_MAX        4096 /* bytes */
#define CLIENT_DOCUMENTS_MAX 64

struct client {
    char *id, *name;
    json_t *redirects; /* an array of strings */
    bool published;    /* its id is the URL of its document */
};

void client_clear(struct client *c);

/*
 * What a client says of itself: {"name", "redirects"}, checked. NULL: *out_code is the error of RFC
 * 7591 (3.2.2), and *e its description.
 */
json_t *client_read_metadata(const json_t *metadata, const char **out_code, struct err *e);

/* The same for the document at url, which must name it as its client_id. *out_code is not set. */
json_t *client_read_document(const char *url, const char *text, size_t len, struct err *e);

/*
 * Returns the answer for a client that registers: its id is its metadata with a MAC of the store's
 * secret. NULL: as client_read_metadata, or *out_code is NULL and *e a failure of ours.
 */
json_t *client_register(const uint8_t secret[STORE_SECRET_LEN], const json_t *metadata, int64_t now,
                        const char **out_code, struct err *e);

/*
 * Finds a client, and fetches its document if need be: from another process (fetch_fd: see
 * documents.h), within seconds, and not again for a while, whether it was there or not.
 * ERR_NOT_FOUND: it is not known; ERR_INVALID: its document says something else; ERR_BUSY: another
 * document is being fetched.
 */
int client_find(int folder_fd, int fetch_fd, const uint8_t secret[STORE_SECRET_LEN], const char *id,
                struct client *out, struct err *e);

/* May the client be redirected there? */
bool client_has_redirect(const struct client *c, const char *uri);
