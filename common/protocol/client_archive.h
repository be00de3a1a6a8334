/* Archives, for the workers: see client.h for how calls behave. */
#ifndef SANDCGI_PROTOCOL_CLIENT_ARCHIVE_H
#define SANDCGI_PROTOCOL_CLIENT_ARCHIVE_H

#include "common/protocol/client_runs.h"

/*
 * A link at which an archive of a conversation's folder ("": of all) can be fetched; format is a
 * name of sandbox/archive.h. {url, name, format, files, bytes, expiresAt}: how much it would hold
 * now. ERR_NOT_FOUND when there is nothing to pack, ERR_LIMIT when it is too much.
 */
json_t *broker_archive_link(const struct broker_client *c, const char *tenant,
                            const char *conversation, const char *folder, const char *format,
                            struct err *e);

/*
 * Makes the archive that a link's subject (sandbox/link.h) names and hands its bytes to write as
 * they come, a piece at a time. A failure before the first piece is the broker's word (NOT_FOUND,
 * LIMIT…); after it the bytes so far are no whole archive. When write fails, or cancel_fd hangs up,
 * the work ends: ERR_CANCELLED.
 */
int broker_pack(const struct broker_client *c, const char *subject,
                int (*write)(void *ctx, const char *data, size_t len), void *ctx, struct err *e);

struct broker_unpack_want {
    const char *tenant, *conversation;
    const char *archive; /* the name of a file in the sandbox; NULL: archive_fd is it */
    int archive_fd;      /* borrowed */
    const char *folder;  /* below which it goes; "": the sandbox itself */
    bool replace;        /* files of the same names? */
};

#define BROKER_UNPACK_NAMES_MAX 100

/* {files (how many), bytes, names: the first BROKER_UNPACK_NAMES_MAX of them, and filesExpireAt and
 * notices where there is something to say}; failures as sandbox/unpack.h says, and ERR_BUSY. */
json_t *broker_unpack(const struct broker_client *c, const struct broker_unpack_want *want,
                      struct err *e);

#endif
