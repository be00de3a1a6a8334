/*
 * Uploads: tickets that allow one each, and their contents, which are too large to be copied. A
 * content is written on SANDBOX_ROOT's file system where no container can reach it, and is renamed
 * into a sandbox when it is complete.
 *
 * nginx writes a request's body to SANDBOX_ROOT/.uploads/<digits>, a folder that it makes itself
 * and that only its account and root can read; it removes the file at the end of the request. All
 * others write to a file without a name, which vanishes with its last descriptor.
 */
#pragma once

#include "common/sandbox/files/staging.h"

#include <stdint.h>

#define UPLOAD_NGINX_DIR ".uploads"
#define TICKET_ID_LEN    32

/* One allowed upload: a file SANDBOX_ROOT/.tickets/<id>, which its use removes. An id cannot be
 * guessed; the link that holds it is signed, with the expiry (link.h). */
struct ticket {
    char *tenant, *conversation, *name; /* owned, of one that was read */
    uint64_t size;                      /* the file's; 0: not known yet */
    int64_t expires;                    /* Unix seconds */
};

#define AUTO_TICKET AUTO(ticket_clear)

int ticket_make(const struct sandbox_root *root, const struct ticket *ticket,
                char out_id[TICKET_ID_LEN + 1], struct err *e);

/* ERR_EXISTS when it was used: a signed link to it was checked before. The caller checks the
 * expiry: an upload that began in time may end later. */
int ticket_read(const struct sandbox_root *root, const char *id, struct ticket *out, struct err *e);
void ticket_clear(struct ticket *ticket);

/* Removes it. Of several processes that try at once one succeeds, the others get ERR_EXISTS. */
int ticket_use(const struct sandbox_root *root, const char *id, struct err *e);

/* A complete content. */
struct upload_body {
    struct staged staged; /* name "": the file has none */
    int fd;
    uint64_t size;
};

#define UPLOAD_BODY_INIT ((struct upload_body){.staged = STAGED_INIT, .fd = -1})
#define AUTO_UPLOAD_BODY AUTO(upload_body_clear)

/* An empty file without a name, for writing and reading. The descriptor, or -1. */
int upload_stage(const struct sandbox_root *root, struct err *e);

/* What nginx wrote under that name (ERR_INVALID: nginx gives no such name, or it is no regular
 * file; ERR_UNAVAILABLE: this account cannot read nginx's folder). */
int upload_of_nginx(const struct sandbox_root *root, const char *name, struct upload_body *out,
                    struct err *e);

/* What was written to a descriptor of upload_stage, which stays the caller's. ERR_INVALID: it is
 * another file. */
int upload_of_stage(const struct sandbox_root *root, int fd, struct upload_body *out,
                    struct err *e);

/* Gives it to the sandbox's user and puts it at name, as files_put does. */
int upload_move(const struct sandbox *sb, const char *name, struct upload_body *body,
                struct err *e);

/* Removes a content that was not moved. */
void upload_body_clear(struct upload_body *body);

/* Removes files of nginx that were not written to for an hour, and tickets that expired so long ago
 * that no upload with them is under way. */
void uploads_sweep(const struct sandbox_root *root);
