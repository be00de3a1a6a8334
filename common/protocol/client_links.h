/* The worker's side of uploads by ticket and of fetching by URL; see client.h for how calls go. */
#ifndef SANDCGI_PROTOCOL_CLIENT_LINKS_H
#define SANDCGI_PROTOCOL_CLIENT_LINKS_H

#include "common/protocol/client_runs.h"

/*
 * A ticket for one file: {"url", "method":"PUT", "maxBytes", "expiresAt" (Unix seconds)}. size:
 * what the file must have, 0: not known yet. New reference, or NULL: ERR_INVALID (the name),
 * ERR_LIMIT (the size).
 */
json_t *broker_create_upload(const struct broker_client *c, const char *tenant,
                             const char *conversation, const char *filename, uint64_t size,
                             struct err *e);

/*
 * Is the ticket good for a body of size bytes? (UINT64_MAX: nobody knows yet.) 0, or -1: ERR_EXISTS
 * (it was used: a link whose signature is right and that has not expired has no other way to be
 * unknown), ERR_LIMIT, ERR_INVALID (the file was announced with another size).
 */
int broker_check_upload(const struct broker_client *c, const char *ticket, uint64_t size,
                        struct err *e);

/* An empty file for a body that the caller streams itself. It has no name: when nobody holds it any
 * more it is gone. The descriptor, or -1. */
int broker_stage_upload(const struct broker_client *c, const char *ticket, struct err *e);

/*
 * The whole body is there: moves it into the sandbox and uses the ticket up. It is the file called
 * nginx_name among those that nginx writes (NULL: none), or the one behind fd that
 * broker_stage_upload gave. {tenant, conversationId, name, size, url, filesExpireAt, notices} (the
 * last two where there is something to say), or NULL with what broker_check_upload says too; the
 * ticket is good for another try then, unless it was used.
 */
json_t *broker_finish_upload(const struct broker_client *c, const char *ticket,
                             const char *nginx_name, int fd, struct err *e);

/*
 * Fetches url by https into the sandbox: the same. filename NULL: the last part of the
 * URL's path. New reference, or NULL: ERR_INVALID (URL, filename), ERR_DENIED (fetching is switched
 * off; an address that is not fetched from), ERR_LIMIT (too large, too slow), ERR_NOT_FOUND (the
 * other server does not answer, or says no), ERR_BUSY. It takes up to five minutes.
 */
json_t *broker_import_url(const struct broker_client *c, const char *tenant,
                          const char *conversation, const char *url, const char *filename,
                          struct err *e);

#endif
