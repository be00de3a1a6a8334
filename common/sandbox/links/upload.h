/*
 * Contents that are too large to be copied: they come into being on SANDBOX_ROOT's file system,
 * where no container can reach them, and are renamed into a sandbox when they are whole.
 *
 * There are two ways. nginx writes a request's body to SANDBOX_ROOT/.uploads/<digits>, a folder
 * that it makes itself and that nobody but its account and root can look into; it removes the file
 * when the request is over, whether that was moved away or not. Everybody else writes to a file
 * without a name, which is gone as soon as nobody holds it.
 */
#ifndef SANDCGI_SANDBOX_LINKS_UPLOAD_H
#define SANDCGI_SANDBOX_LINKS_UPLOAD_H

#include "common/sandbox/files/staging.h"

#include <stdint.h>

#define UPLOAD_NGINX_DIR ".uploads"

/* A content that is whole. */
struct upload_body {
    struct staged staged; /* where it has a name; "" none */
    int fd;
    uint64_t size;
};

#define UPLOAD_BODY_INIT                                                                           \
    {                                                                                              \
        .staged = STAGED_INIT, .fd = -1                                                            \
    }
#define AUTO_UPLOAD_BODY AUTO(upload_body_clear)

/* An empty file without a name, for writing and reading. The descriptor, or -1. */
int upload_stage(const struct sandbox_root *root, struct err *e);

/* What nginx wrote under that name (ERR_INVALID: it is no name of nginx's, or leads to no regular
 * file; ERR_UNAVAILABLE: nginx's folder cannot be read by this account). */
int upload_of_nginx(const struct sandbox_root *root, const char *name, struct upload_body *out,
                    struct err *e);

/* What was written to a descriptor of upload_stage's; takes nothing over. ERR_INVALID: it is
 * another file. */
int upload_of_stage(const struct sandbox_root *root, int fd, struct upload_body *out,
                    struct err *e);

/* Gives it to the sandbox's user and puts it at name, as files_put does. */
int upload_move(const struct sandbox *sb, const char *name, struct upload_body *body,
                struct err *e);

/* What was not moved is removed. */
void upload_body_clear(struct upload_body *body);

/* Removes what nginx was killed over: files nobody has written to for an hour. */
void uploads_sweep(const struct sandbox_root *root);

#endif
